"""test_faults.py [restart|skip|clocks]: what a trace tells of jobs that did not
go well, and of hosts whose clocks differ."""
import difflib
import os
import shutil
import sqlite3
import subprocess

import accounts
import clients
import jobs
import test_clocks

# torchrun's tries share one store, in which PyTorch 2.15 leaves the unique id
# of the first try: a rank of the second that comes before rank 0 takes it and
# waits for ever, traced or not.
OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
UNFINISHED = 128 + 256  # in_call, running


def merged(tmp, watch):
    path = os.path.join(tmp, "job.db")
    jobs.commtrace("merge", "--db", path, watch.trace)
    return sqlite3.connect(path)


def ops(db):
    """(rank, restart) -> [(function, count, flags), ...] in order."""
    found = {}
    for rank, restart, *op in db.execute(
            "SELECT p.rank, p.restart, k.function, c.count, o.flags FROM op o"
            " JOIN op_class c ON c.process = o.process AND c.id = o.class"
            " JOIN op_kind k ON k.id = c.kind"
            " JOIN process p ON p.process = o.process ORDER BY o.id"):
        found.setdefault((rank, restart), []).append(tuple(op))
    return found


def same_as_witnessed(recorded, watch):
    """Also of those that were killed: the witness writes before each call."""
    witnessed = {who[:2]: [(op.function, op.count) for op in account.ops]
                 for who, account in
                 accounts.read_witness(watch.witness).items()}
    for who, want in witnessed.items():
        got = [op[:2] for op in recorded.get(who, [])]
        if got != want:
            jobs.fail("rank %d.%d: recorded %s, witnessed %s" % (*who, got,
                                                                 want))
    if set(recorded) != set(witnessed):
        jobs.fail("recorded %s, witnessed %s" % (set(recorded), set(witnessed)))


def restart(tmp):
    watch = clients.Watch(tmp)
    done = clients.torchrun("restart.py", watch=watch, env=OWN_STORE,
                            options=["--max-restarts=1"])
    if done.stdout.count("fine, second try") != 2:
        jobs.fail("restart.py: %s" % done.stdout)
    db = merged(tmp, watch)
    recorded = ops(db)
    same_as_witnessed(recorded, watch)
    tries = db.execute(
        "SELECT a.job, count(*), count(DISTINCT p.restart), min(p.restart),"
        "       sum(a.dead), max(a.recovered)"
        "  FROM place a JOIN process p ON p.process = a.process"
        " GROUP BY a.job ORDER BY min(p.restart)").fetchall()
    if [t[1:5] for t in tries] != [(2, 1, 0, 2), (2, 1, 1, 0)]:
        jobs.fail("tries are told apart as %s" % tries)
    if [t[0] for t in tries] != [0, 1]:
        jobs.fail("the first try is job %d" % tries[0][0])
    runs = db.execute("SELECT id, restart, run_id FROM job").fetchall()
    run = runs[0][2]
    if not run or runs != [(0, 0, run), (1, 1, run)]:
        jobs.fail("jobs, restarts, run ids: %s" % runs)
    told = [(j["job"]["restart"], j["job"]["run_id"])
            for j in jobs.report(watch.trace)["jobs"]]
    if told != [(0, run), (1, run)]:
        jobs.fail("report --json: restarts and run ids %s" % told)
    text = jobs.commtrace("report", watch.trace)
    for number in (0, 1):
        if "%s, restart %d; 2 of its tries" % (run, number) not in text:
            jobs.fail("no restart %d in\n%s" % (number, text))
    if not tries[0][5]:
        jobs.fail("nothing was recovered from the ring of the killed rank")
    killed, other = recorded[1, 0], recorded[0, 0]
    if len(killed) != len(other) + 1 or not killed[-1][2] & UNFINISHED:
        jobs.fail("of the killed rank's last call: %s" % (killed[-1],))
    shown = jobs.commtrace("ops", "--in-flight", watch.trace)
    if "all_reduce" not in shown:
        jobs.fail("ops --in-flight: %s" % shown)
    died, = db.execute("SELECT text FROM finding WHERE code = 'PROCESS_DIED'"
                       ).fetchone()
    if "the last call of rank 1, all_reduce number 10 (3.906 KiB) of comm 0, " \
            "is not known to have finished" not in died:
        jobs.fail("of the killed rank: " + died)
    print("restart: two tries of one run; %d of %d calls of the killed rank "
          "from its ring, the last in flight" % (tries[0][5], len(killed)))


