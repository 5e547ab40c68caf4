"""test_cli_selection.py COMMTRACE TRACEGEN: what --steps, --ranks, --from and
--to choose is counted, no more and no less, and all that is chosen is as it is
in the whole job."""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

COMMTRACE, TRACEGEN = sys.argv[1:3]
RANKS = 8


def run(*words, code=0):
    done = subprocess.run([COMMTRACE, *words], capture_output=True, text=True)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done


def merge(trace, *options):
    """job.db of a selection, with the whole job's as `whole`."""
    name = "job%d.db" % merge.n
    merge.n += 1
    run("merge", "--db", name, *options, trace)
    db = sqlite3.connect(name)
    db.execute("ATTACH ? AS whole", ("whole-%s.db" % trace,))
    return db


merge.n = 0


def one(db, sql, *values):
    return db.execute(sql, values).fetchone()[0]


def same(db, selected, whole, what):
    """Rows as bags: of the job.db, and of the whole one."""
    rows = [sorted(map(repr, db.execute(sql))) for sql in (selected, whole)]
    assert rows[0] and rows[0] == rows[1], (what, len(rows[0]), len(rows[1]))


def check_ops(db, condition):
    """The ops that hold `condition` (of whole.v_op as w) and nothing else."""
    keys = ("SELECT w.process, w.id FROM whole.v_op w WHERE " + condition)
    same(db, "SELECT process, id FROM op", keys, "ops")
    columns = "o.process, o.id, class, ordinal, grp, enter_ns, gpu_ns, flags"
    same(db, "SELECT %s FROM op o" % columns,
         "SELECT %s FROM whole.op o WHERE (process, id) IN (%s)" % (
             columns, keys), "op")
    columns = ("process, op, step, transfer_ns, wait_ns, "
               "graph, choice, told")
    same(db, "SELECT %s FROM op_match" % columns,
         "SELECT %s FROM whole.op_match WHERE (process, op) IN (%s)" % (
             columns, keys), "op_match")
    # Usages and instances are numbered anew: by what they are.
    same(db, "SELECT m.process, m.op, i.uid, i.kind, i.ordinal, i.bytes, "
             "i.transfer_ns, u.role, u.link FROM op_match m "
             "JOIN instance i ON i.id = m.instance JOIN usage u ON u.id = i.usage",
         "SELECT m.process, m.op, i.uid, i.kind, i.ordinal, i.bytes, "
         "i.transfer_ns, u.role, u.link FROM whole.op_match m "
         "JOIN whole.instance i ON i.id = m.instance "
         "JOIN whole.usage u ON u.id = i.usage "
         "WHERE (m.process, m.op) IN (%s)" % keys, "instances")
    assert one(db, "SELECT count(*) FROM instance") == one(
        db, "SELECT count(DISTINCT instance) FROM op_match")
    assert one(db, "SELECT sum(calls) FROM usage") == one(
        db, "SELECT count(*) FROM instance")
    # Launches have the ops that they had.
    assert one(db, "SELECT count(*) FROM launch l LEFT JOIN op_match m ON "
                   "m.process = l.process AND m.launch = l.id "
                   "WHERE m.op IS NULL") == 0
    same(db, "SELECT m.process, m.op, l.grp, l.gpu_ns FROM op_match m JOIN "
             "launch l ON l.process = m.process AND l.id = m.launch",
         "SELECT m.process, m.op, l.grp, l.gpu_ns FROM whole.op_match m JOIN "
         "whole.launch l ON l.process = m.process AND l.id = m.launch "
         "WHERE (m.process, m.op) IN (%s)" % keys, "launches")
    # What is summed is what is there.
    same(db, "SELECT process, step, sum(ops), sum(transfer_ns), sum(wait_ns) "
             "FROM op_sum GROUP BY 1, 2",
         "SELECT process, step, count(*), sum(transfer_ns), sum(wait_ns) "
         "FROM op_match GROUP BY 1, 2", "sums")
    ops, of_ops = db.execute("SELECT ops, of_ops FROM selection").fetchone()
    assert ops == one(db, "SELECT count(*) FROM op")
    assert of_ops == one(db, "SELECT count(*) FROM whole.op")


def report(trace, *options):
    return json.loads(run("report", "--json", *options, trace).stdout)["jobs"][0]


