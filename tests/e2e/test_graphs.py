"""NCCL calls in CUDA graphs: what is recorded of captures and launches is
exact, the analyzer multiplies, and the job meets no error that it would not
meet alone (graph_job.c checks its own calls and data)."""
import json
import os
import re
import sqlite3
import subprocess
import sys

import jobs

RANKS = 2
CAPTURED = 32
ENV = {"COMMTRACE_FLUSH_MS": "10"}


def equal(what, found, wanted):
    if found != wanted:
        jobs.fail("%s: %r instead of %r" % (what, found, wanted))


def run(case, trace):
    """What the job says of itself, alone and traced."""
    bare = jobs.job("fast", RANKS, ["graph_job", case])
    traced = jobs.job("fast", RANKS, ["graph_job", case], trace, ENV)
    equal(case, (traced.stdout, traced.stderr), (bare.stdout, bare.stderr))
    words = re.findall(r"(\w+) (\d+)", bare.stdout)
    return {name: int(n) for name, n in words}


def held_by(db):
    """Ops in one launch of each graph, by id."""
    held = dict(db.execute(
        "SELECT c.graph, count(*) FROM op o JOIN op_class c ON c.id = o.class"
        " WHERE c.graph NOTNULL AND o.flags >> 16 = 0 GROUP BY 1"))
    for whole, first, second in db.execute(
            "SELECT id, first, second FROM graph WHERE id < 0"
            " ORDER BY id DESC"):
        held[whole] = held.get(first, 0) + held.get(second, 0)
    return held


def recorded(case, db, truth):
    held = held_by(db)
    launches = db.execute("SELECT graph, result, host_ns FROM graph_launch")
    n = {"launches": 0, "others": 0, "runs": 0}
    for graph, result, host_ns in launches:
        if host_ns is None or host_ns < 0:
            jobs.fail("%s: a launch that did not end" % case)
        ops = held.get(graph, 0) if result == 0 else 0
        n["launches" if ops else "others"] += 1
        n["runs"] += ops
    n["captured"] = db.execute(
        "SELECT count(*) FROM op WHERE flags & ? AND flags >> 16 = 0",
        (CAPTURED,)).fetchone()[0]
    equal(case, n, truth)
    if db.execute("SELECT count(*) FROM loss").fetchone()[0]:
        jobs.fail("%s: losses" % case)
    if db.execute("SELECT count(*) FROM op WHERE flags & ? AND"
                  " gpu_ns NOTNULL", (CAPTURED,)).fetchone()[0]:
        jobs.fail("%s: a captured op has a time" % case)


def eager(db):
    """Calls of the process that ran at once."""
    return db.execute("SELECT count(*) FROM op WHERE NOT flags & ? AND"
                      " flags >> 16 = 0", (CAPTURED,)).fetchone()[0]


