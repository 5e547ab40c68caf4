"""checks.py NAME: one check, by name; prints its figures. Exit 0: passed,
77: skipped, 1: failed; then the last line is the reason."""
import glob
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time

import harness
import trace_facts
from bounds import Bound
from harness import ON_FABRIC, Fail, Skip

SKIPPED = 77


# 1. What machine this is.

def nvidia_smi(*argv):
    return harness.output("nvidia-smi", *argv).strip()


def machine():
    facts = harness.facts()
    version = harness.output(harness.COMMTRACE, "--version").strip()
    driver = "the fabric" if ON_FABRIC else nvidia_smi(
        "--query-gpu=driver_version,memory.total", "--format=csv,noheader")
    return ("%s, driver %s, CUDA %s, NCCL %s of %s, torch %s, python %s, %s, "
            "kernel %s, %d cores, %s" %
            (facts["gpu"], driver, facts["cuda"], facts["nccl"],
             facts["libnccl"], facts["torch"], platform.python_version(),
             " ".join(platform.libc_ver()), platform.release(),
             os.cpu_count(), version))


# 2. PyTorch on one rank: trace against Flight Recorder, GPU times, results.

def job_of_one_rank(mode):
    bare_at, where = (harness.folder(mode, n) for n in ("bare", "traced"))
    trace, flight, witness = (harness.folder(mode, n)
                              for n in ("trace", "flight", "witness"))
    paths = [os.path.join(harness.HERE, "flight"), os.environ.get("PYTHONPATH")]
    bare = harness.torchrun(bare_at, 1, "one_rank.py", mode)
    traced = harness.torchrun(
        where, 1, "one_rank.py", mode, trace=trace, COMMTRACE_TIMING="all",
        WITNESS=witness, FLIGHT=flight, PYTHONPATH=os.pathsep.join(filter(None, paths)))
    bare.end()
    traced.end()
    if not traced.stdout or bare.stdout != traced.stdout:
        raise Fail("the traced job prints %r, the other one %r" %
                   (traced.stdout, bare.stdout))
    said = [line for line in traced.stderr.splitlines()
            if line.startswith("commtrace")]
    if said:
        raise Fail("the recorder said: " + said[0])
    with open(os.path.join(where, "marks")) as f:
        marks = [int(line) for line in f]
    return trace, flight, witness, marks


def without_captured(trace, account):
    """The account of a trace, and how many ops it lost."""
    import accounts
    db, = trace_facts.open_all(trace)
    captured = trace_facts.flag_bits(db)["captured"]
    at = [i for i, op in enumerate(trace_facts.ops(db))
          if not op.flags & captured]
    kept = accounts.Account()
    for name in ("ops", "groups"):
        setattr(kept, name, [getattr(account, name)[i] for i in at])
    return kept, len(account.ops) - len(at)


def copies_alone(rule):
    """Some releases of PyTorch copy where a rank scatters to itself; then its
    recorder has an entry without a call."""
    def both(entry):
        alone = [([], "reduce-scatter of one rank, that PyTorch copies")]
        return rule(entry) + (alone if entry.n == 1 else [])
    return both


def as_recorded(trace, flight, witness):
    """Op by op what the witness and PyTorch's own recorder say. Whether that
    one has entries for ops captured into a graph depends on the release."""
    import accounts
    import compare
    import flight_recorder
    traced, flights = accounts.read_traces(trace), flight_recorder.read(flight)
    if len(traced) != 1 or sorted(traced) != sorted(flights):
        raise Fail("traces of %s, Flight Recorder of %s" % (sorted(traced),
                                                            sorted(flights)))
    compare.with_witness(traced, accounts.read_witness(witness))
    rules = flight_recorder.RULES
    rules.update({name: copies_alone(rules[name])
                  for name in ("_reduce_scatter_base", "reduce_scatter")})
    (who, account), = traced.items()
    entries, ops = flights[who], len(account.ops)
    different, why = flight_recorder.differences(entries, account)
    if different:
        account, captured = without_captured(trace, account)
        if not captured:
            raise Fail("Flight Recorder: " + different)
        different, why = flight_recorder.differences(entries, account)
        why["captured op without an entry"] = captured
    if different:
        raise Fail("Flight Recorder: " + different)
    notes = "".join(", %d x %s" % (n, reason) for reason, n in why.items())
    return "%d ops as the witness saw them and the Flight Recorder's %d " \
        "entries say%s" % (ops, len(entries), notes)