def skip(tmp):
    watch = clients.Watch(tmp)
    done = clients.torchrun("skip.py", ranks=3, watch=watch, check=False)
    if done.returncode == 0 or "SIGABRT" not in done.stderr:
        jobs.fail("skip.py was not aborted: %s" % done.stderr)
    db = merged(tmp, watch)
    recorded = ops(db)
    same_as_witnessed(recorded, watch)
    waited = {who[0] for who, calls in recorded.items()
              if calls[-1][:2] == ("ncclAllReduce", 1010)}
    if waited != {0, 2} or len(recorded[1, 0]) != 10:
        jobs.fail("waited in the skipped call: %s" % waited)
    came = db.execute("SELECT ranks FROM instance ORDER BY ordinal DESC LIMIT 1"
                      ).fetchone()
    if came != (2,):
        jobs.fail("%s ranks came to the last call" % came)
    # An abort ends the kernel, so that the call looks finished in a rank's
    # file; but it ended after the abort had begun.
    cut = db.execute(
        "SELECT p.rank, v.ordinal, v.count, v.gpu_ns, v.transfer_ns"
        "  FROM v_op v JOIN place p ON p.process = v.process"
        " WHERE v.state = 'aborted' ORDER BY p.rank").fetchall()
    if cut != [(0, 10, 1010, None, None), (2, 10, 1010, None, None)]:
        jobs.fail("ended by the abort: %s" % cut)
    found = jobs.report(watch.trace)["jobs"][0]["findings"][0]
    if found["code"] != "RANK_NEVER_CAME":
        jobs.fail("first finding: %s" % found)
    for words in ("ranks 0, 2 waited in all_reduce number 10 (3.945 KiB) of the"
                  " communicator of ranks 0-2 for ", ", until it was aborted",
                  "rank 1 never came: it issued 10 calls there, the others 11"):
        if words not in found["text"]:
            jobs.fail("no '%s' in: %s" % (words, found["text"]))
    if db.execute("SELECT text FROM finding WHERE code = 'RANK_NEVER_CAME'"
                  ).fetchall() != [(found["text"],)]:
        jobs.fail("job.db does not say so")
    with open(os.path.join(jobs.ROOT, "samples", "sql", "never_came.sql")) as f:
        question = "".join(line for line in f if not line.startswith("."))
    answer = db.execute(question).fetchall()
    if [(row[1],) + row[3:] for row in answer] != [
            ("all_reduce", 10, "0,2", "1")]:
        jobs.fail("never_came.sql: %s" % answer)
    longest, = db.execute("SELECT max(coalesce(transfer_ns, 0) +"
                          " coalesce(wait_ns, 0)) FROM instance").fetchone()
    if longest > 10**9:
        jobs.fail("the abandoned call counts as one of %d ns" % longest)
    print("skip: ranks 0 and 2 wait in an all-reduce to which rank 1 never "
          "came; the watchdogs aborted")


def shifted(source, target, seconds):
    """A copy of the traces, with the clocks of host1 set differently, each
    process's alike: as if that host had been started at another time, and did
    not know what time it is."""
    os.mkdir(target)
    for name in os.listdir(source):
        path = shutil.copy(os.path.join(source, name), target)
        if not name.endswith(".db"):
            continue  # a ring that was set aside
        db = sqlite3.connect(path)
        if db.execute("SELECT host_id FROM process").fetchone() == ("host1",):
            ns = seconds * 10**9
            db.execute("UPDATE process SET t0_ns = t0_ns + ?,"
                       " t0_real_ns = t0_real_ns + ?", (ns, ns))
            db.execute("UPDATE clock SET real_ns = real_ns + ?", (ns,))
            db.commit()
        db.close()


def report(folder):
    return jobs.commtrace("report", folder).replace(folder, "DIR")


def clocks(tmp):
    """One host is up for 5,000 s longer; then its clocks are set otherwise in
    copies of the trace, which changes nothing in the report."""
    watch = clients.Watch(tmp)
    space = ["unshare", "--fork", "--kill-child", "--time", "--monotonic",
             "5000", "--boottime", "5000"]
    if subprocess.run(space + ["true"], capture_output=True).returncode:
        print("clocks: no time name space here; clocks are set in copies only")
        space = []
    clients.torchrun("parallel3d.py", ["--verify"], 4, 2, watch,
                     wrap=lambda node: space if node else [])
    starts = [sqlite3.connect(path).execute("SELECT t0_ns FROM process")
              .fetchone()[0] for path in clients.trace_files(watch)]
    if space and max(starts) - min(starts) < 4000 * 10**9:
        jobs.fail("clocks are not apart: %s" % starts)
    want = report(watch.trace)
    for role in ("TP", "PP", "DP"):
        if "\n  %s " % role not in want:
            jobs.fail("no %s in\n%s" % (role, want))
    for seconds in (-5000, 7, -3):
        copy = os.path.join(tmp, "copy%d" % seconds)
        shifted(watch.trace, copy, seconds)
        got = report(copy)
        if got != want:
            jobs.fail("clocks %d s apart change the report:\n%s" %
                      (seconds, "\n".join(difflib.unified_diff(
                          want.splitlines(), got.splitlines(), "before",
                          "after", lineterm="", n=1))))
    print("clocks: hosts 5,000 s apart, and 7 s, and 3 s: the same report")
    # Drift is known to what ends are scattered by only.
    want = test_clocks.facts(watch.trace)
    if space and abs(want[2][1]["offset_s"] - 5000) > 1:
        jobs.fail("clocks: %s" % want[2])
    for seconds, ppm in ((7, 50), (-3, -200)):
        test_clocks.same("%+d s %+d ppm" % (seconds, ppm), want,
                         test_clocks.facts(test_clocks.copy(
                             watch.trace, os.path.join(tmp, "fast%d" % ppm),
                             seconds, ppm)), .02, 1)


if __name__ == "__main__":
    clients.main(restart, skip, clocks)
