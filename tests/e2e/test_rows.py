"""Every row of nccl_ops.def is called in each way in which a program can come
to NCCL's functions. NCCL sees the same arguments bit for bit with and without
the recorder, and the trace holds the row. Run as test_rows.py ROWS_LINKED
ROWS_LOCAL ROWS_MODULE ROWS_DLSYM LIBRARY."""
import os
import re
import subprocess
import sys

import jobs

# What a communicator call leaves in the trace: an origin of comm, an event, or
# what only brackets other calls.
MAKES = {"ncclCommInitRank": "init", "ncclCommInitRankConfig": "init",
         "ncclCommInitAll": "init_all", "ncclCommSplit": "split",
         "ncclCommInitRankScalable": "scalable", "ncclCommShrink": "shrink",
         "ncclCommGrow": "grow"}
HAPPENS = {"ncclCommDestroy": "destroy", "ncclCommAbort": "abort",
           "ncclCommFinalize": "finalize", "ncclCommRegister": "register",
           "ncclCommDeregister": "deregister", "ncclCommRevoke": "revoke",
           "ncclCommGetUniqueId": "unique_id", "ncclCommSuspend": "suspend",
           "ncclCommResume": "resume",
           "ncclCommWindowRegister": "window_register",
           "ncclCommWindowDeregister": "window_deregister"}
# The stand-in reports a remote error, once per communicator.
ERROR = "ncclCommGetAsyncError"
BRACKETS = {"ncclGroupStart", "ncclGroupEnd", "ncclGroupSimulateEnd"}
# NCCL sets itself up in it; no row tells of it.
SILENT = {"ncclGetUniqueId"}


def rows():
    """Functions by kind of row, from the table itself."""
    path = os.path.join(jobs.ROOT, "include", "commtrace", "nccl_ops.def")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    ops = re.findall(r"^OP\(\w+, \"\w+\", (nccl\w+)", text, re.M)
    comms = re.findall(r"^(?:COMM|EVENT|BRACKET)\((nccl\w+)", text, re.M)
    if len(ops) < 20 or len(comms) < 20:
        jobs.fail("the table is not understood")
    return set(ops), set(comms)


def run(argv, trace=None):
    env = dict(os.environ)
    if trace:
        env.update(LD_PRELOAD=jobs.SHIM, COMMTRACE_DIR=trace)
    done = subprocess.run(argv, env=env, capture_output=True, text=True,
                          timeout=120)
    if done.returncode != 0 or done.stderr:
        jobs.fail("%s: exit %d\n%s" % (argv, done.returncode, done.stderr))
    return done.stdout


def equal(what, got, want):
    for g, w in zip(got, want):
        if g != w:
            jobs.fail("%s: %r is recorded of %r" % (what, g, w))
    if len(got) != len(want):
        jobs.fail("%s: %d of %d" % (what, len(got), len(want)))


def count(rows_of):
    n = {}
    for row in rows_of:
        n[row] = n.get(row, 0) + 1
    return n


def check(way, lines, db):
    ops = [l.split()[1:] for l in lines if l.startswith("op ")]
    calls = [l.split()[1:] for l in lines if l.startswith("call ")]
    got = db.execute(
        "SELECT k.function, c.count, coalesce(c.type, -1),"
        " coalesce(c.redop, -1), coalesce(c.peer, -1), c.stream, o.flags >> 16"
        " FROM op o JOIN op_class c ON c.id = o.class"
        " JOIN op_kind k ON k.id = c.kind ORDER BY o.id")
    equal(way + ", ops", [[str(v) for v in row] for row in got], ops)
    made = [MAKES[f] for f, result in calls if f in MAKES and result == "0"]
    made += ["init_all"] * made.count("init_all")  # of two devices
    equal(way + ", communicators", sorted(count(
        o for o, in db.execute("SELECT origin FROM comm")).items()),
        sorted(count(made).items()))
    events = [(HAPPENS[f], int(r)) for f, r in calls if f in HAPPENS]
    events += [("error", 6) for f, r in calls if f == ERROR and r == "0"]
    equal(way + ", events", sorted(count(db.execute(
        "SELECT what, result FROM comm_event").fetchall()).items()),
        sorted(count(events).items()))
    equal(way + ", library", db.execute(
        "SELECT count(*), max(version) FROM library").fetchall(), [(1, 23203)])
    # The stand-in does not number grown communicators as NCCL does.
    equal(way + ", losses", db.execute(
        "SELECT cause FROM loss WHERE cause <> 'grown_id'").fetchall(), [])
    return {f for f, *_ in ops}, {f for f, _ in calls}


def main():
    linked, local, module, dlsym, library = sys.argv[1:]
    op_rows, comm_rows = rows()
    known = set(MAKES) | set(HAPPENS) | BRACKETS | SILENT | {ERROR}
    equal("rows whose trace is known", sorted(known), sorted(comm_rows))
    for way, argv in (("linked", [linked]), ("RTLD_LOCAL", [local, module]),
                      ("dlsym", [dlsym, library])):
        with jobs.Scratch() as tmp:
            bare = run(argv)
            trace = os.path.join(tmp, "trace")
            lines = run(argv, trace).splitlines()
            equal(way + ", calls", [l.rsplit(" ", 1) for l in lines],
                  [l.rsplit(" ", 1) for l in bare.splitlines()])
            dbs = list(jobs.traces(trace).values())
            if len(dbs) != 1:
                jobs.fail("%s: %d traces" % (way, len(dbs)))
            ops, calls = check(way, lines, dbs[0])
            equal(way + ": rows called", (sorted(ops), sorted(calls)),
                  (sorted(op_rows), sorted(comm_rows)))
            print("%s: %d calls of %d rows" %
                  (way, len(lines), len(ops) + len(calls)))


if __name__ == "__main__":
    main()
