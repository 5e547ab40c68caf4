"""NCCL inside the program: no hook is ever called, and its profiler alone tells
of its calls. What of each op a version of the interface tells is what hooks
record of the same job; the rest is NULL; the job is none the wiser."""
import os
import sqlite3

import jobs
from profiler_machine import RELEASES, machine
from test_sequence import compare, recorded

RANKS = 2
ASKED = {"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN",
         "JOB_PLUGIN": "STATIC_PLUGIN"}
BROADCASTS = {"NCCL_ALLGATHERV_ENABLE": "0"}

# An op's place in the job and all that no version tells otherwise.
OPS = """
SELECT o.id, k.base AS base, k.function, c.count, c.type, c.redop, c.peer,
  o.ordinal, o.grp, c.stream, c.site, c.stack, c.graph, o.flags, o.host_ns,
  o.enter_ns, m.id AS comm, m.nranks, t.bytes,
  coalesce(l.flags & 1024 OR l.flags >> 16 NOT IN (0, 7), 0) AS vain
  FROM op o JOIN op_class c ON c.id = o.class JOIN op_kind k ON k.id = c.kind
  JOIN comm m ON m.id = c.comm LEFT JOIN data_type t ON t.id = c.type
  LEFT JOIN launch l ON l.grp = o.grp AND l.comm = c.comm
    AND l.stream IS c.stream
  WHERE o.flags >> 16 IN (0, 7) AND NOT o.flags & 64 AND m.nranks > 1
  ORDER BY o.id"""
GROUPED, CAPTURED, TOLD = 4, 32, 2048
P2P = ("ncclSend", "ncclRecv")
BYTES = ("ncclAllGather", "ncclBroadcast")  # as NCCL launches them


def equal(what, found, wanted):
    if found != wanted:
        jobs.fail("%s:\n  found  %.2000r\n  wanted %.2000r" % (what, found, wanted))


def record(tmp, release, program, mode="coll", base="fast", env=(), ranks=RANKS,
           args=("all",)):
    trace = os.path.join(tmp, "trace%d" % len(os.listdir(tmp)))
    done = jobs.job("fast", ranks, [program, *args], trace, dict({
        "FABRIC": machine(tmp, release, base), "COMMTRACE_TIMING": "off",
        "COMMTRACE_PROFILER": mode, "COMMTRACE_STACKS": "off"}, **BROADCASTS,
        **dict(env)))
    told = "" if program != "train3d_static" else done.stdout
    equal("output", (done.stdout, done.stderr), (told, ""))
    return trace, jobs.traces(trace) if os.path.isdir(trace) else {}


def rows(db):
    cursor = db.execute(OPS)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor]


def groups(ops):
    """Which ops share a bracket, whatever its number."""
    shared = {}
    for op in ops:
        shared.setdefault(op["grp"], set()).add(op["key"])
    alone = shared.pop(None, set())
    return alone, sorted(map(sorted, shared.values()))


def keyed(ops):
    """Each op by communicator, kind, (peer), and its number among these. A
    captured transfer is told of at its first run, so it may come later."""
    count = {}
    for op in ops:
        kind = (op["comm"], op["base"])
        if op["function"] in P2P:
            kind += op["peer"], op["flags"] & CAPTURED
        op["key"] = kind + (count.setdefault(kind, 0),)
        count[kind] += 1
    return {op["key"]: op for op in ops}


# What hooks say of communicators: each by its place among those of this size.
def renumber(db, ops):
    held = [row[0] for row in db.execute(
        "SELECT id FROM comm WHERE nranks > 1 ORDER BY id")]
    for op in ops:
        op["comm"] = held.index(op["comm"])


def sides(told, hooked):
    """The ops of both by key; hooks know what never ran, NCCL's profiler tells
    of it in versions that tell of calls."""
    ops = rows(told), rows(hooked)
    for db, side in zip((told, hooked), ops):
        renumber(db, side)
    return ops


def kinds(db):
    return {name: number for number, name in db.execute(
        "SELECT id, function FROM op_kind WHERE id = base")}


