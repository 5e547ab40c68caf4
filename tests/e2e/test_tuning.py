"""Acceptance: with COMMTRACE_NCCL_LOG=tuning NCCL's own predictions stand
beside fit and prior. They are computed here again, from the table and the lines
that NCCL prints into a log of the user's own for the same job, and with the
formula of its tuning.cc. And NCCL's profiler says the same of each call as its
log does."""
import collections
import glob
import json
import math
import os
import re
import sqlite3

import jobs

RANKS = 8
HALF = .05  # what one decimal leaves open
SWEEP = ["sweep", "--max", "4M", "--iters", "2"]
JOBS = ((SWEEP + ["--ranks", "2,8", "--place", "both"], {}),
        (SWEEP + ["--ops", "all_reduce"], {"NCCL_ALGO": "Tree"}),
        (["train3d", "--tp", "2", "--pp", "2", "--dp", "2", "--steps", "2"],
         {}))

# NCCL 2.30.7, src/graph/tuning.cc: trees at sizes of 64 B, 128 B, ...
TREE = {"LL": [1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7,
               .8, .9, 1, 1, 1, 1],
        "LL128": [1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8,
                  .9, .9, .9, .9, 1, 1],
        "SIMPLE": [.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5,
                   .6, .7, .8, .7, .7, .8, .9, .9]}
WAYS = [(a, p) for a in ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN",
                         "NVLS", "NVLS_TREE", "PAT")
        for p in ("LL", "LL128", "SIMPLE")]
FUNCTIONS = {"Broadcast": "broadcast", "Reduce": "reduce",
             "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
             "AllReduce": "all_reduce"}