REPLAYS, CAPTURED = 20, 2  # of jobs/one_rank.py graphs


def graphs_replayed(db):
    """What the real runtime and driver say of captures is what launches say
    of their graphs."""
    launches = db.execute(
        "SELECT l.graph, count(*), sum(l.result = 0) FROM graph_launch l JOIN"
        " graph g ON g.id = l.graph GROUP BY 1").fetchall()
    held = db.execute(
        "SELECT c.graph, count(*) FROM op o JOIN op_class c ON c.id = o.class"
        " WHERE c.graph NOTNULL GROUP BY 1").fetchall()
    if len(held) != 1 or held[0][1] != CAPTURED:
        raise Fail("captured into graphs: %s" % held)
    if launches != [(held[0][0], REPLAYS, REPLAYS)]:
        raise Fail("launches %s of graph %d" % (launches, held[0][0]))
    return "; %d launches of the graph of %d ops" % (REPLAYS, CAPTURED)


def one_rank(mode):
    def check():
        trace, flight, witness, marks = job_of_one_rank(mode)
        recorded = as_recorded(trace, flight, witness)
        db, = trace_facts.open_all(trace)
        if mode == "graphs":
            recorded += graphs_replayed(db)
        return "results equal; %s; %s" % (recorded,
                                          trace_facts.plausible(db, marks))
    return check


# 3. What an op costs.

MODES = {"bare": None, "off": "off", "all": "all"}
OP_COST_SECONDS = 70
OFF_NS, EVENTS_NS = 1000, 20000  # more than this is no noise


def op_cost_of(mode, facts):
    trace = harness.folder("op_cost", mode) if MODES[mode] else None
    env = harness.environment(trace, **(
        {"COMMTRACE_TIMING": MODES[mode]} if trace else {}))
    out = harness.output(harness.OP_COST, facts["libcuda"], facts["libnccl"],
                         "0.7", env=env)
    return {line.split()[0]: float(line.split()[1])
            for line in out.splitlines()}


def op_cost():
    facts, rounds = harness.facts(), []
    until = time.monotonic() + (20 if ON_FABRIC else OP_COST_SECONDS)
    while len(rounds) < 3 or time.monotonic() < until and len(rounds) < 12:
        order = sorted(MODES, reverse=len(rounds) % 2)
        rounds.append({mode: op_cost_of(mode, facts) for mode in order})
    texts, high = [], []
    for kind in rounds[0]["bare"]:
        off, events = (Bound([r[mode][kind] - r[less][kind] for r in rounds])
                       for mode, less in (("off", "bare"), ("all", "off")))
        texts.append("%s: bare %.0f ns, hook %s, events %s" % (
            kind, statistics.median(r["bare"][kind] for r in rounds),
            off.text("ns"), events.text("ns")))
        high += [kind] * (off.upper > OFF_NS or events.upper > EVENTS_NS)
    text = "%d rounds; %s" % (len(rounds), "; ".join(texts))
    harness.figures_only(text)
    if high:
        raise Fail("more than %d ns without, %d ns for events: %s" %
                   (OFF_NS, EVENTS_NS, text))
    return text


# 4. What a training loop loses.

# Two processes differ for reasons of their own, so there are several pairs.
RESTARTS, WINDOWS, OVERHEAD_MAX = 5, 5, 0.02
TRAINING_SECONDS = 100