def calls(what, told, hooked, replays):
    """Version 5 and later: the calls themselves."""
    mine, wanted = sides(told, hooked)
    if not replays:
        wanted = [op for op in wanted if op["graph"] is None or
                  op["function"] not in P2P]
    mine, wanted = keyed(mine), keyed(wanted)
    equal(what + ": ops", set(mine) ^ set(wanted), set())
    for key, op in mine.items():
        for column in "function", "count", "type", "peer":
            equal("%s: %s of %r" % (what, column, key), op[column],
                  wanted[key][column])
        for column in "redop", "site", "stack":
            equal("%s: %s of %r" % (what, column, key), op[column], None)
        equal("%s: flags of %r" % (what, key), op["flags"], TOLD |
              wanted[key]["flags"] & (GROUPED | CAPTURED))
        equal("%s: captured %r" % (what, key), op["graph"] is None,
              wanted[key]["graph"] is None)
        equal("%s: time of %r" % (what, key),
              op["stream"] is not None and op["host_ns"] > 0, True)
    equal(what + ": groups", groups(mine.values()), groups(wanted.values()))
    # A collective alone lasts as long as its call, launch included.
    launches = told.execute("SELECT count(*), min(host_ns) > 0 FROM launch"
                            ).fetchone()
    equal(what + ": launches", launches, (hooked.execute(
        "SELECT count(*) FROM launch").fetchone()[0], 1))


def bag(ops):
    return sorted(((op["comm"], op["function"], op["count"], op["type"],
                    op["peer"]) for op in ops), key=str)


def launches(what, told, hooked, _):
    """Version 4: what ran, each run of a graph once more."""
    mine, wanted = sides(told, hooked)
    wanted = [op for op in wanted if not op["vain"] and op["graph"] is None]
    for op in mine:
        for column in "redop", "site", "stack", "stream", "grp", "host_ns":
            equal("%s: %s" % (what, column), op[column], None)
        equal(what + ": flags", op["flags"], TOLD)
    for op in wanted:
        if op["function"] in BYTES:
            op["count"] *= op["bytes"]
            op["type"] = 0  # int8
    equal(what, bag(mine), bag(wanted))


def identity(what, dbs, hooked):
    """Communicators are the same on all ranks, and as many as hooks see."""
    uids = [[row for row in db.execute(
        "SELECT uid, nranks FROM comm ORDER BY id")] for db in dbs.values()]
    shared = [[row for row in of if row[1] > 1] for of in uids]
    equal(what + ": uids", shared[0], shared[1])
    equal(what + ": uids differ", len({row[0] for of in uids for row in of}),
          len(shared[0]) + RANKS * (len(uids[0]) - len(shared[0])))
    for rank, db in dbs.items():
        equal(what + ": ranks", db.execute(
            "SELECT nranks, rank, origin, parent, end_ns NOTNULL, device"
            " FROM comm ORDER BY id").fetchall(), [
                (n, r, "told", None, 1, d) for n, r, d in hooked[rank].execute(
                    "SELECT nranks, rank, device FROM comm ORDER BY id")])


def says_what_is_missing(what, dbs, program, version):
    for db in dbs.values():
        (why,), = db.execute("SELECT why FROM absence WHERE what = 'calls'")
        path = os.path.join(jobs.BUILD, "samples", program)
        equal(what + ": absence", (path in why, "launches alone" in why),
              (True, version == 4))
        equal(what + ": library", db.execute(
            "SELECT l.path, l.version FROM library l JOIN comm m ON"
            " m.library = l.id GROUP BY 1").fetchall(), [(path, None)])
        equal(what + ": loss", db.execute("SELECT * FROM loss").fetchall(), [])
        equal(what + ": v_op", db.execute(
            "SELECT DISTINCT result, time_source FROM v_op").fetchall(),
              [(None, "told")])


def choices(what, db, mode):
    """Each that NCCL tells of is of its op; with its kernel's time."""
    n, joined, timed = db.execute(
        "SELECT count(*), count(n), count(gpu_ns) FROM choice").fetchone()
    equal(what + ": choices", (n > 200, joined, timed),
          (True, n, n if mode == "kernel" else 0))
    equal(what + ": choices differ", db.execute(
        "SELECT count(*) FROM choice x JOIN choice_class g ON g.id = x.class"
        " WHERE launch IS NULL GROUP BY g.comm, g.kind, g.peer, x.n"
        " HAVING count(*) > 1").fetchall(), [])


def versions(tmp):
    for release, version in RELEASES.items():
        _, hooked = record(tmp, release, "profiler_job", "off")
        for mode in "coll", "kernel":
            what = "%s, %s" % (release, mode)
            args = ("all",) if version > 4 or mode == "coll" else ("mixed",)
            if args == ("mixed",):
                _, hooked = record(tmp, release, "profiler_job", "off",
                                   args=args)
            trace, dbs = record(tmp, release, "profiler_job_static", mode,
                                env=ASKED, args=args)
            equal(what + ": traces", sorted(dbs), list(range(RANKS)))
            for rank, db in dbs.items():
                compare_ops = calls if version > 4 else launches
                # Up to 2.30 NCCL tells of a graph on one node with kernels
                # only.
                compare_ops(what, db, hooked[rank],
                            mode == "kernel" or version >= 7)
                if version < 7 and mode == "coll":
                    choices(what, db, mode)
            identity(what, dbs, hooked)
            says_what_is_missing(what, dbs, "profiler_job_static", version)
            jobs.commtrace("report", trace)