def parts(case, trace, job, dbs):
    """Of a part of the time, what was launched in it counts."""
    def report(*options):
        text = jobs.commtrace("report", "--json", *options, trace)
        return json.loads(text)["jobs"][0]

    whole = report("--from", "0")
    equal(case + ": from 0", whole.pop("selection")["ops"], job["job"]["ops"])
    equal(case + ": all chosen", whole, job)
    launched = [ns for ns, in dbs[0].execute(
        "SELECT enter_ns FROM graph_launch ORDER BY 1")]
    middle = "%dus" % (launched[len(launched) // 2] // 1000)
    runs = [report(option, middle)["job"]["runs"] for option in
            ("--from", "--to")]
    equal(case + ": before and after", sum(runs), job["job"]["runs"])
    if min(runs) < 1:
        jobs.fail("%s: no runs in %r" % (case, runs))


def told(case, trace, truth, dbs):
    """Totals of the commands."""
    job = json.loads(jobs.commtrace("report", "--json", trace))["jobs"][0]
    graphs = job["quality"]["graphs"]
    alone = sum(eager(db) for db in dbs.values())
    equal(case + ": report", {name: graphs[name] for name in (
        "captured_ops", "launches", "other_launches", "runs", "blind_ops")},
          {"captured_ops": RANKS * truth["captured"],
           "launches": RANKS * truth["launches"],
           "other_launches": RANKS * truth["others"],
           "runs": RANKS * truth["runs"], "blind_ops": 0})
    equal(case + ": job", job["job"]["runs"], alone + RANKS * truth["runs"])
    ops = json.loads(jobs.commtrace("ops", "--json", trace))["jobs"][0]["ops"]
    inside = [op for op in ops if "captured" in (op["state"] or "")]
    equal(case + ": ops", (len(inside), sum(op["runs"] for op in inside)),
          (RANKS * truth["captured"], RANKS * truth["runs"]))
    equal(case + ": other ops", {op["runs"] for op in ops
                                 if op not in inside}, {1})
    groups = json.loads(jobs.commtrace("groups", "--json", trace))["jobs"][0]
    parts(case, trace, job, dbs)
    return job, ops, groups["groups"]


def all_reduces_are_exact(case, trace, truth, dbs):
    """Where all calls are collectives, every rank's are the job's."""
    _, ops, groups = told(case, trace, truth, dbs)
    first = [db for rank, db in dbs.items() if rank == 0][0]
    calls = eager(first) + truth["runs"]
    equal(case + ": groups", sum(g["calls"] for g in groups), calls)
    model = json.loads(jobs.commtrace("model", "--json", trace))["jobs"][0]
    equal(case + ": model", sum(p["calls"] for p in model["predictions"]),
          calls)
    mine = [op for op in ops if op["rank"] == 0]
    db = os.path.join(trace, "job.db")
    jobs.commtrace("merge", "--db", db, trace)
    whole = sqlite3.connect(db)
    equal(case + ": job.db", whole.execute(
        "SELECT sum(runs), sum(runs * bytes) FROM instance").fetchone(),
          (calls, sum(op["runs"] * op["bytes"] for op in mine)))
    equal(case + ": launches in job.db", whole.execute(
        "SELECT count(*) FROM graph_launch").fetchone()[0],
          RANKS * (truth["launches"] + truth["others"]))
    equal(case + ": roles in job.db", whole.execute(
        "SELECT sum(ops) FROM v_step_role").fetchone()[0],
          sum(eager(db) for db in dbs.values()) + RANKS * truth["runs"])
    equal(case + ": ops in job.db", whole.execute(
        "SELECT sum(runs), sum(runs * bytes) FROM v_op").fetchone(),
          (sum(op["runs"] for op in ops),
           sum(op["runs"] * op["bytes"] for op in ops)))
    equal(case + ": graphs in job.db", whole.execute(
        "SELECT count(*) FROM op o JOIN op_class c ON c.process = o.process"
        " AND c.id = o.class WHERE c.graph NOTNULL").fetchone()[0],
          RANKS * truth["captured"])


def replay(trace, truth, dbs):
    """An all-reduce, and a message to each neighbour, a hundred times."""
    equal("replay", truth, {"captured": 3, "launches": 100, "others": 0,
                            "runs": 300})
    _, ops, groups = told("replay", trace, truth, dbs)
    equal("replay: groups", sum(g["calls"] for g in groups),
          eager(dbs[0]) + 100 * (1 + RANKS))
    equal("replay: bytes", sum(op["runs"] * op["bytes"] for op in ops
                               if "captured" in (op["state"] or "")),
          RANKS * 300 * 400)
    streams = dbs[0].execute("SELECT count(DISTINCT stream), min(stream) FROM"
                             " graph_launch").fetchone()
    equal("replay: streams", streams[0], 6)
    equal("replay: default stream", streams[1], 0)


def blind(tmp):
    trace = os.path.join(tmp, "blind")
    run("blind", trace)
    job = json.loads(jobs.commtrace("report", "--json", trace))["jobs"][0]
    graphs = job["quality"]["graphs"]
    equal("blind", (graphs["blind_ops"], graphs["runs"], graphs["launches"]),
          (2 * RANKS, 0, 0))
    text = jobs.commtrace("report", trace)
    if "no graph launch was seen" not in re.sub(r"\s+", " ", text):
        jobs.fail("blind: not said:\n" + text)


def inert(tmp):
    """Graphs without NCCL leave nothing behind."""
    trace = os.path.join(tmp, "inert")
    program = os.path.join(jobs.BUILD, "tests", "fabric", "test_fabric_driver")
    env = dict(os.environ, COMMTRACE_DIR=trace, LD_PRELOAD=jobs.SHIM,
               FABRIC=os.path.join(jobs.MACHINES, "two_hosts.fabric"))
    done = subprocess.run([program], env=env, capture_output=True, text=True,
                          timeout=120)
    equal("inert", (done.returncode, done.stdout, done.stderr), (0, "", ""))
    if os.path.exists(trace):
        jobs.fail("a program without NCCL left a trace")


def main():
    with jobs.Scratch() as tmp:
        for case in sys.argv[1:] or ("replay", "handles", "calls", "failed",
                                     "modes", "threads"):
            trace = os.path.join(tmp, case)
            truth = run(case, trace)
            dbs = jobs.traces(trace)
            for db in dbs.values():
                recorded(case, db, truth)
            if case == "replay":
                replay(trace, truth, dbs)
            else:
                all_reduces_are_exact(case, trace, truth, dbs)
        blind(tmp)
        inert(tmp)
    print("captures, launches, totals: as they were")


if __name__ == "__main__":
    main()