class Trainer:
    def __init__(self, where, trace):
        self.errors = os.path.join(where, "stderr")
        env = harness.environment(trace, MASTER_PORT=str(harness.free_port()),
                                  MARKS=os.path.join(where, "marks"))
        with open(self.errors, "w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-B",
                 os.path.join(harness.HERE, "jobs", "windows.py")], env=env,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True, bufsize=1)

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise Fail("training: " + harness.last_line(
                open(self.errors).read()))
        return line.split()

    def window(self):
        self.process.stdin.write("\n")
        return [float(x) for x in self.line()]

    def end(self):
        self.process.stdin.close()
        if self.process.wait():
            raise Fail("training ended with %d: %s" % (
                self.process.returncode,
                harness.last_line(open(self.errors).read())))


def pairs_of(restart):
    """Both processes live; their windows alternate."""
    where = harness.folder("training", str(restart), "bare")
    traced_at = harness.folder("training", str(restart), "traced")
    trace = harness.folder("training", "trace%d" % restart)
    both = [Trainer(where, None), Trainer(traced_at, trace)]
    steps = [int(t.line()[1]) for t in both][0]
    pairs = []
    for n in range(WINDOWS):
        order = (0, 1) if n % 2 else (1, 0)
        took = {i: both[i].window() for i in order}
        pairs.append((took[0], took[1]))
    for trainer in both:
        trainer.end()
    db, = trace_facts.open_all(trace)
    return steps, pairs, len(trace_facts.ops(db)) / (steps * (WINDOWS + 1))


def overheads(restarts, i):
    """Bounds over all pairs of windows, and over pairs of processes."""
    of_windows = [[(b[i] - a[i]) / a[i] for a, b in pairs]
                  for pairs in restarts]
    return (Bound([x for windows in of_windows for x in windows]),
            Bound([statistics.mean(windows) for windows in of_windows]))


def training():
    restarts, until = [], time.monotonic() + TRAINING_SECONDS
    while len(restarts) < (2 if ON_FABRIC else 3) or not ON_FABRIC and \
            len(restarts) < RESTARTS and time.monotonic() < until:
        steps, pairs, ops = pairs_of(len(restarts))
        restarts.append(pairs)
    step_s = statistics.median(a[0] for pairs in restarts for a, _ in pairs)
    text = ("%d pairs of windows, in %d pairs of processes, of %d steps of "
            "%.1f ms with %.0f ops" % (sum(map(len, restarts)), len(restarts),
                                       steps, step_s / steps * 1e3, ops))
    for i, what in enumerate(("wall time", "CPU time")):
        windows, processes = overheads(restarts, i)
        text += "; %s %s over windows, %s over processes" % (
            what, windows.text("%", 100), processes.text("%", 100))
    harness.figures_only(text)
    if max(b.upper for b in overheads(restarts, 0)) > OVERHEAD_MAX:
        raise Fail("wall time: not shown to be below %.0f %%: %s" %
                   (100 * OVERHEAD_MAX, text))
    return text


# 5. Topology.

def section(text, title):
    """name: value of a section of nvidia-smi -q"""
    found = re.search(r"^( +)%s *\n((?:\1 +.*\n)+)" % title, text, re.M)
    lines = found.group(2).splitlines() if found else []
    return {k.strip(): v.strip() for k, _, v in
            (line.partition(":") for line in lines)}


def tidy_pci(pci):
    return re.sub("^0+(?=[0-9a-f]{4})", "", pci.lower())


def first_line(path):
    try:
        with open(path) as f:
            return f.readline().strip() or None
    except OSError:
        return None


def rate(text):
    """Mbit/s of "400 Gb/sec (4X NDR)"."""
    found = re.match(r"([\d.]+) Gb/sec", text or "")
    return found and int(float(found[1]) * 1000)


def ports():
    """Of this machine, as nic has them."""
    rdma = {(path, "rdma", first_line(path + "/link_layer"),
             (first_line(path + "/state") or "").partition(": ")[2],
             rate(first_line(path + "/rate")))
            for path in glob.glob("/sys/class/infiniband/*/ports/*")}
    net = {(path, "net", None, first_line(path + "/operstate"))
           for path in glob.glob("/sys/class/net/*")
           if "/virtual/" not in os.path.realpath(path)}
    return rdma, net


