"""What the recorder stores of a job on the fabric: GPU times against the
machine's description, topology, sampling; and that the job does not change."""
import os

import jobs

JOB = ["train3d", "--tp", 2, "--pp", 2, "--dp", 2, "--steps", 3]


def one(db, sql):
    return db.execute(sql).fetchone()[0]


def unchanged(tmp):
    bare = jobs.job("two_hosts", 8, JOB)
    traced = jobs.job("two_hosts", 8, JOB, os.path.join(tmp, "same"))
    if (bare.stdout, bare.stderr) != (traced.stdout, traced.stderr):
        jobs.fail("output differs: %r, %r" % (bare, traced))
    wrong = ["train3d", "--tp", 2, "--pp", 3]
    bare = jobs.job("two_hosts", 8, wrong, check=False)
    traced = jobs.job("two_hosts", 8, wrong, os.path.join(tmp, "wrong"),
                      check=False)
    if (bare.returncode, bare.stdout) != (traced.returncode, traced.stdout):
        jobs.fail("a failing job ends differently: %r, %r" % (bare, traced))


def times(db):
    """Every op is timed, at the place where it ran; on one stream nothing
    overlaps; an interval lies inside the life of the process."""
    if one(db, "SELECT count(*) FROM v_op WHERE gpu_ns IS NULL OR"
               " time_source NOT IN ('event', 'group') OR state <> 'done'"):
        jobs.fail("ops without GPU time")
    if one(db, "SELECT count(*) FROM op WHERE flags & 3 = 0"):
        jobs.fail("ops without a time source")
    if not one(db, "SELECT count(*) FROM launch"):
        jobs.fail("no group was seen")
    spans = db.execute(
        "SELECT c.stream, o.enter_ns + o.gpu_off_ns AS start, o.gpu_ns FROM op"
        " o JOIN op_class c ON c.id = o.class WHERE o.gpu_ns NOTNULL UNION ALL"
        " SELECT stream, enter_ns + gpu_off_ns, gpu_ns FROM launch"
        " ORDER BY 1, 2").fetchall()
    # A position is as sure as its anchor, and the trace says how sure that is.
    unsure = 50000 + one(db, "SELECT max(width_ns) FROM clock"
                             " WHERE device NOTNULL")
    for (stream, start, ns), (after, later, _) in zip(spans, spans[1:]):
        if stream == after and later < start + ns - unsure:
            jobs.fail("overlap on a stream: %d + %d, %d" % (start, ns, later))
    early, end = one(db, "SELECT min(enter_ns) FROM op"), one(
        db, "SELECT end_ns FROM process")
    if spans[0][1] < early - unsure or max(s + n for _, s, n in spans) > end:
        jobs.fail("GPU times outside of the process")


def recorded(tmp):
    trace = os.path.join(tmp, "times")
    jobs.job("two_hosts", 8, JOB, trace, {"COMMTRACE_TIMING": "all"})
    dbs = jobs.traces(trace)
    for rank, db in dbs.items():
        times(db)
        device = db.execute("SELECT name, source, length(uuid), pci FROM"
                            " device").fetchall()
        if [d[:3] for d in device] != [("Fabric H100", "nvml", 40)]:
            jobs.fail("device %s" % device)
        if one(db, "SELECT count(*) FROM gpu_link WHERE kind = 'nvswitch'"
                   " AND links > 0") != 1:
            jobs.fail("rank %d: no NVSwitch" % rank)
        if one(db, "SELECT count(*) FROM clock WHERE device = 0 OR device > 0"
               ) < 1:
            jobs.fail("rank %d: no tie of its GPU's clock" % rank)
        # Until there is one, no GPU time can be read.
        if one(db, "SELECT min(at_ns) FROM clock WHERE device NOTNULL") > one(
                db, "SELECT min(enter_ns) FROM op"):
            jobs.fail("rank %d: its GPU's clock was tied too late" % rank)
        if one(db, "SELECT value FROM meta WHERE key = 'closed'") != "1":
            jobs.fail("rank %d: not closed" % rank)
        if one(db, "SELECT count(*) FROM loss"):
            jobs.fail("rank %d: losses" % rank)
    hosts = {one(db, "SELECT host_id FROM process") for db in dbs.values()}
    if len(hosts) != 2:
        jobs.fail("hosts %s" % hosts)
    jobs.members(dbs)


def chosen(db):
    """(communicator, ordinal) of the collectives that were timed."""
    return set(db.execute(
        "SELECT m.uid, o.ordinal FROM op o JOIN op_class c ON c.id = o.class"
        " JOIN comm m ON m.id = c.comm WHERE o.flags & 1 AND c.peer IS NULL"))


def sampled(tmp):
    trace = os.path.join(tmp, "sample")
    jobs.job("two_hosts", 8, JOB, trace, {"COMMTRACE_TIMING": "sample:4"})
    dbs = jobs.traces(trace)
    by_comm = {}
    for rank, db in dbs.items():
        mine = chosen(db)
        for uid, in db.execute("SELECT uid FROM comm"):
            picked = sorted(n for u, n in mine if u == uid)
            if by_comm.setdefault(uid, picked) != picked:
                jobs.fail("ranks of a communicator timed different ops")
        if not one(db, "SELECT count(*) FROM op WHERE flags & 16"):
            jobs.fail("rank %d: everything was timed" % rank)
        if db.execute("SELECT timing, sample_shift FROM policy").fetchall() \
                != [("sample", 2)]:
            jobs.fail("rank %d: policy is not told" % rank)
    if not any(by_comm.values()):
        jobs.fail("nothing was timed")
    off = os.path.join(tmp, "off")
    jobs.job("two_hosts", 2, ["train3d", "--tp", 2], off,
             {"COMMTRACE_TIMING": "off"})
    for db in jobs.traces(off).values():
        if one(db, "SELECT count(*) FROM v_op WHERE time_source <> 'host'"):
            jobs.fail("timed although off")


def main():
    with jobs.Scratch() as tmp:
        unchanged(tmp)
        recorded(tmp)
        sampled(tmp)
    print("times, topology, sampling, output: as they should be")


if __name__ == "__main__":
    main()
