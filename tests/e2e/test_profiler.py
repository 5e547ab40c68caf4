"""NCCL's profiler interface in each of its versions: which algorithm, protocol
and channels NCCL chose for each call, and when its kernel ran, also in each
launch of a graph. The rows are those of the calls, one by one, whatever the
version; a plugin of the user's wins; nothing of it shows in the job."""
import glob
import os
import re
import shutil
import statistics

import jobs
from profiler_machine import (ALGORITHM, CHANNELS, P2P_CHANNELS, PROTOCOL,
                              RELEASES, machine, tool)

RANKS = 2
ZERO, SIMULATED = 64, 1024

# Each call that ran of a communicator and kind (sends, recvs: and peer) by its number,
# as choice.n counts.
NUMBERED = """
CREATE TEMP VIEW numbered AS SELECT o.id, c.comm, k.base AS kind,
  CASE WHEN k.class IN ('SEND', 'RECV') THEN c.peer END AS peer,
  CASE k.size WHEN 'ALL_SHARES' THEN m.nranks ELSE 1 END * c.count * t.bytes
    AS bytes,
  row_number() OVER (PARTITION BY c.comm, k.base,
    CASE WHEN k.class IN ('SEND', 'RECV') THEN c.peer END ORDER BY o.id) - 1
    AS n, c.graph, o.gpu_ns, o.host_ns, k.function
  FROM op o JOIN op_class c ON c.id = o.class JOIN op_kind k ON k.id = c.kind
  LEFT JOIN data_type t ON t.id = c.type JOIN comm m ON m.id = c.comm
  LEFT JOIN launch l ON l.grp = o.grp AND l.comm = c.comm
    AND l.stream = c.stream
  WHERE NOT o.flags & %d AND m.nranks > 1 AND o.flags >> 16 IN (0, 7)
    AND coalesce(l.flags >> 16, 0) IN (0, 7)
    AND NOT coalesce(l.flags, 0) & %d""" % (ZERO, SIMULATED)

CHOSEN = """
SELECT k.comm, k.kind, k.peer, c.n, l.number, k.bytes, k.algorithm, k.protocol,
  k.channels, c.gpu_ns
  FROM choice c JOIN choice_class k ON k.id = c.class
  LEFT JOIN (SELECT id, row_number() OVER (ORDER BY id) AS number
    FROM graph_launch) l ON l.id = c.launch
  WHERE k.source = 'plugin'
  ORDER BY 1, 2, 3, 4, 5"""


def equal(what, found, wanted):
    if found != wanted:
        jobs.fail("%s:\n  found  %r\n  wanted %r" % (what, found, wanted))


# Since 2.29.2 NCCL tells a plugin of broadcasts only so.
BROADCASTS = {"NCCL_ALLGATHERV_ENABLE": "0"}


def record(tmp, release, mode, case="all", base="fast", env=()):
    trace = os.path.join(tmp, "trace%d" % len(os.listdir(tmp)))
    done = jobs.job("fast", RANKS, ["profiler_job", case], trace, dict({
        "FABRIC": machine(tmp, release, base), "COMMTRACE_TIMING": "all",
        "COMMTRACE_PROFILER": mode, "COMMTRACE_STACKS": "off"}, **BROADCASTS,
        **dict(env)))
    equal("output", (done.stdout, done.stderr), ("", ""))
    return trace, jobs.traces(trace)


def wanted_of(db, replays):
    """What each call must have been told, from the calls alone."""
    db.execute(NUMBERED)
    calls = db.execute("SELECT comm, kind, peer, n, bytes, graph FROM numbered"
                       ).fetchall()
    launches = db.execute("SELECT graph FROM graph_launch ORDER BY id")
    rows = []
    runs = [(number + 1, graph) for number, (graph,) in enumerate(launches)]
    for comm, kind, peer, n, size, graph in calls:
        row = (size,) + ((ALGORITHM, PROTOCOL, CHANNELS) if peer is None else
                         (None, None, P2P_CHANNELS))
        if graph is None:
            rows.append((comm, kind, peer, n, None) + row)
        elif replays:
            rows += [(comm, kind, peer, n, number) + row
                     for number, held in runs if held == graph]
    return sorted(rows, key=str)