def check_ports(db):
    rdma, net = ports()
    rows = db.execute("SELECT source, kind, link_layer, state, mbps, pci"
                      " FROM nic").fetchall()
    if {row[:5] for row in rows if row[1] == "rdma"} != rdma:
        raise Fail("RDMA ports %s, of sysfs %s" % (rows, sorted(rdma)))
    if not {row[:4] for row in rows if row[1] == "net"} >= net:
        raise Fail("interfaces %s, of sysfs %s" % (rows, sorted(net)))
    for pci, numa in db.execute("SELECT pci, numa FROM nic WHERE pci NOTNULL"
                                " UNION SELECT pci, numa FROM device"):
        node = first_line("/sys/bus/pci/devices/%s/numa_node" % pci)
        if numa != (int(node) if node and int(node) >= 0 else None):
            raise Fail("NUMA node %s of %s, of sysfs %s" % (numa, pci, node))
    ways = db.execute("SELECT n.name, g.path FROM gpu_nic g JOIN nic n ON"
                      " n.id = g.nic").fetchall()
    return "%d RDMA ports and %d interfaces as in sysfs; %s" % (
        len(rdma), len(rows) - len(rdma),
        ", ".join("%s %s" % way for way in ways) or "no ways to them")


def device_rows():
    """Of the first trace that a job of this run left."""
    for mode in ("ddp", "fsdp", "streams"):
        try:
            db = trace_facts.open_all(harness.folder(mode, "trace"))[0]
        except Fail:
            continue
        return db, db.execute("SELECT uuid, pci, name, cluster, clique, source"
                              " FROM device").fetchall()
    raise Fail("no job has left a trace")


def fabric_of(query):
    fabric = section(query, "Fabric")
    cluster = fabric.get("ClusterUUID", "N/A").lower()
    known = re.fullmatch(r"[0-9a-f-]{36}", cluster) and set(cluster) - set("0-")
    return (cluster, int(fabric["CliqueId"])) if known and \
        fabric.get("State") == "Completed" else (None, None)


def topology():
    db, rows = device_rows()
    if len(rows) != 1:
        raise Fail("%d devices: %s" % (len(rows), rows))
    around = check_ports(db)
    harness.need_gpu("the trace says %s; %s; %s" % (rows[0], around,
                                                     harness.NO_GPU))
    uuid, pci, name, cluster, clique, source = rows[0]
    smi = dict((row[0], row[1:]) for row in (
        [w.strip() for w in line.split(",", 2)] for line in nvidia_smi(
            "--query-gpu=uuid,pci.bus_id,name",
            "--format=csv,noheader").splitlines()))
    if uuid not in smi or [tidy_pci(pci), name] != [tidy_pci(smi[uuid][0]),
                                                    smi[uuid][1]]:
        raise Fail("trace: %s; nvidia-smi: %s" % (rows[0], smi))
    if source != "nvml":
        raise Fail("nvidia-smi works, yet the facts come from: " + source)
    said = fabric_of(nvidia_smi("-q", "-i", uuid))
    if (cluster, clique) != said:
        raise Fail("NVLink fabric %s, of nvidia-smi %s" % ((cluster, clique),
                                                           said))
    links = db.execute("SELECT kind, links FROM gpu_link").fetchall()
    count = sum(n or 0 for _, n in links)
    try:
        there = len(re.findall(r"Link \d+: [\d.]+ GB/s",
                               nvidia_smi("nvlink", "-s", "-i", uuid)))
    except Fail:
        there = None  # it does not know
    if there not in (None, count):
        raise Fail("%d NVLinks in the trace, nvidia-smi shows %d" % (count,
                                                                     there))
    return ("%s, %s, %s as nvidia-smi prints them; fabric %s; %d NVLinks, "
            "nvidia-smi: %s; %s" % (uuid, pci, name, said[0] or "none", count,
                                    there, around))


