"""The life of communicators as it is recorded: who they are on each rank, what
happens to them, groups of every kind, calls that launch later, one-sided calls,
several GPUs in one process. The jobs do known things in a known order."""
import json
import os
import sqlite3
import subprocess
import sys

import jobs

# op.flags and launch.flags
GROUPED, ZERO, SIMULATED = 4, 64, 1024
INVALID_ARGUMENT, REMOTE_ERROR, IN_PROGRESS = 4, 6, 7


def expect(found, wanted, what):
    if found != wanted:
        jobs.fail("%s:\n  found  %s\n  wanted %s" % (what, found, wanted))


def record(tmp, program, case, ranks, machine="fast", env=()):
    trace = os.path.join(tmp, case)
    jobs.job(machine, ranks, [program, case], trace,
             dict(env, COMMTRACE_TIMING="all"))
    return trace, jobs.traces(trace)


def rows(db, sql):
    return db.execute(sql).fetchall()


def ops(db):
    return rows(db, "SELECT c.comm, k.name, c.count, o.grp, o.ordinal,"
                    " o.flags >> 16 FROM op o JOIN op_class c ON c.id = o.class"
                    " JOIN op_kind k ON k.id = c.kind ORDER BY o.id")


def launches(db):
    return rows(db, "SELECT grp, comm, ops, flags & %d, flags >> 16,"
                    " gpu_ns NOTNULL FROM launch ORDER BY id" % SIMULATED)


def events(db):
    return rows(db, "SELECT comm, what, result FROM comm_event ORDER BY rowid")


def no_losses(dbs):
    for rank, db in dbs.items():
        expect(rows(db, "SELECT * FROM loss"), [], "losses of rank %d" % rank)


def origins(dbs):
    """uid -> (origin, members, parent's members, colours, children)"""
    members = jobs.members(dbs)
    found = {}
    for db in dbs.values():
        for uid, origin, parent, color, child in db.execute(
                "SELECT m.uid, m.origin, p.uid, m.color, m.child FROM comm m"
                " LEFT JOIN comm p ON p.id = m.parent"):
            known = found.setdefault(uid, (origin, members[uid], set(), set(),
                                           set()))
            expect(origin, known[0], "origin of one communicator")
            if parent is not None:
                known[2].add(tuple(members[parent]))
                known[3].add(color)
                known[4].add(child)
    return sorted((o, m, sorted(p), sorted(c, key=str), sorted(n))
                  for o, m, p, c, n in found.values())


def tree(tmp):
    """Two halves shrunk of one parent; one of them grown by the other."""
    trace, dbs = record(tmp, "record_life", "tree", 6)
    world, low, high = list(range(6)), [0, 1, 2], [3, 4, 5]
    expect(origins(dbs), [
        ("grow", world, [tuple(low)], [None], [1]),
        ("init", world, [], [], []),
        ("shrink", low, [tuple(world)], [None], [1]),
        ("shrink", high, [tuple(world)], [None], [1]),
        ("split", [0], [tuple(world)], [0], [1]),
    ], "communicators")
    no_losses(dbs)
    expect([e for e in events(dbs[0]) if e[1] == "unique_id"],
           [(3, "unique_id", 0)], "the id for new ranks")
    report = jobs.report(trace)["jobs"][0]
    expect(report["job"]["mismatches"], 0, "mismatches")
    expect(report["job"]["missing_ranks"], 0, "missing ranks")


def grown(tmp):
    trace, dbs = record(tmp, "test_fabric_newer", "grow", 4)
    world, pair = [0, 1, 2, 3], [0, 1]
    expect(origins(dbs), [
        ("grow", world, [tuple(pair)], [None], [1]),
        ("grow", world, [tuple(pair)], [None], [2]),
        ("init", world, [], [], []),
        ("split", pair, [tuple(world)], [0], [1]),
        ("split", world, [tuple(world)], [0], [1]),
    ], "grown communicators")
    no_losses(dbs)
    # A missing rank is named in each communicator that it was in.
    for name in os.listdir(trace):
        rank, = rows(dbs[3], "SELECT pid FROM process")[0]
        if ".%d." % rank in name:
            os.unlink(os.path.join(trace, name))
    groups = json.loads(jobs.commtrace("groups", "--json", trace))
    missing = [(g["origin"], g["nranks"], g["missing"])
               for g in groups["jobs"][0]["groups"]]
    expect(sorted(missing, key=str), sorted([
        ("init", 4, "3 (rank 3)"), ("split", 2, None), ("grow", 4, "3 (rank 3)"),
        ("grow", 4, "3 (rank 3)"), ("split", 4, "3 (rank 3)")], key=str),
        "members that are missing")


