"""test_kineto.py COMMTRACE TRACEGEN: the calls of a real DDP job (a Kineto trace
of rank 0 of two A100, HolisticTraceAnalysis, MIT licence), played by the
generator with waits as that trace has them, on one host and on two with wrong
clocks: steps, transfers, waits and the fit come out as known. Of the trace
itself only what is called is taken: its durations hold waits, and nobody knows
how long."""
import gzip
import json
import os
import subprocess
import sys
import tempfile

import truth

COMMTRACE, TRACEGEN = sys.argv[1:3]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
TRACE = os.path.join(ROOT, "..", "shared", "data", "kineto",
                     "hta_nccl_data_2xA100_ddp.json.gz")
NAMES = {"allreduce": "all_reduce", "broadcast": "broadcast"}
TYPES = {"Float": "float", "Long": "int64"}
STEPS, ALPHA_US, GBPS = 24, 20, 12
PLACES = ("--hosts 1", "--hosts 2 --clock-us 50 --drift-ppm 1")


def real_step():
    """(op, elements, type) of each call in one step, in order."""
    with gzip.open(TRACE) as f:
        events = json.load(f)["traceEvents"]
    calls = [(NAMES[e["args"]["Collective name"]], e["args"]["In msg nelems"],
              TYPES[e["args"]["dtype"]])
             for e in sorted((e for e in events if e.get("cat") == "kernel" and
                              "Collective name" in e.get("args", {})),
                             key=lambda e: e["ts"])]
    first = calls.index(("broadcast", 53120, "float"))
    period = calls.index(calls[first], first + 1) - first
    step = calls[first:first + period]
    assert calls == [step[(i - first) % period] for i in range(len(calls))]
    return step


def generate(folder, step, place):
    counts = {op: ",".join(str(n) for name, n, _ in step if name == op)
              for op in NAMES.values()}
    subprocess.run(
        [TRACEGEN, "--out", folder, "--truth-db", "--dp", "2", "--layers", "4",
         "--micro-batches", "1", "--steps", str(STEPS), "--scalars", "0",
         "--overlap", "--bucket-counts", counts["all_reduce"], "--buffers",
         counts["broadcast"], "--alpha-us", "%d,%d" % (ALPHA_US, ALPHA_US),
         "--GBps", "%d,%d" % (GBPS, GBPS), "--compute-us", "16000", "--jitter",
         ".05", "--seed", "7"] + place.split(), check=True,
        stdout=subprocess.DEVNULL)


def check(tmp, step, place):
    folder, db = os.path.join(tmp, "job"), os.path.join(tmp, "job.db")
    subprocess.run(["rm", "-rf", folder], check=True)
    generate(folder, step, place)
    subprocess.run([COMMTRACE, "merge", "--db", db, folder], check=True)
    job = truth.Job(db, os.path.join(folder, "truth.sqlite"))
    with open(os.path.join(folder, "truth.json")) as f:
        known = json.load(f)
    for process, rank in job.rank_of.items():
        calls = job.db.execute(
            "SELECT k.name, c.count, t.name FROM op o JOIN op_class c"
            "  ON c.process = o.process AND c.id = o.class"
            "  JOIN op_kind k ON k.id = c.kind JOIN data_type t ON t.id = c.type"
            " WHERE o.process = ? ORDER BY o.id", (process,)).fetchall()
        for first, last in known["steps"][rank]:
            assert calls[first:last + 1] == step, calls[first:last + 1]
        found = job.db.execute(
            "SELECT step, min(op), max(op) FROM op_match WHERE process = ? AND"
            " step IS NOT NULL GROUP BY step ORDER BY step", (process,)
        ).fetchall()
        # A step may end with any of its calls; what counts is that all of one
        # are in one, and that there are as many.
        lengths = {last - first + 1 for _, first, last in found[1:-1]}
        assert lengths == {len(step)} and len(found) >= STEPS - 1, found
    faults, counts = truth.mismatches(job)
    assert not faults, faults[:3]
    for kind, errors in truth.transfer_errors(job).items():
        off = truth.median([e for e, _ in errors])
        assert off < .02, (kind, off)
    waits = truth.median(truth.wait_errors(job))
    assert waits < .02, waits
    report = json.loads(subprocess.run(
        [COMMTRACE, "report", "--json", folder], check=True,
        stdout=subprocess.PIPE).stdout)["jobs"][0]
    roles = {(r["role"], r["op"]) for r in report["roles"]}
    assert ("DP", "all_reduce") in roles, roles
    fit, = [f for f in report["fits"] if f["op"] == "all_reduce"]
    assert fit["algbw_GBps"] and abs(fit["algbw_GBps"] / GBPS - 1) < .05, fit
    print("%s: %d calls, %d steps, waits off by %.2f %%, all_reduce %.3g GB/s "
          "for %d" % (place, counts["ops"], STEPS, 100 * waits,
                      fit["algbw_GBps"], GBPS))


def main():
    if not os.path.exists(TRACE):
        print("skipped: %s is not there" % os.path.normpath(TRACE))
        sys.exit(77)
    step = real_step()
    print("a step: " + ", ".join("%s %d %s" % call for call in step))
    with tempfile.TemporaryDirectory() as tmp:
        for place in PLACES:
            check(tmp, step, place)


if __name__ == "__main__":
    main()
