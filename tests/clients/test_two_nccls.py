"""PyTorch's own backend and, in the same processes, a second copy of NCCL that
is opened by path and called through ctypes. Both are recorded completely and
told apart, groups that are open at the same time included."""
import os
import shutil

import clients
import jobs

RANKS, ROUNDS = 2, 20
SENT, ASKED = 10, 1000  # elements, by PyTorch and by the other


def of_library(db, library):
    """(function, count) -> ops, and the groups of its sends and receives."""
    ops = {}
    groups = {}
    for function, count, grp in db.execute(
            "SELECT k.function, c.count, o.grp FROM op o"
            " JOIN op_class c ON c.id = o.class JOIN op_kind k ON k.id = c.kind"
            " JOIN comm m ON m.id = c.comm WHERE m.library = ?", (library,)):
        ops[function, count] = ops.get((function, count), 0) + 1
        if function in ("ncclSend", "ncclRecv"):
            groups.setdefault(grp, []).append(function)
    return ops, groups


def pairs(groups):
    return len(groups) == ROUNDS and None not in groups and all(
        sorted(g) == ["ncclRecv", "ncclSend"] for g in groups.values())


def check(db, other):
    libraries = dict(db.execute("SELECT path, id FROM library"))
    if len(libraries) != 2 or other not in libraries:
        jobs.fail("libraries: %s" % libraries)
    second = libraries.pop(other)
    first, = libraries.values()
    ops, groups = of_library(db, second)
    want = {("ncclSend", ASKED): ROUNDS, ("ncclRecv", ASKED): ROUNDS,
            ("ncclAllReduce", ASKED): ROUNDS}
    if ops != want or not pairs(groups):
        jobs.fail("the other NCCL: %s, groups %s" % (ops, groups))
    torch_ops, torch_groups = of_library(db, first)
    for key in (("ncclSend", SENT), ("ncclRecv", SENT),
                ("ncclAllReduce", ASKED)):
        if torch_ops.get(key) != ROUNDS:
            jobs.fail("PyTorch's NCCL: %s" % torch_ops)
    if not pairs(torch_groups) or set(groups) & set(torch_groups):
        jobs.fail("groups: %s and %s" % (groups, torch_groups))
    if db.execute("SELECT count(*) FROM loss").fetchone()[0]:
        jobs.fail("losses")
    return db.execute("SELECT count(*) FROM op").fetchone()[0]


def main():
    clients.need_venv()
    with jobs.Scratch() as tmp:
        other = os.path.join(tmp, "other", "libnccl.so.2")
        os.mkdir(os.path.dirname(other))
        shutil.copy(os.path.join(jobs.BUILD, "fabric", "libnccl.so.2"), other)
        argv = [other, ROUNDS]
        trace = os.path.join(tmp, "trace")
        bare = clients.torchrun("two_nccls.py", argv, RANKS)
        traced = clients.torchrun("two_nccls.py", argv, RANKS, env={
            "LD_PRELOAD": jobs.SHIM, "COMMTRACE_DIR": trace})
        if (bare.stdout, traced.stdout) != ("two copies agree\n",) * 2:
            jobs.fail("%r, traced %r" % (bare.stdout, traced.stdout))
        dbs = jobs.traces(trace)
        if sorted(dbs) != list(range(RANKS)):
            jobs.fail("traces of %s" % sorted(dbs))
        n = [check(db, other) for db in dbs.values()]
        jobs.report(trace)
        print("two copies of NCCL in each of %d ranks, %s ops: told apart" %
              (RANKS, n))


if __name__ == "__main__":
    main()