def text_without_selection(text):
    head, rest = text.split("SELECTION\n")
    return head + rest[rest.index("VERDICT"):]


def check_everything(trace):
    """A selection of all changes nothing but that it is said."""
    whole = run("report", trace).stdout
    for options in (["--from", "0"], ["--ranks", "0-%d" % (RANKS - 1)],
                    ["--to", "2099-01-01T00:00:00Z"]):
        chosen = run("report", *options, trace).stdout
        assert text_without_selection(chosen) == whole, options


def check_steps(trace, last):
    db = merge(trace, "--steps", "2..3")
    check_ops(db, "w.step IN (2, 3)")
    assert {n for n, in db.execute("SELECT n FROM step")} == {2, 3}
    assert one(db, "SELECT steps FROM job") == 2
    same(db, "SELECT process, n, start_ns, end_ns, kind FROM step",
         "SELECT process, n, start_ns, end_ns, kind FROM whole.step "
         "WHERE n IN (2, 3)", "steps")
    same(db, "SELECT rank, step, role, link, ops, bytes, "
             "round(total_ms, 6) FROM v_step_role",
         "SELECT rank, step, role, link, ops, bytes, round(total_ms, 6) "
         "FROM whole.v_step_role WHERE step IN (2, 3)", "v_step_role")
    job = report(trace, "--steps", "2..3")
    assert job["selection"]["ops"] == job["job"]["ops"] == one(
        db, "SELECT count(*) FROM op")
    assert job["job"]["steps"] == job["selection"]["whole_steps"] == 2
    check_ops(merge(trace, "--steps", "..1"), "w.step <= 1")
    check_ops(merge(trace, "--steps", "%d.." % last), "w.step = %d" % last)
    check_ops(merge(trace, "--steps", "4"), "w.step = 4")


def check_ranks(trace):
    db = merge(trace, "--ranks", "6,0-1,1")
    check_ops(db, "w.rank IN (0, 1, 6)")
    assert one(db, "SELECT ranks FROM selection") == "0,1,6"
    # Waits of a communication are those of the chosen ranks.
    assert one(db, "SELECT count(*) FROM instance i WHERE ranks <> (SELECT "
                   "count(*) FROM op_match m WHERE m.instance = i.id)") == 0
    assert one(db, "SELECT count(*) FROM instance i WHERE wait_ns <> (SELECT "
                   "max(wait_ns) FROM op_match m WHERE m.instance = i.id)") == 0
    assert one(db, "SELECT count(*) FROM member") == one(
        db, "SELECT count(*) FROM whole.member")
    # What a rank spends is a mean over the chosen ones.
    whole, alone = report(trace), report(trace, "--ranks", "3")
    spent = sum(role["transfer_ms"] + role["wait_ms"]
                for role in alone["roles"] if role["transfer_ms"])
    steps = one(db, "SELECT steps FROM whole.job")
    assert abs(spent - one(
        db, "SELECT sum(total_ms) FROM whole.v_step_role WHERE rank = 3 "
            "AND step_kind = 'steady'") / steps) < .02 * spent, spent
    assert whole["job"]["ops"] == one(db, "SELECT count(*) FROM whole.op")


def check_budget(trace):
    """VERDICT speaks of the chosen ranks, as ROLES does: here each of them is
    in one group of each role."""
    for options in (["--ranks", "0-1"], ["--ranks", "3"]):
        job = report(trace, *options)
        text = " ".join(run("report", *options, trace).stdout.split())
        budget = {role: float(transfer) + float(wait) for role, transfer, wait
                  in re.findall(r"(\w+) ([\d.]+) \+ ([\d.]+)[, ]",
                                text[text.index("transfer + wait: "):])}
        assert set(budget) >= {"TP", "PP", "DP"}, text
        for role, percent in budget.items():
            told = sum(r["share_percent"] for r in job["roles"]
                       if r["role"] == role)
            assert abs(percent - told) <= .12 + .05 * told, (
                options, role, percent, told)


# When an op was called, in the job's time: of one host that is simple.
AT = ("(SELECT w.enter_ns + p.t0_ns - (SELECT min(t0_ns) FROM whole.process) "
      "FROM whole.process p WHERE p.process = w.process)")