def shrunk(tmp):
    """Ranks call different numbers of shrinks and still agree on names."""
    _, dbs = record(tmp, "test_fabric_newer", "shrink_sets", 4)
    world = (0, 1, 2, 3)
    wanted = [("init", list(world), [], [], [])]
    for left_out, child in ((2, 1), (1, 1), (1, 2), (0, 1), (2, 2)):
        stay = [r for r in world if r != left_out]
        wanted.append(("shrink", stay, [world], [None], [child]))
    wanted.append(("shrink", [1, 3], [world], [None], [1]))
    expect(origins(dbs), sorted(wanted), "shrinks")
    no_losses(dbs)


def alike(tmp):
    """Ids that are all the same, and one that nobody was shown."""
    _, dbs = record(tmp, "record_life", "comm_id", 3,
                    env={"NCCL_COMM_ID": "127.0.0.1:29400"})
    expect(origins(dbs), 3 * [("init", [0, 1, 2], [], [], [])], "NCCL_COMM_ID")
    _, dbs = record(tmp, "record_life", "all_grow", 2)
    grow = "SELECT uid, rank, nranks FROM comm WHERE origin = 'grow'"
    (uid, *first), (second, *next_) = rows(dbs[0], grow + " ORDER BY rank")
    expect((second, first, next_), (uid, [0, 3], [1, 3]), "old ranks")
    expect(rows(dbs[1], grow), [(uid, 2, 3)], "the new rank")
    no_losses(dbs)


def groups(tmp):
    trace, dbs = record(tmp, "record_life", "groups", 2)
    for rank, db in dbs.items():
        simulated = [(1, "all_reduce", 1000, 5, 6, 0)] if rank else []
        last = 7 if rank else 6
        expect(ops(db), [
            (1, "all_reduce", 1000, 1, 0, 0), (1, "all_reduce", 1000, 1, 1, 0),
            (1, "all_reduce", 1000, 2, 2, 0), (2, "all_reduce", 500, 2, 0, 0),
            (1, "send", 100, 2, 0, 0), (1, "recv", 100, 2, 0, 0),
            (3, "all_reduce", 1000, None, 0, 0),
            (1, "all_reduce", 7, 3, 3, 0),
            (1, "all_reduce", 9, 3, 4, INVALID_ARGUMENT),
            (1, "all_reduce", 0, 4, 5, 0)] + simulated +
            [(1, "all_reduce", 1000, None, last, 0)], "ops of rank %d" % rank)
        expect(launches(db), [
            (1, 1, 2, 0, 0, 1), (2, 1, 3, 0, 0, 1), (2, 2, 1, 0, 0, 1),
            (3, 1, 2, 0, INVALID_ARGUMENT, 0)] +
            ([(5, 1, 1, SIMULATED, 0, 0)] if rank else []),
            "launches of rank %d" % rank)
    expect(rows(dbs[1], "SELECT state, count(*) FROM v_op GROUP BY 1"),
           [("done", 9), ("failed", 2), ("simulated", 1)], "states")
    no_losses(dbs)
    # What never ran is taken out, and the ranks still meet.
    job = jobs.report(trace)["jobs"][0]["job"]
    expect((job["ops"], job["mismatches"], job["in_flight"]), (2 * 9, 0, 0),
           "ops that ran")
    got = json.loads(jobs.commtrace("ops", "--json", "--rank", "1", trace))
    expect([o["ordinal"] for o in got["jobs"][0]["ops"] if o["comm"] == 0 and
            o["kind"] == "all_reduce"], [0, 1, 2, 3, 4], "their ordinals")


