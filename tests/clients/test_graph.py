"""test_graph.py [BACKEND...]: PyTorch's own capture of collectives and of a
DDP step: each op once, each replay a launch, totals exact, and the job prints
what it prints alone."""
import json
import os
import re
import sys

import clients
import jobs

RANKS = 2
CAPTURED = 32


def equal(what, found, wanted):
    if found != wanted:
        jobs.fail("%s: %r instead of %r" % (what, found, wanted))


def recorded(backend, db, truth):
    runs = db.execute(
        "SELECT count(*) FROM graph_launch l JOIN op_class c ON"
        " c.graph = l.graph JOIN op o ON o.class = c.id WHERE l.result = 0")
    launches = db.execute("SELECT count(*), count(graph) FROM graph_launch"
                          " WHERE result = 0").fetchone()
    captured = db.execute("SELECT count(*) FROM op o JOIN op_class c ON"
                          " c.id = o.class WHERE o.flags & ? AND"
                          " c.graph NOTNULL", (CAPTURED,))
    equal(backend, (captured.fetchone()[0], launches, runs.fetchone()[0]),
          (truth["captured"], (truth["launches"],) * 2, truth["runs"]))
    equal(backend + ": losses", db.execute(
        "SELECT cause, what FROM loss").fetchall(), [])


def told(backend, trace, truth, dbs):
    job = jobs.report(trace)["jobs"][0]
    graphs = job["quality"]["graphs"]
    equal(backend + ": report",
          [graphs[k] for k in ("captured_ops", "launches", "runs",
                               "other_launches", "idle_ops", "blind_ops")],
          [RANKS * truth[k] for k in ("captured", "launches", "runs")] +
          [0, 0, 0])
    eager = [db.execute("SELECT count(*) FROM op WHERE NOT flags & ?",
                        (CAPTURED,)).fetchone()[0] for db in dbs.values()]
    equal(backend + ": runs", job["job"]["runs"],
          sum(eager) + RANKS * truth["runs"])
    groups = json.loads(jobs.commtrace("groups", "--json", trace))["jobs"][0]
    equal(backend + ": calls", sum(g["calls"] for g in groups["groups"]),
          eager[0] + truth["runs"])


def run(backend):
    bare = clients.torchrun("graph.py", [backend], RANKS)
    with jobs.Scratch() as tmp:
        trace = os.path.join(tmp, "trace")
        traced = clients.torchrun("graph.py", [backend], RANKS, env={
            "LD_PRELOAD": jobs.SHIM, "COMMTRACE_DIR": trace})
        equal(backend, traced.stdout, bare.stdout)
        truth = {name: int(n) for name, n in re.findall(r"(\w+) (\d+)",
                                                        bare.stdout)}
        dbs = jobs.traces(trace)
        equal(backend + ": traces", len(dbs), RANKS)
        for db in dbs.values():
            recorded(backend, db, truth)
        told(backend, trace, truth, dbs)


def main():
    clients.need_venv()
    for backend in sys.argv[1:] or ("nccl", "nccl-legacy"):
        run(backend)
    print("captured, replayed, multiplied: exact")


if __name__ == "__main__":
    main()