def check_times(trace):
    db = merge(trace, "--from", "100ms", "--to", "0.25")
    check_ops(db, "%s >= 100000000 AND %s < 250000000" % (AT, AT))
    start = one(db, "SELECT start_real_ns FROM selection")
    assert start == one(db, "SELECT start_real_ns FROM whole.job")
    # Steps that are not whole keep their number, and count in no "per step".
    kinds = dict(db.execute("SELECT n, kind FROM step WHERE process = 0"))
    assert kinds and "cut" in kinds.values() and "steady" in kinds.values()
    assert one(db, "SELECT steps FROM job") == min(
        n for n, in db.execute("SELECT count(*) FROM step WHERE "
                               "kind = 'steady' GROUP BY process"))
    halves = [one(merge(trace, option, "170ms"), "SELECT count(*) FROM op")
              for option in ("--from", "--to")]
    assert min(halves) > 0 and sum(halves) == one(
        db, "SELECT count(*) FROM whole.op")
    # What is called at that very moment is of the later part.
    at = one(db, "SELECT %s FROM whole.op w WHERE id = 500 AND process = 1" % AT)
    moment = "%d.%09d" % divmod(at, 10**9)
    check_ops(merge(trace, "--from", moment), "%s >= %d" % (AT, at))
    check_ops(merge(trace, "--to", moment), "%s < %d" % (AT, at))
    job = report(trace, "--from", "100ms", "--to", "101ms")
    assert job["job"]["steps"] == 0 and job["job"]["step_ms"] is None
    both = merge(trace, "--from", "100ms", "--steps", "1..2", "--ranks", "2-5")
    check_ops(both, "%s >= 100000000 AND w.step IN (1, 2) AND "
                    "w.rank BETWEEN 2 AND 5" % AT)


def check_dates(trace):
    seconds = one(merge(trace, "--from", "0"),
                  "SELECT start_real_ns FROM selection") // 10**9
    date = subprocess.run(["date", "-u", "-d", "@%d" % (seconds + 1),
                           "+%Y-%m-%dT%H:%M:%S"], capture_output=True,
                          text=True, check=True).stdout.strip()
    by_date = run("report", "--json", "--to", date + "Z", trace).stdout
    start = json.loads(by_date)["jobs"][0]["selection"]
    assert start["to_s"] == 1 - (one(
        merge(trace, "--from", "0"), "SELECT start_real_ns FROM selection"
    ) % 10**9) / 1e9, start


def check_wrong_clocks():
    """Hosts whose clocks are off by seconds: the same ops are chosen."""
    chosen = []
    for name, options in (("right", []),
                          ("wrong", ["--host-clock", "1,3000000,0"])):
        subprocess.run([TRACEGEN, "--tp", "2", "--pp", "2", "--dp", "2",
                        "--hosts", "2", "--steps", "6", "--out", name,
                        *options], check=True, stdout=subprocess.DEVNULL)
        run("merge", "--db", "whole-%s.db" % name, name)
        chosen.append(list(merge(name, "--from", "90ms", "--to", "200ms")
                           .execute("SELECT process, id FROM op")))
    # An op at the very edge may fall on its other side.
    assert len(chosen[0]) > 1000
    assert len(set(chosen[0]) ^ set(chosen[1])) <= 8, len(
        set(chosen[0]) ^ set(chosen[1]))


def check_caps():
    """What is wrong on all ranks fills no screen, and the worst comes first."""
    for copy in ("lossy2", "lossy3"):
        shutil.copytree("lossy", copy)
    with open("lossy3/zz.db", "wb") as other: # no copy hides it
        other.write(b"SQLite format 3\0")
    done = run("report", "lossy", "lossy2", "lossy3")
    assert "skipped lossy3/zz.db" in done.stderr, done.stderr
    assert "not read       lossy3/zz.db" in done.stdout
    assert done.stderr.count("same process") == RANKS
    assert "skipped %d copies more" % RANKS in done.stderr
    text = run("report", "lossy").stdout
    assert text.count("records of kind op") == 4, text
    assert re.search(r"and of 4 ranks more, \d+ records", text)
    lost = [p["lost"] for p in report("lossy")["quality"]["processes"]]
    assert len(lost) == RANKS and lost == sorted(lost, reverse=True), lost
    text = run("report", "dead").stdout
    assert "died?: died, or runs where" in text
    assert max(map(len, text.splitlines())) <= 100


