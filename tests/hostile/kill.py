"""kill.py: SIGKILL of one rank in the middle of a step. Its database and ring
together hold every op up to the kill, the last one in flight; the other ranks'
files are whole."""
import os
import shutil

import traces
import jobs

TYPES = ("AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Bcast",
         "Reduce", "Send", "Recv")
VICTIM, OP = 2, 150


def logged(path):
    for line in open(path):
        words = line.split()
        peer = None if words[3] == "-" else int(words[3])
        yield TYPES.index(words[0]), int(words[1]), peer


def main():
    with jobs.Scratch() as tmp:
        trace, log = os.path.join(tmp, "trace"), os.path.join(tmp, "log")
        os.mkdir(log)
        machine = os.path.join(tmp, "faulty.fabric")
        shutil.copy(os.path.join(jobs.MACHINES, "two_hosts.fabric"), machine)
        with open(machine, "a") as f:
            f.write("fault rank=%d op=%d action=die\n" % (VICTIM, OP))
        done = jobs.job("two_hosts", 4,
                        ["train3d", "--tp", 2, "--pp", 2, "--steps", 20,
                         "--log", log], trace, {"FABRIC": machine}, False)
        if done.returncode == 0:
            traces.fail("the job did not die")
        ranks = jobs.traces(trace)
        if sorted(ranks) != list(range(4)):
            traces.fail("traces of ranks %s" % sorted(ranks))
        left = []
        for path in traces.databases(trace):
            db = traces.open_db(path)
            rank = traces.one(db, "SELECT rank FROM process")
            if traces.one(db, "PRAGMA integrity_check") != "ok":
                traces.fail("rank %d: damaged" % rank)
            got = traces.all_ops(path)
            want = list(logged(os.path.join(log, "rank%d.log" % rank)))
            # A rank that is ended from outside may have logged the call that
            # it was about to make.
            if [op[:3] for op in got] != want and (
                    rank == VICTIM or [op[:3] for op in got] != want[:-1]):
                traces.fail("rank %d: %d ops recorded, %d issued" %
                            (rank, len(got), len(want)))
            if rank == VICTIM:
                if len(got) != OP:
                    traces.fail("the victim issued %d" % len(got))
                if got[-1][3] or not all(op[3] for op in got[:-1]):
                    traces.fail("not exactly the last op is in flight")
            left.append(traces.ring_path(db))
        # A later process on this host puts the rings beside their databases.
        jobs.job("two_hosts", 1, ["train3d", "--steps", 1],
                 os.path.join(tmp, "later"))
        for path, ring in zip(traces.databases(trace), left):
            if os.path.exists(ring):
                traces.fail("%s is still there" % ring)
            if not os.path.exists(path + ".ring"):
                traces.fail("%s has no ring" % path)
    print("rank %d died in op %d; all of them are there" % (VICTIM, OP))


if __name__ == "__main__":
    main()
