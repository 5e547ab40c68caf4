"""Acceptance: every rank's trace is, op by op, what the job itself logged."""
import os

import jobs

OPS = """SELECT substr(k.function, 5), c.count, t.name, c.peer, m.uid
           FROM op o JOIN op_class c ON c.id = o.class
                     JOIN op_kind k ON k.id = c.kind
                     JOIN data_type t ON t.id = c.type
                     JOIN comm m ON m.id = c.comm
          ORDER BY o.id"""


# nccl.h's names, which the job logs, by nccl-tests', which traces use.
TYPES = {"float": "float32", "half": "float16"}


def recorded(db, uids):
    for kind, count, dtype, peer, uid in db.execute(OPS):
        yield "%s %d %s %s %s" % (kind, count, TYPES.get(dtype, dtype),
                                  "-" if peer is None else peer,
                                  ",".join(map(str, uids[uid])))


def compare(rank, got, want):
    for i, (g, w) in enumerate(zip(got, want)):
        if g != w:
            jobs.fail("rank %d op %d: recorded %r, issued %r" % (rank, i, g, w))
    if len(got) != len(want):
        jobs.fail("rank %d: %d ops recorded, %d issued" %
                  (rank, len(got), len(want)))


def main():
    with jobs.Scratch() as tmp:
        trace, log = os.path.join(tmp, "trace"), os.path.join(tmp, "log")
        os.mkdir(log)
        jobs.job("two_hosts", 8,
                 ["train3d", "--tp", 2, "--pp", 2, "--dp", 2, "--steps", 3,
                  "--layers", 4, "--micro-batches", 4, "--log", log], trace)
        dbs = jobs.traces(trace)
        if sorted(dbs) != list(range(8)):
            jobs.fail("traces of ranks %s" % sorted(dbs))
        uids = jobs.members(dbs)
        total = 0
        for rank, db in dbs.items():
            with open(os.path.join(log, "rank%d.log" % rank)) as f:
                want = f.read().splitlines()
            compare(rank, list(recorded(db, uids)), want)
            total += len(want)
            lost, = db.execute("SELECT count(*) FROM loss").fetchone()
            if lost:
                jobs.fail("rank %d lost ops" % rank)
        if total < 8 * 3 * 2 * 4 * 4 or not any("Bcast" in w for w in want):
            jobs.fail("the job did too little: %d ops" % total)
        print("%d ops on 8 ranks, all equal" % total)


if __name__ == "__main__":
    main()