# 6. Events and anchors.

WIDTH_MAX_NS = 200000


def traces_of_this_run():
    return sorted(glob.glob(os.path.join(harness.WORK, "**", "*.db"),
                            recursive=True))


def events():
    """The pool sufficed wherever all ops were to be timed."""
    widths, timed, lost = [], 0, []
    for path in traces_of_this_run():
        db = trace_facts.open_file(path)
        lost += [(os.path.relpath(path, harness.WORK), *row)
                 for row in trace_facts.losses(db)]
        widths += trace_facts.anchor_widths(db)
        timed += sum(op.gpu is not None for op in trace_facts.ops(db))
    if lost:
        raise Fail("lost: %s" % lost)
    if not widths:
        raise Fail("no anchors")
    widths.sort()
    median = widths[len(widths) // 2]
    text = ("%d ops timed, nothing lost; %d anchors, width min, median, max "
            "%.1f, %.1f, %.1f us" % (timed, len(widths), widths[0] / 1e3,
                                     median / 1e3, widths[-1] / 1e3))
    if median > WIDTH_MAX_NS and not ON_FABRIC:
        raise Fail("wide anchors: " + text)
    return text


# 7. Two ranks on one GPU.

MULTI_RANK_NCCL = [2, 30, 3]


def matched(trace):
    """All ranks of each op were found."""
    path = os.path.join(harness.folder("two_ranks"), "job.sqlite")
    harness.output(harness.COMMTRACE, "merge", "--db", path, trace)
    rows = trace_facts.open_file(path).execute(
        "SELECT ranks, count(*) FROM instance GROUP BY ranks").fetchall()
    if [ranks for ranks, _ in rows] != [2]:
        raise Fail("instances by ranks found: %s" % rows)
    return rows[0][1]


def two_ranks():
    version = harness.facts()["nccl_version"]
    if version < MULTI_RANK_NCCL and not ON_FABRIC:
        raise Skip("NCCL %s: two ranks share a GPU from 2.30.3 on" %
                   ".".join(map(str, version)))
    where, trace = (harness.folder("two_ranks", n) for n in ("run", "trace"))
    job = harness.torchrun(where, 2, "two_ranks.py", trace=trace,
                           COMMTRACE_TIMING="all",
                           NCCL_MULTI_RANK_GPU_ENABLE="1").end()
    if "all values right" not in job.stdout:
        raise Fail(job.stdout)
    dbs, texts = trace_facts.open_all(trace), []
    for db in dbs:
        rank, = db.execute("SELECT rank FROM process").fetchone()
        with open(os.path.join(where, "marks.%d" % rank)) as f:
            marks = [int(line) for line in f]
        texts.append(trace_facts.plausible(db, marks))
    if len(dbs) != 2:
        raise Fail("%d traces" % len(dbs))
    return "%d ops matched on both ranks%s; rank 0: %s" % (
        matched(trace), " (on two devices of the fabric)" if ON_FABRIC else "",
        texts[0])


# 8. PyTorch's profiler.

OF_OPS = ("kernel", "gpu_memcpy")


def launched(path):
    """What the profiler saw of ops on the GPU: (start, ns), CLOCK_REALTIME."""
    with open(path) as f:
        profile = json.load(f)
    base = profile.get("baseTimeNanoseconds", 0)
    found = sorted(
        (base + float(e["ts"]) * 1e3, float(e["dur"]) * 1e3, e["name"])
        for e in profile["traceEvents"]
        if e.get("cat") in OF_OPS and "spin" not in e["name"])
    if not found:
        raise Skip("the profiler saw nothing of the GPU")
    return found


def profiler():
    harness.need_gpu("the profiler's library does not work on the fabric")
    where, trace = (harness.folder("profiler", n) for n in ("run", "trace"))
    path = os.path.join(where, "profile.json")
    harness.torchrun(where, 1, "profiled.py", path, trace=trace,
                     COMMTRACE_TIMING="all").end()
    with open(os.path.join(where, "marks")) as f:
        begin = int(f.readline())
    db, = trace_facts.open_all(trace)
    t0, real = db.execute("SELECT t0_ns, t0_real_ns FROM process").fetchone()
    ops = [op for op in trace_facts.ops(db) if op.enter > begin]
    seen = launched(path)
    if 2 * len(seen) == len(ops):  # it launches nothing for those in place
        in_place = trace_facts.flag_bits(db)["in_place"]
        ops = [op for op in ops if not op.flags & in_place]
    if len(ops) != len(seen):
        raise Fail("%d ops, of which the profiler saw %d: %s" % (
            len(ops), len(seen), sorted({name for _, _, name in seen})))
    if any(op.gpu is None for op in ops):
        raise Fail("an op without GPU time")
    more = [op.gpu - ns for op, (_, ns, _) in zip(ops, seen)]
    shift = [op.start - t0 + real - at for op, (at, _, _) in zip(ops, seen)]
    # Of each size as many find the GPU idle as then find it busy.
    same = sum(op.count == ops[0].count for op in ops)
    busy = [i for i in range(len(ops)) if i % same >= same // 2]
    idle = [i for i in range(len(ops)) if i % same < same // 2]
    text = ("%d ops of %.1f to %.1f us; trace minus profiler: duration %s on a "
            "busy GPU, %s on an idle one; start %s" %
            (len(ops), min(ns for _, ns, _ in seen) / 1e3,
             max(ns for _, ns, _ in seen) / 1e3,
             spread([more[i] for i in busy]), spread([more[i] for i in idle]),
             spread(shift)))
    wrong = [i for i in busy
             if not -2000 - 0.02 * seen[i][1] < more[i] <
             30000 + 0.05 * seen[i][1]]
    if wrong:
        raise Fail("op %d: %d ns, %d by the profiler; %s" %
                   (wrong[0], ops[wrong[0]].gpu, seen[wrong[0]][1], text))
    return text


def spread(ns):
    low, middle, high = min(ns), statistics.median(ns), max(ns)
    return "%.1f (%.1f to %.1f) us" % (middle / 1e3, low / 1e3, high / 1e3)


# 9. Reports.

REPORT_LINES = 90  # of each folder's, in the result file


def reports():
    folders = sorted({os.path.dirname(p) for p in traces_of_this_run()})
    if not folders:
        raise Fail("no traces")
    with open(os.path.join(harness.WORK, "summaries"), "w") as f:
        for trace in folders:
            f.write("\n== %s\n" % os.path.relpath(trace, harness.WORK))
            for db in trace_facts.open_all(trace)[:2]:
                f.writelines(line + "\n" for line in trace_facts.summary(db))
            said = harness.output(harness.COMMTRACE, "report", trace)
            if not said.strip():
                raise Fail("report of %s is empty" % trace)
            f.write("\n" + "".join(said.splitlines(True)[:REPORT_LINES]))
    return "%d traces, each with a report" % len(folders)


# name: (check, seconds at most)
CHECKS = {
    "machine": (machine, 90),
    "ddp": (one_rank("ddp"), 90),
    "fsdp2": (one_rank("fsdp"), 90),
    "graphs": (one_rank("graphs"), 90),
    "streams": (one_rank("streams"), 90),
    "topology": (topology, 30),
    "op_cost": (op_cost, 130),
    "profiler": (profiler, 90),
    "training": (training, 160),
    "two_ranks": (two_ranks, 90),
    "events": (events, 30),
    "reports": (reports, 60),
}


def main():
    try:
        print(CHECKS[sys.argv[1]][0]())
    except Skip as why:
        print(why)
        sys.exit(SKIPPED)
    except Fail as why:
        print(" ".join(str(why).split()))
        sys.exit(1)


if __name__ == "__main__":
    main()