def late(tmp):
    """Calls that return ncclInProgress."""
    _, dbs = record(tmp, "record_life", "late", 2)
    expect([o[:2] for o in origins(dbs)], 2 * [("init", [0, 1])] +
           4 * [("split", [0, 1])], "communicators")
    for db in dbs.values():
        expect(rows(db, "SELECT name FROM comm WHERE id > 1"), 5 * [("late",)],
               "names")
        # A group, and a call of its own, told by another thread.
        expect(launches(db), [(1, 2, 2, 0, 0, 1)], "the group's launch")
        first = "SELECT flags >> 16, gpu_ns NOTNULL, host_ns > 0 FROM op o" \
                " JOIN op_class c ON c.id = o.class WHERE c.comm = %d" \
                " ORDER BY o.id LIMIT 1"
        expect(rows(db, first % 3), [(0, 1, 1)], "told by another thread")
        # Overtaken by the next call, and aborted: no GPU time is known.
        expect(rows(db, first % 4), [(IN_PROGRESS, 0, 1)], "overtaken")
        expect(rows(db, first % 6), [(IN_PROGRESS, 0, 1)], "aborted")
        # In use before anybody asked whether it was there.
        expect(rows(db, first % 5), [(0, 1, 1)], "a new communicator")
        expect(rows(db, "SELECT o.flags >> 16, gpu_ns NOTNULL FROM op o"
                        " JOIN op_class c ON c.id = o.class WHERE c.comm = 4"
                        " ORDER BY o.id DESC LIMIT 1"), [(0, 1)], "the next")
    no_losses(dbs)


def two_ask(tmp):
    """A communicator's state is asked for by two threads."""
    _, dbs = record(tmp, "record_life", "two_ask", 2)
    expect([o[:2] for o in origins(dbs)], 61 * [("init", [0, 1])],
           "communicators")
    for db in dbs.values():
        expect(rows(db, "SELECT comm, count(*) FROM op o JOIN op_class c"
                        " ON c.id = o.class WHERE comm > 1 GROUP BY comm"),
               [(i, 1) for i in range(2, 62)], "calls")


def one_sided(tmp):
    trace, dbs = record(tmp, "test_fabric_newer", "one_sided", 3)
    for rank, db in dbs.items():
        to = (rank + 1) % 3
        found = rows(db, "SELECT k.name, c.count, c.peer, o.ordinal,"
                         " o.flags >> 16, o.gpu_ns NOTNULL FROM op o"
                         " JOIN op_class c ON c.id = o.class"
                         " JOIN op_kind k ON k.id = c.kind ORDER BY o.id")
        expect(found, [
            ("put_signal", 10, to, 0, 0, 1), ("wait_signal", 0, None, 0, 0, 1),
            ("put_signal", 786432, to, 1, 0, 1), ("signal", 0, to, 2, 0, 1),
            ("wait_signal", 0, None, 1, 0, 1),
            ("signal", 0, 3, 0, INVALID_ARGUMENT, 0),
            ("signal", 0, to, 3, INVALID_ARGUMENT, 0),
            ("all_reduce", 1000, None, 0, 0, 1)], "rank %d" % rank)
        expect([e[1] for e in events(db)],
               ["window_register", "window_deregister", "destroy"], "events")
    job = jobs.report(trace)["jobs"][0]["job"]
    expect((job["ops"], job["mismatches"], job["lost_ops"]), (18, 0, 0), "job")
    got = json.loads(jobs.commtrace("ops", "--json", "--rank", "0", trace))
    for op in got["jobs"][0]["ops"]:
        if op["kind"] == "wait_signal":
            expect((op["transfer_us"], op["wait_us"]), (0, op["gpu_us"]),
                   "waiting for a signal")


def ends(tmp):
    """Errors that come later; what a revoke or a shrink ends."""
    _, dbs = record(tmp, "test_fabric_newer", "async", 3, "async")
    expect(events(dbs[0]), [(1, "error", REMOTE_ERROR), (1, "abort", 0)],
           "an error that came later")
    expect(events(dbs[1]), [(1, "abort", 0)], "ranks without it")
    _, dbs = record(tmp, "test_fabric_newer", "suspend", 2)
    expect([e[1:] for e in events(dbs[0])],
           [("resume", 5), ("suspend", INVALID_ARGUMENT), ("suspend", 0),
            ("resume", 0), ("destroy", 0)], "suspended")
    _, dbs = record(tmp, "test_fabric_life", "revoke", 3)
    expect([e[1:] for e in events(dbs[1])],
           [("revoke", INVALID_ARGUMENT), ("revoke", 0), ("finalize", 5),
            ("destroy", 0), ("destroy", 0), ("destroy", 0)], "revoked")
    _, dbs = record(tmp, "test_fabric_life", "shrink", 3)
    expect([e for e in events(dbs[0]) if e[1] == "shrink_abort"],
           [(2, "shrink_abort", 0)], "a shrink that ends what runs")