def check_troubles():
    """How a job ended is no matter of what was chosen; losses are the chosen
    ranks'."""
    for name, options in (("dead", ["--kill", "5@400"]),
                          ("lossy", ["--drop", "0.01"])):
        subprocess.run([TRACEGEN, "--tp", "2", "--pp", "2", "--dp", "2",
                        "--steps", "8", "--out", name, *options],
                       check=True, stdout=subprocess.DEVNULL)
        run("merge", "--db", "whole-%s.db" % name, name)
    codes = [{f["code"] for f in report("dead", *options)["findings"]}
             for options in ([], ["--steps", "1..2"], ["--to", "200ms"])]
    assert "PROCESS_DIED" in codes[0] and codes[1] == codes[2] == codes[0]
    check_caps()
    job = report("lossy", "--to", "200ms", "--ranks", "2-4")
    lost = one(merge("lossy", "--ranks", "2-4"),
               "SELECT sum(l.n) FROM whole.loss l JOIN whole.place p "
               "ON p.process = l.process WHERE p.rank IN (2, 3, 4)")
    assert job["job"]["lost_ops"] == lost > 0
    assert "OPS_LOST" in {f["code"] for f in job["findings"]}
    assert {p["rank"] for p in job["quality"]["processes"]} == {2, 3, 4}


def check_refusals(trace):
    for options, message in (
            (["--steps", "99"], "there are steps 0..7"),
            (["--steps", "5..2"], "ends before it begins"),
            (["--steps", ".."], "is not A..B"),
            (["--steps", "1..2x"], "is not A..B"),
            (["--steps", "-1"], "is not A..B"),
            (["--ranks", "99"], "rank 99 has no trace"),
            (["--ranks", "3-1"], "is not a list"),
            (["--ranks", "1,"], "is not a list"),
            (["--ranks", ""], "is not a list"),
            (["--from", "soon"], "is neither a time"),
            (["--from", "1d"], "is neither a time"),
            (["--from", "2026-13-01T00:00"], "is neither a time"),
            (["--from", "2026-02-30T00:00"], "is neither a time"),
            (["--from", "9999-12-31T00:00"], "is neither a time"),
            (["--from", "1h"], "no operation is in the selection: the job "
             "began at 20"),
            (["--from", "1h"], "Z, its last call is 0."),
            (["--from", "2s", "--to", "1s"], "2s is not before --to 1s"),
            (["--from", "1", "--to", "0.5"], "1 is not before --to 0.5"),
            (["--from", "2099-01-01T00:00", "--to", "1"], "is not before")):
        done = run("report", *options, trace, code=2)
        assert message in done.stderr and not done.stdout, (options, done)


def check_two_jobs(trace):
    """A job of which nothing is chosen is left out, and said."""
    subprocess.run([TRACEGEN, "--tp", "2", "--steps", "20", "--seed", "2",
                    "--out", "second"],
                   check=True, stdout=subprocess.DEVNULL)
    done = run("report", "--json", "--steps", "12..", "--db", "two.db", trace,
               "second")
    assert len(json.loads(done.stdout)["jobs"]) == 1
    assert "nothing of job" in done.stderr, done.stderr
    db = sqlite3.connect("two.db")
    assert one(db, "SELECT count(DISTINCT job) FROM place") == 1
    assert one(db, "SELECT count(*) FROM process") == 2


def check():
    subprocess.run([TRACEGEN, "--tp", "2", "--pp", "2", "--dp", "2", "--steps",
                    "8", "--nccl", "kernel", "--out", "good"],
                   check=True, stdout=subprocess.DEVNULL)
    run("merge", "--db", "whole-good.db", "good")
    last = one(sqlite3.connect("whole-good.db"), "SELECT max(n) FROM step")
    check_everything("good")
    check_steps("good", last)
    check_ranks("good")
    check_budget("good")
    check_times("good")
    check_dates("good")
    check_wrong_clocks()
    check_troubles()
    check_refusals("good")
    check_two_jobs("good")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        check()
        os.chdir("/")
    print("what is chosen is what counts")


if __name__ == "__main__":
    main()
