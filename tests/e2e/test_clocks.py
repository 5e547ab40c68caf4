"""test_clocks.py: a job on two hosts, of which one has a clock that is wrong by
seconds and drifts: in copies of a trace, in a time name space, under faketime.
Waits, transfers and findings are those of the job on right clocks."""
import glob
import os
import shutil
import sqlite3
import subprocess

import jobs

SLOW, FACTOR = 2, 1.5
JOB = ["train3d", "--tp", "2", "--pp", "1", "--dp", "2", "--layers", "2",
       "--micro-batches", "2", "--compute-us", "8000", "--steps", "8"]
PIPELINE = ["train3d", "--tp", "2", "--pp", "2", "--dp", "1", "--layers", "2",
            "--micro-batches", "4", "--compute-us", "8000", "--steps", "8"]
TRIES = 4
FAKETIME = "/usr/lib/*/faketime/libfaketime.so.1"
# Columns in ns of the process's clock, by table.
TIMES = {"process": ("end_ns",), "op": ("enter_ns", "gpu_off_ns"),
         "launch": ("enter_ns", "gpu_off_ns"), "clock": ("at_ns",),
         "comm": ("enter_ns", "ready_ns", "end_ns"), "policy": ("at_ns",),
         "comm_event": ("at_ns",), "graph_launch": ("enter_ns",),
         "loss": ("first_ns", "last_ns")}


def machine(tmp):
    """Two hosts of two GPUs; one rank computes slowly."""
    path = os.path.join(tmp, "slow.fabric")
    with open(os.path.join(jobs.MACHINES, "two_hosts.fabric")) as f:
        text = f.read().replace("ranks_per_host 4", "ranks_per_host 2")
    with open(path, "w") as f:
        f.write(text + "straggler rank=%d compute=%g\n" % (SLOW, FACTOR))
    return path


def run(fabric, trace, job, before=""):
    """Runs job, ranks of host1 behind the words before."""
    subprocess.run(
        [os.path.join(jobs.BUILD, "samples", "launch"), "-n", "4", "--", "sh",
         "-c", 'p=$0; case $NCCL_HOSTID in *1) exec %s "$p" "$@" ;; esac;'
         ' exec env LD_PRELOAD="$SHIM" "$p" "$@"' % (
             before or 'env LD_PRELOAD="$SHIM"'),
         os.path.join(jobs.BUILD, "samples", job[0])] + job[1:],
        env=dict(os.environ, FABRIC=fabric, COMMTRACE_DIR=trace,
                 SHIM=jobs.SHIM), check=True, timeout=300,
        stdout=subprocess.DEVNULL)


def copy(source, target, seconds, ppm):
    """As host1 would have written it, its clocks ahead and fast by so much."""
    os.mkdir(target)
    for path in glob.glob(os.path.join(source, "*.db")):
        db = sqlite3.connect(shutil.copy(path, target))
        if db.execute("SELECT host_id FROM process").fetchone()[0][-1] == "1":
            for table, columns in TIMES.items():
                for column in columns:
                    db.execute("UPDATE %s SET %s = %s + CAST(round(%s * %g)"
                               " AS INTEGER)" % (table, column, column, column,
                                                 ppm * 1e-6))
            ns = seconds * 10**9
            db.execute("UPDATE process SET t0_ns = t0_ns + ?,"
                       " t0_real_ns = t0_real_ns + ?", (ns, ns))
            db.execute("UPDATE clock SET real_ns = real_ns + ?", (ns,))
            db.commit()
        db.close()
    return target


def facts(folder):
    """(role, op) -> transfer and wait in ms a step; findings; clocks."""
    found = jobs.report(folder)["jobs"][0]
    return ({(r["role"], r["op"], r.get("where")):
             (r["transfer_ms"], r["wait_ms"]) for r in found["roles"]},
            [(f["code"], f["text"].split(" kept ")[0], f["loss_ms"])
             for f in found["findings"]], found["quality"]["clocks"])


def near(a, b, share, ms):
    return a == b or (a is not None and b is not None and
                      abs(a - b) <= share * max(abs(a), abs(b)) + ms)