def told(db, mode):
    rows = db.execute(CHOSEN).fetchall()
    for row in rows:
        if (row[-1] is not None) != (mode == "kernel"):
            jobs.fail("%s: a time of a kernel: %r" % (mode, row))
    return sorted([row[:-1] for row in rows], key=str)


def no_losses(what, db):
    equal(what + ": loss", db.execute("SELECT * FROM loss").fetchall(), [])
    equal(what + ": absence", db.execute(
        "SELECT why FROM absence WHERE what = 'profiler'").fetchall(), [])


def communicators(what, db):
    """NCCL's own number of each communicator that the process held."""
    held = [row[0] for row in db.execute("SELECT id FROM comm ORDER BY id")]
    rows = db.execute("SELECT comm, nodes, hash FROM nccl_comm WHERE"
                      " source = 'plugin' ORDER BY comm").fetchall()
    equal(what, [row[:2] for row in rows], [(comm, 1) for comm in held])
    equal(what, len({row[2] for row in rows}), len(held))
    return [row[2] for row in rows if row[0] == 1]


def joined(what, trace):
    """The analyzer believes all of it."""
    text = " ".join(jobs.commtrace("report", trace).split())
    if "by its profiler" not in text or "found no op" in text:
        jobs.fail("%s: %s" % (what, text))


def versions(tmp):
    """The four hosts give the same rows: those of the calls."""
    for mode in "coll", "kernel":
        for release, version in RELEASES.items():
            what = "%s, %s" % (release, mode)
            trace, dbs = record(tmp, release, mode)
            # Up to 2.30 NCCL tells of a graph on one node with kernels only.
            replays = mode == "kernel" or version >= 7
            for rank, db in dbs.items():
                found, wanted = told(db, mode), wanted_of(db, replays)
                equal(what, [row for row in found if row not in wanted],
                      [row for row in wanted if row not in found])
                equal(what, found, wanted)
                equal(what, len(found) > 270, True)
                no_losses(what, db)
                communicators(what, db)
            joined(what, trace)
            equal(what + ": one number on all ranks",
                  len({hash for db in dbs.values()
                       for hash in communicators(what, db)}), 1)


def across_hosts(tmp):
    """There NCCL tells of graphs without kernels, too."""
    for release in RELEASES:
        _, dbs = record(tmp, release, "coll", "graph", "four_hosts")
        for db in dbs.values():
            equal(release + ": nodes", db.execute(
                "SELECT nodes FROM nccl_comm WHERE source = 'plugin'"
                ).fetchall(), [(2,)])
            equal(release + ": replays", db.execute(
                "SELECT count(*), count(DISTINCT launch) FROM choice"
                " WHERE launch NOTNULL").fetchone(), (9, 3))
            no_losses(release, db)


def times(tmp):
    """A kernel's time is that of the events about it, but for the steps of its
    clock, and what passed in the call between event and launch: nothing where
    the GPU was still at work, as it mostly is."""
    for release in RELEASES:
        apart = []
        _, dbs = record(tmp, release, "kernel", "plain", "one_host")
        for db in dbs.values():
            db.execute(NUMBERED)
            rows = db.execute(
                "SELECT o.function, o.gpu_ns, c.gpu_ns, o.host_ns FROM numbered o"
                " JOIN choice_class k ON k.comm = o.comm AND k.kind = o.kind"
                " AND k.peer IS o.peer"
                " JOIN choice c ON c.class = k.id AND c.n = o.n"
                " WHERE o.gpu_ns NOTNULL").fetchall()
            equal("times", len(rows), 6)
            for function, event, kernel, call in rows:
                apart.append(abs(event - kernel))
                if not -64 <= event - kernel <= 64 + call:
                    jobs.fail("%s: %s: %d ns by events, %d by its kernel" % (
                        release, function, event, kernel))
        equal(release + ": times", statistics.median_high(apart) <= 64, True)


def absent(what, dbs, reason):
    for db in dbs.values():
        equal(what, db.execute("SELECT count(*) FROM choice").fetchone()[0], 0)
        equal(what, db.execute("SELECT count(*) FROM op").fetchone()[0] > 0,
              True)
        why = db.execute("SELECT why FROM absence WHERE what = 'profiler'"
                         ).fetchall()
        if len(why) != 1 or reason not in why[0][0]:
            jobs.fail("%s: %r does not say %r" % (what, why, reason))


