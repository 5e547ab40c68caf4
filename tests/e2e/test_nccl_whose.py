"""Lines of NCCL's log about connections at first use and about collectives name
no communicator. Each rank of a training job is in five of them: every
connection has to go to one whose two ranks are where its transport says, and
every collective of a rank 0 has its line."""
import collections
import glob
import os
import sqlite3

import jobs

PER_HOST = 4
TRAIN = ["train3d", "--tp", 2, "--pp", 2, "--dp", 2, "--layers", 2,
         "--micro-batches", 2, "--steps", 3]


def read(folder):
    """Each rank's file, by rank."""
    files = {}
    for path in glob.glob(os.path.join(folder, "*.db")):
        db = sqlite3.connect(path)
        files[db.execute("SELECT rank FROM process").fetchone()[0]] = db
    return files


def members(files):
    """Rank in the job by communicator and rank in it."""
    return {(uid, rank): job_rank for job_rank, db in files.items()
            for uid, rank in db.execute("SELECT uid, rank FROM comm")}


def check_connections(rank, db, where):
    rows = db.execute("SELECT uid, src, dst, connector, via FROM conn"
                      " LEFT JOIN comm ON comm.id = conn.comm").fetchall()
    for uid, src, dst, _, via in rows:
        if uid is None:
            jobs.fail("rank %d: a connection of nobody: %s" % (rank, via))
        ends = where[uid, src] // PER_HOST, where[uid, dst] // PER_HOST
        expected = "P2P/" if ends[0] == ends[1] else "NET/IB"
        if not via.startswith(expected):
            jobs.fail("rank %d: %d -> %d of %x via %s, on hosts %d and %d" %
                      (rank, src, dst, uid, via, *ends))
    used = {uid for uid, in db.execute(
        "SELECT DISTINCT uid FROM op_class JOIN comm ON comm.id = comm")}
    connected = {row[0] for row in rows}
    if used != connected:
        jobs.fail("rank %d: used %s, connected %s" % (rank, used, connected))


def check_choices(rank, db):
    ops = collections.Counter(db.execute(
        "SELECT comm, base, count * bytes FROM op JOIN op_class ON"
        " op_class.id = op.class JOIN comm ON comm.id = comm JOIN data_type ON"
        " data_type.id = type JOIN op_kind ON op_kind.id = kind"
        " WHERE comm.rank = 0 AND nranks > 1"
        " AND op_kind.class IN ('COLL', 'ROOTED')"))
    choices = collections.Counter(db.execute(
        "SELECT comm, kind, bytes FROM choice JOIN choice_class ON"
        " choice_class.id = class WHERE source = 'log'"))
    if ops != choices:
        jobs.fail("rank %d: called, not chosen for: %s; chosen, not called: %s"
                  % (rank, ops - choices, choices - ops))
    return len({comm for comm, _, _ in ops}), sum(ops.values())


def main():
    with jobs.Scratch() as tmp:
        jobs.job("dgx_h100", 8, TRAIN, trace=tmp,
                 env={"COMMTRACE_NCCL_LOG": "tuning"})
        files = read(tmp)
        where = members(files)
        several = total = 0
        for rank, db in sorted(files.items()):
            check_connections(rank, db, where)
            comms, ops = check_choices(rank, db)
            several += comms > 1
            total += ops
        if len(files) != 8 or not several or not total:
            jobs.fail("%d files, %d with choices of several communicators"
                      % (len(files), several))


main()