def difference(want, got, share, ms):
    """What got says otherwise than want; None: nothing."""
    if want[0].keys() != got[0].keys():
        return "roles %s, not %s" % (list(got[0]), list(want[0]))
    for key, (transfer, wait) in want[0].items():
        # Where one ends and the other begins depends on clocks, not the sum.
        most = share * (transfer + wait) + ms
        if not near(got[0][key][0], transfer, 0, most) or \
                not near(got[0][key][1], wait, 0, most):
            return "%s takes %s, not %s" % (key, got[0][key], (transfer, wait))
    if [f[:2] for f in want[1]] != [f[:2] for f in got[1]]:
        return "found %s, not %s" % (got[1], want[1])
    for mine, theirs in zip(want[1], got[1]):
        if not near(mine[2], theirs[2], share, ms):
            return "%s, not %s" % (theirs, mine)
    if len(got[2]) != 2 or got[2][1]["common"] != 0:
        return "clocks %s" % got[2]
    return None


def tell(name, got):
    print("%s: as on right clocks; host1 is %.6f s ahead, %.4g ppm fast, ends "
          "within %.3g us" % (name, got[2][1]["offset_s"],
                              got[2][1]["drift_ppm"],
                              got[2][1]["residual_us"]), flush=True)


def same(name, want, got, share, ms):
    found = difference(want, got, share, ms)
    if found:
        jobs.fail("%s: %s" % (name, found))
    tell(name, got)


def same_when_run(tmp, name, run_it, want):
    """Another run: how long computing takes is up to the machine, and what else
    that does; so it may take more than one."""
    for n in range(TRIES):
        trace = os.path.join(tmp, "%s %d" % (name, n))
        run_it(trace)
        got = facts(trace)
        found = difference(want, got, .35, 8)
        if not found:
            tell(name, got)
            return
        print("%s, run %d: %s" % (name, n, found), flush=True)
    jobs.fail("%s: not as on right clocks in %d runs" % (name, TRIES))


def run_right(tmp, fabric, name, job):
    """A run in which nothing else on this machine hides the slow rank."""
    for n in range(TRIES):
        trace = os.path.join(tmp, "%s right %d" % (name, n))
        run(fabric, trace, job)
        want = facts(trace)
        if job is PIPELINE or "STRAGGLER" in [f[0] for f in want[1]]:
            return trace, want
    return jobs.fail("%s: the slow rank is not found" % name)


def in_copies(tmp, name, trace, want):
    """The same run: nothing may change, but for what is rounded."""
    for seconds, ppm in ((-5000, 0), (7, 100), (3, -50), (0, 1000)):
        path = copy(trace, os.path.join(tmp, "%s%d,%d" % (name, seconds, ppm)),
                    seconds, ppm)
        same("%s %+d s %+d ppm" % (name, seconds, ppm), want, facts(path),
             .01, .01)


def wrong_clocks():
    """name -> words that set the clocks of what follows wrong."""
    found = {}
    space = "unshare --fork --kill-child --time --monotonic 5000" \
        " --boottime 5000"
    if subprocess.run(space.split() + ["true"],
                      capture_output=True).returncode == 0:
        found["time name space"] = space + ' env LD_PRELOAD="$SHIM"'
    else:
        print("no time name space here: left out")
    library = glob.glob(FAKETIME)
    if library:
        found["faketime"] = 'env FAKETIME="+7s x1.0001" LD_PRELOAD="$SHIM %s"' \
            % library[0]
    else:
        print("no libfaketime here: left out")
    return found


def main():
    with jobs.Scratch() as tmp:
        fabric = machine(tmp)
        for name, job in (("data parallel", JOB), ("pipeline", PIPELINE)):
            right, want = run_right(tmp, fabric, name, job)
            in_copies(tmp, name, right, want)
            for how, words in wrong_clocks().items():
                same_when_run(tmp, name + ", " + how,
                              lambda to, w=words: run(fabric, to, job, w),
                              want)


if __name__ == "__main__":
    main()