def lines(log, rank):
    with open("%s.%d" % (log, rank)) as file:
        return sorted(file.read().splitlines())


def user(tmp, what, release, env, reason, heard=True, env_alone=None):
    """A plugin of the user's hears what it hears without us."""
    log = os.path.join(tmp, "log%d" % len(os.listdir(tmp)))
    env = dict(env, TOOL_MASK="0x7")
    alone = dict(env, TOOL_LOG=log + ".alone", FABRIC=machine(tmp, release),
                 **BROADCASTS)
    alone.update(env_alone or {})
    jobs.job("fast", RANKS, ["profiler_job", "plain"], env=alone)
    _, dbs = record(tmp, release, "kernel", "plain",
                    env=dict(env, TOOL_LOG=log))
    absent(what, dbs, reason)
    for rank in range(RANKS):
        if heard:
            told_it = lines(log, rank)
            equal(what, told_it, lines(log + ".alone", rank))
            equal(what, any(" coll+ " in line for line in told_it),
                  True)
        elif os.path.exists("%s.%d" % (log, rank)):
            jobs.fail(what + ": it was loaded")


def users(tmp):
    library = os.path.join(tmp, "installed")
    os.mkdir(library)
    shutil.copy(tool(4, 7), os.path.join(library, "libnccl-profiler.so"))
    by_env = {"NCCL_PROFILER_PLUGIN": tool(4, 7)}
    user(tmp, "by the environment", "2.30", by_env, tool(4, 7))
    user(tmp, "none", "2.30", {"NCCL_PROFILER_PLUGIN": "none"}, "=none",
         heard=False)
    conf = os.path.join(tmp, "nccl.conf")
    with open(conf, "w") as file:
        file.write("NCCL_PROFILER_PLUGIN=%s\n" % tool(4, 7))
    user(tmp, "by a file", "2.32", {"NCCL_CONF_FILE": conf}, tool(4, 7))
    user(tmp, "installed", "2.28", {"LD_LIBRARY_PATH": library},
         "libnccl-profiler.so is installed")
    # In the program, of an older version than ours and NCCL's: dlsym hides
    # ours; before us and behind us.
    static = {"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN"}
    alone = {"LD_PRELOAD": tool(5, 5)}
    for release in "2.28", "2.32":
        for preload in ([tool(5, 5), jobs.SHIM], [jobs.SHIM, tool(5, 5)]):
            user(tmp, "in the program", release,
                 dict(static, JOB_PRELOAD=":".join(preload)), "tool55",
                 env_alone=alone)
    # Nobody asked for that one: NCCL does not get it because of us.
    user(tmp, "in the program, unasked", "2.32",
         {"JOB_PRELOAD": ":".join([jobs.SHIM, tool(5, 5)])}, "tool55",
         heard=False, env_alone=alone)


def others(tmp):
    """Releases without it; the user's own word for ours; switched off."""
    _, dbs = record(tmp, "2.23", "coll", "plain")
    absent("2.23", dbs, "before 2.27")
    _, dbs = record(tmp, "2.30", "coll", "plain",
                    env={"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN"})
    for db in dbs.values():
        equal("asked for", told(db, "coll"), wanted_of(db, False))
        no_losses("asked for", db)
    log = os.path.join(tmp, "off.log")
    _, dbs = record(tmp, "2.30", "off", "plain",
                    env={"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN",
                         "NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": log + ".%p"})
    for db in dbs.values():
        equal("off", told(db, "off"), [])
        no_losses("off", db)
    logs = glob.glob(log + ".*")
    equal("off: logs", len(logs), RANKS)
    for path in logs:
        with open(path) as file:
            equal("off: loaded", re.findall("Loaded commtrace.*", file.read()),
                  [])


def main():
    with jobs.Scratch() as tmp:
        versions(tmp)
        across_hosts(tmp)
        times(tmp)
        users(tmp)
        others(tmp)
    print("choices and kernels are those of the calls, in versions 4 to 7")


if __name__ == "__main__":
    main()