def scalable(tmp):
    _, dbs = record(tmp, "test_fabric_life", "scalable", 3)
    expect(origins(dbs), [("init", [0, 1, 2], [], [], []),
                          ("scalable", [0, 1, 2], [], [], [])], "scalable")


def devices(tmp):
    """Four ranks in one process, by ncclCommInitAll and by threads."""
    for case in "all", "threads":
        trace = os.path.join(tmp, case)
        jobs.job("fast", 1, ["record_devices", case], trace,
                 {"COMMTRACE_TIMING": "all", "COMMTRACE_NCCL_LOG": "tuning"})
        db, = jobs.traces(trace).values()
        expect(rows(db, "SELECT DISTINCT rank, device, nranks FROM comm"
                        " ORDER BY 1"), [(r, r, 4) for r in range(4)], case)
        expect(rows(db, "SELECT count(DISTINCT uid) FROM comm"), [(1,)], case)
        expect(rows(db, "SELECT count(*) FROM v_op WHERE coalesce(gpu_ns,"
                        " (SELECT max(gpu_ns) FROM launch)) IS NULL OR"
                        " time_source = 'host'"), [(0,)], "untimed ops")
        no_losses({0: db})
        merged = os.path.join(tmp, case + ".job.db")
        jobs.commtrace("merge", "--db", merged, trace)
        choices, = rows(db, "SELECT max(count(*), 1) FROM choice")[0]
        expect(rows(sqlite3.connect(merged),
                    "SELECT count(*), count(k.id) FROM choice c LEFT JOIN"
                    " choice_class k ON k.process = c.process"
                    " AND k.id = c.class"), [(choices, choices)], "choices")
        card = jobs.report(trace)["jobs"][0]["job"]
        expect((card["processes"], card["world_size"], card["missing_ranks"],
                card["mismatches"]), (1, 4, 0, 0), "the job of " + case)
    # The last thread was 200 ms late: the others waited, it did not.
    got = json.loads(jobs.commtrace("ops", "--json", trace))["jobs"][0]["ops"]
    waits = {o["rank"]: o["wait_us"] for o in got if o["ordinal"] == 1}
    if sorted(waits) != [0, 1, 2, 3] or waits[3] != 0 or any(
            waits[r] < 150000 for r in range(3)):
        jobs.fail("waits %s" % waits)


def untimed(tmp):
    """An NCCL that never made its device's context active: no GPU times, and
    the trace says so."""
    trace = os.path.join(tmp, "trace")
    cuda = os.path.join(jobs.BUILD, "fabric", "libcuda.so.1")
    subprocess.run([os.path.join(jobs.BUILD, "tests", "hostile_process"),
                    "plain"], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, COMMTRACE_DIR=trace,
                            LD_PRELOAD="%s %s" % (jobs.SHIM, cuda)))
    db, = jobs.traces(trace).values()
    expect(rows(db, "SELECT cause, what, n FROM loss"),
           [("no_context", "timing", 1)], "losses")
    expect(rows(db, "SELECT count(*) FROM v_op WHERE time_source <> 'host'"),
           [(0,)], "timed ops")


def main():
    cases = (tree, grown, shrunk, alike, groups, late, two_ask, one_sided, ends,
             scalable, devices, untimed)
    with jobs.Scratch() as tmp:
        for case in cases:
            if sys.argv[1:] and case.__name__ not in sys.argv[1:]:
                continue
            folder = os.path.join(tmp, case.__name__)
            os.mkdir(folder)
            case(folder)
    print("identities, groups, late and one-sided calls: as they should be")


if __name__ == "__main__":
    main()