def us(entry, op, way, size, nranks, nodes):
    """What NCCL expects, by an entry of its table (latency, bandwidth)."""
    latency, bandwidth = entry
    if op == "all_reduce" and way[0] == "TREE" and 64 <= size < 64 << 23:
        bandwidth *= TREE[way[1]][int(math.log2(size // 64))]
    if (op, way, nodes > 1) == ("all_reduce", ("RING", "SIMPLE"), True) and (
            size // nranks >= 64):
        latency *= 1.4
    return latency + size / 1e3 / bandwidth


def machine(tmp):
    """Two hosts with InfiniBand between them, and links that take no time."""
    path = os.path.join(tmp, "fast_ib.fabric")
    with open(os.path.join(jobs.MACHINES, "ib.fabric")) as known:
        text = re.sub(r"alpha_us=\d+ bandwidth=\w+/s",
                      "alpha_us=1 bandwidth=100GB/s", known.read())
    with open(path, "w") as file:
        file.write(text)
    return path[:-len(".fabric")]


def run(tmp, name, argv, ranks=RANKS, **env):
    """Traces of a job, and its output."""
    trace = os.path.join(tmp, name)
    for variable in [v for v in os.environ if v.startswith("NCCL_")]:
        del os.environ[variable]
    done = jobs.job(machine(tmp), ranks, argv, trace, env)
    return trace, done.stdout, done.stderr


def printed(folder):
    """What NCCL says in the logs of all ranks: pointer of a communicator ->
    {(op, way): entry}, and how often each (op, bytes, way, channels) is said."""
    tables, choices = {}, collections.Counter()
    for path in glob.glob(os.path.join(folder, "*")):
        current, block = {}, 0
        with open(path) as file:
            for line in file:
                text = line.partition("NCCL INFO ")[2].rstrip("\n")
                name, _, values = text.partition(" |")
                m = re.match(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) "
                             r"channel\{Lo..Hi\}=\{(\d+)..(\d+)\}", text)
                if m:
                    choices[FUNCTIONS[m[1]], int(m[2]), (m[3], m[4]),
                            int(m[6]) - int(m[5]) + 1] += 1
                elif name.strip() == "Algorithm":
                    block += 1
                elif name.strip() in FUNCTIONS:
                    cells = re.findall(r"([\d.]+)/\s*([\d.]+)", values)
                    for i, (latency, bandwidth) in enumerate(cells):
                        way = WAYS[9 * (block - 1) + i]
                        current[FUNCTIONS[name.strip()], way] = (
                            float(latency), float(bandwidth))
                m = re.search(r"comm (0x\w+) rank (\d+) .*Init COMPLETE", text)
                if m:
                    if m[2] == "0":
                        tables[path, m[1], len(tables)] = current
                    current, block = {}, 0
    return tables, choices


def usable(table):
    return {key: entry for key, entry in table.items() if entry[1] > 0}


def stored(trace):
    """The same from the traces, tables by uid, with its size and nodes."""
    tables, choices = collections.defaultdict(dict), collections.Counter()
    for rank, db in jobs.traces(trace).items():
        for uid, own, op, a, p, latency, bandwidth in db.execute(
                "SELECT m.uid, m.rank, k.name, t.algorithm, t.protocol, "
                "t.latency_us, t.algbw_GBps FROM tuning t "
                "JOIN comm m ON m.id = t.comm JOIN op_kind k ON k.id = t.kind"):
            assert own == 0, (rank, uid)
            assert (op, (a, p)) not in tables[uid], (op, a, p)
            tables[uid][op, (a, p)] = latency, bandwidth
        for op, size, a, p, channels, n in db.execute(
                "SELECT k.name, h.bytes, h.algorithm, h.protocol, h.channels, "
                "count(*) FROM choice c JOIN choice_class h ON h.id = c.class "
                "JOIN op_kind k ON k.id = h.kind WHERE h.source = 'log' "
                "GROUP BY 1, 2, 3, 4, 5"):
            choices[op, size, (a, p), channels] += n
    return tables, choices


def check_same(one, other):
    """Tables as often as each is told; choices with their numbers."""
    def bag(tables):
        return collections.Counter(
            tuple(sorted(usable(t).items())) for t in tables.values())
    assert one[1] == other[1], (one[1] - other[1], other[1] - one[1])
    assert bag(one[0]) == bag(other[0])
    assert sum(one[1].values()) and bag(one[0])


def check_model(trace, tables):
    """Column "NCCL's own", here computed again call by call."""
    db = trace + ".job.db"
    jobs.commtrace("merge", "--db", db, trace)
    job = sqlite3.connect(db)
    expected = collections.defaultdict(list)
    nodes = dict(job.execute("SELECT uid, count(DISTINCT node) FROM member "
                             "GROUP BY uid"))
    calls = 0
    for uid, op, link, nranks, size, a, p in job.execute(
            "SELECT o.uid, k.name, c.link, o.nranks, o.bytes, o.algorithm, "
            "o.protocol FROM v_op o JOIN op_kind i ON i.function = o.function "
            "JOIN op_kind k ON k.id = i.base JOIN (SELECT id, link FROM usage) "
            "c ON c.id = (SELECT usage FROM op_match m WHERE m.process = "
            "o.process AND m.op = o.id) WHERE i.class IN ('COLL', 'ROOTED') "
            "AND o.nranks > 1 AND o.comm_rank = 0 GROUP BY o.process, o.id"):
        table, way = usable(tables[uid]), (a, p)
        own = us(table[op, way], op, way, size, nranks, nodes[uid])
        # What is said to be chosen is the best, as far as one decimal tells.
        entry = table[op, way]
        least = us((entry[0] - HALF, entry[1] + HALF), op, way, size, nranks,
                   nodes[uid])
        for (name, other), entry in table.items():
            most = us((entry[0] + HALF, max(entry[1] - HALF, 1e-3)), op, other,
                      size, nranks, nodes[uid])
            assert name != op or least <= most, (op, size, way, other, own)
        expected[link, op, nranks, size].append(own)
        calls += 1
    said = {}
    for link, op, nranks, size, nccl, prior, n in job.execute(
            "SELECT p.link, k.name, nranks, bytes, nccl_us, prior_us, calls "
            "FROM prediction p JOIN op_kind k ON k.id = p.kind"):
        assert prior is not None
        if op == "send":
            assert nccl is None
            continue
        said[link, op, nranks, size] = nccl
        want = sum(expected[link, op, nranks, size]) / n
        assert abs(nccl / want - 1) < 1e-6, (op, size, nccl, want)
    assert set(said) == set(expected) and said
    model = json.loads(jobs.commtrace("model", "--json", trace))
    for line in model["jobs"][0]["predictions"]:
        if line["op"] != "send/recv":
            assert line["nccl_us"] > 0 and line["prior_us"] > 0, line
    assert "NCCL's own" in jobs.commtrace("model", trace)
    return calls


def check_ops(trace):
    """Every rank's file and job.db say the same of each call."""
    job = sqlite3.connect(trace + ".job.db")
    told = 0
    for rank, db in jobs.traces(trace).items():
        columns = "op, comm, ordinal, peer, algorithm, protocol, channels"
        own = list(db.execute("SELECT %s FROM v_op ORDER BY id" % columns))
        all_ = list(job.execute("SELECT %s FROM v_op WHERE rank = %d "
                                "ORDER BY id" % (columns, rank)))
        assert len(own) == len(all_)
        for a, b in zip(own, all_):
            assert a[:4] == b[:4]
            assert a[4] is None or a == b, (rank, a, b)
            told += a[4] is not None
            # Whoever printed it, all ranks of a collective know.
            assert (b[4] is None) == (b[0] in ("send", "recv")), (rank, b)
    quality = jobs.report(trace)["jobs"][0]["quality"]["nccl"]
    assert quality["choices"] == quality["by_log"] == told, (quality, told)
    assert quality["unplaced"] == quality["disagreed"] == 0, quality
    assert quality["by_profiler"] == quality["timed"] == 0, quality


def check_profiler(trace):
    """The profiler's word beside the log's, call by call."""
    both = told = 0
    for rank, db in jobs.traces(trace).items():
        said = collections.defaultdict(dict)
        for source, comm, kind, n, *way in db.execute(
                "SELECT h.source, h.comm, h.kind, c.n, h.algorithm, "
                "h.protocol, h.channels FROM choice c JOIN choice_class h "
                "ON h.id = c.class WHERE h.peer IS NULL"):
            assert (comm, kind, n) not in said[source], (rank, source, n)
            said[source][comm, kind, n] = way
        for call, way in said["log"].items():
            assert said["plugin"][call] == way, (rank, call, way,
                                                 said["plugin"][call])
            both += 1
        told += len(said["plugin"])
    nccl = jobs.report(trace)["jobs"][0]["quality"]["nccl"]
    ops = json.loads(jobs.commtrace("ops", "--json", trace))["jobs"][0]["ops"]
    collectives = [op for op in ops if op["kind"] not in ("send", "recv")]
    assert nccl["unplaced"] == nccl["disagreed"] == nccl["by_log"] == 0, nccl
    assert nccl["by_profiler"] == nccl["timed"] == len(ops), nccl
    assert told == len(collectives) and both > 0, (told, both)
    for op in ops:
        # Both are taken around one kernel here, and a GPU's clock ticks.
        assert op["kernel_us"] <= op["gpu_us"] + .1, op
    return both


def check_graphs(trace):
    """Runs of graphs have kernel times, and choices as at their capture."""
    report = jobs.report(trace)["jobs"][0]["quality"]
    graphs, nccl = report["graphs"], report["nccl"]
    assert nccl["replays"] == graphs["runs"] > 0, report
    assert nccl["unplaced"] == nccl["disagreed"] == 0, nccl
    ops = json.loads(jobs.commtrace("ops", "--json", trace))["jobs"][0]["ops"]
    captured = [op for op in ops if "captured" in (op["state"] or "")
                and op["kind"] == "all_reduce"]
    assert captured and graphs["timed_ops"] == len(captured), graphs
    for op in captured:
        assert op["runs"] > 1 and op["gpu_us"] > 0 and op["algorithm"], op
        assert op["transfer_us"] <= op["gpu_us"], op
    db = trace + ".job.db"
    jobs.commtrace("merge", "--db", db, trace)
    runs = dict(sqlite3.connect(db).execute(
        "SELECT process * 1000 + op, count(DISTINCT launch) FROM kernel "
        "WHERE launch NOT NULL GROUP BY 1"))
    assert sum(runs.values()) == graphs["runs"], (runs, graphs)


def main():
    for argv, env in JOBS:
        with jobs.Scratch() as tmp:
            trace, out, err = run(tmp, "ours", argv,
                                  COMMTRACE_NCCL_LOG="tuning", **env)
            if "NCCL" in out + err:
                jobs.fail("NCCL's log is the job's output: %s" % (out + err))
            logs = os.path.join(tmp, "logs")
            os.mkdir(logs)
            user, _, _ = run(tmp, "theirs", argv, NCCL_DEBUG="INFO",
                             NCCL_DEBUG_SUBSYS="INIT,TUNING",
                             NCCL_DEBUG_FILE=os.path.join(logs, "%p"), **env)
            ours, theirs = stored(trace), printed(logs)
            check_same(ours, theirs)
            check_same(stored(user), theirs)
            ways = {way[0] for _, _, way, _ in ours[1]}
            assert ways == {"TREE"} if env else "RING" in ways, ways
            calls = check_model(trace, ours[0])
            check_ops(trace)
            # Since 2.29.2 NCCL tells a plugin of broadcasts only so.
            trace, _, _ = run(tmp, "both", argv, COMMTRACE_NCCL_LOG="tuning",
                              COMMTRACE_PROFILER="kernel",
                              NCCL_ALLGATHERV_ENABLE="0", **env)
            both = check_profiler(trace)
            print("%s: %d tables, %d lines, %d collectives, %d by both" % (
                argv[0], len(ours[0]), sum(ours[1].values()), calls, both))
    with jobs.Scratch() as tmp:
        trace, _, _ = run(tmp, "graphs", ["graph_job", "replay"], ranks=2,
                          COMMTRACE_NCCL_LOG="tuning",
                          COMMTRACE_PROFILER="kernel")
        check_graphs(trace)


if __name__ == "__main__":
    main()