def train(tmp):
    """The job's own log, op by op; its report finds what hooks find."""
    log = os.path.join(tmp, "log")
    os.mkdir(log)
    args = ["--tp", 2, "--pp", 2, "--dp", 2, "--steps", 6, "--layers", 4,
            "--micro-batches", 4, "--log", log]
    trace, dbs = record(tmp, "2.32", "train3d_static", "kernel", "two_hosts",
                        ASKED, 8, args)
    uids = jobs.members(dbs)
    total = 0
    for rank, db in dbs.items():
        with open(os.path.join(log, "rank%d.log" % rank)) as file:
            want = file.read().splitlines()
        compare(rank, sorted(recorded(db, uids)), sorted(
            line.replace("Bcast", "Broadcast") for line in want))
        total += len(want)
    job, = jobs.report(trace)["jobs"]
    equal("roles", {"TP", "PP", "DP"} <= {r["role"] for r in job["roles"]}, True)
    equal("layout", [job["job"][k] for k in ("tp", "pp", "dp", "steps")],
          [2, 2, 2, 6])
    merged = os.path.join(tmp, "job.db")
    jobs.commtrace("merge", "--db", merged, trace)
    equal("job.db", sqlite3.connect(merged).execute(
        "SELECT DISTINCT result, time_source, redop FROM v_op").fetchall(),
          [(None, "kernel", None)])
    equal("absence", ("calls", 8) in {(a["what"], a["processes"]) for a in
                                      job["quality"]["absences"]}, True)
    return total


def nobody_asks(tmp):
    """Without our option, or without NCCL's, nothing happens at all."""
    log = os.path.join(tmp, "quiet")
    loud = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": log + ".%p"}
    for what, mode, env in (("no option", "off", dict(ASKED, **loud)),
                            ("no variable", "kernel", {}),
                            ("disabled", "kernel",
                             dict(ASKED, COMMTRACE_DISABLE="1"))):
        trace, dbs = record(tmp, "2.30", "profiler_job_static", mode,
                            env=env, args=("plain",))
        equal(what, (dbs, os.path.exists(trace)), ({}, False))
    for name in os.listdir(tmp):
        if name.startswith("quiet."):
            with open(os.path.join(tmp, name)) as file:
                equal("loaded", "Loaded commtrace" in file.read(), False)


def both(tmp):
    """Hooks have the one, the profiler the other; no op comes twice."""
    library = os.path.join(jobs.BUILD, "fabric", "libnccl.so.2")
    _, dbs = record(tmp, "2.30", "static_both", "coll", env=ASKED,
                    args=(library,))
    for db in dbs.values():
        ops = db.execute(
            "SELECT c.count, m.origin, o.flags & 2048 <> 0, l.path FROM op o"
            " JOIN op_class c ON c.id = o.class JOIN comm m ON m.id = c.comm"
            " JOIN library l ON l.id = m.library"
            " WHERE c.kind = (SELECT id FROM op_kind WHERE name = 'all_reduce')"
            " ORDER BY o.id").fetchall()
        own = os.path.join(jobs.BUILD, "samples", "static_both")
        equal("both", [row[:3] for row in ops],
              [(i, "told", 1) if i % 2 else (i, "init", 0)
               for i in range(1, 21)])
        equal("both", {(row[0] % 2, os.path.basename(row[3])) for row in ops},
              {(1, os.path.basename(own)), (0, "libnccl.so.2")})
        equal("both: loss", db.execute("SELECT * FROM loss").fetchall(), [])
        equal("both: choices", db.execute(
            "SELECT count(n) FROM choice x JOIN choice_class g ON"
            " g.id = x.class JOIN op_kind k ON k.id = g.kind"
            " WHERE k.name = 'all_reduce'").fetchone(), (20,))


def main():
    with jobs.Scratch() as tmp:
        versions(tmp)
        nobody_asks(tmp)
        both(tmp)
        total = train(tmp)
    print("%d ops of an NCCL inside the program, in versions 4 to 7, are those "
          "that it called" % total)


if __name__ == "__main__":
    main()
