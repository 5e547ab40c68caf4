"""A program that finds everything by dlsym and uses two copies of NCCL at once
is recorded completely, and what it asked of each is told apart. Of five copies
four are recorded, and the trace says so. Run as test_two_copies.py PROGRAM."""
import os
import re
import shutil
import subprocess
import sys

import jobs

RECORDED = 4  # copies that are told apart
LOOKED_UP = 6  # functions of each copy by the program


def run(program, libraries, trace=None):
    """(what it issued of each copy, its words on stderr)"""
    env = dict(os.environ,
               FABRIC=os.path.join(jobs.MACHINES, "one_host.fabric"))
    if trace:
        env.update(LD_PRELOAD=jobs.SHIM, COMMTRACE_DIR=trace)
    cudart = os.path.join(jobs.BUILD, "fabric", "libcudart.so.13")
    done = subprocess.run([program, cudart, *libraries], env=env,
                          capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        jobs.fail("exit %d: %s" % (done.returncode, done.stderr))
    said = re.findall(r"issued (\d+) (\d+) (\d+)", done.stdout)
    if len(said) != len(libraries):
        jobs.fail("it said %r" % done.stdout)
    return [tuple(int(x) for x in line) for line in said], done.stderr


def check(db, libraries, said):
    paths = [path for path, in db.execute(
        "SELECT path FROM library WHERE version NOTNULL ORDER BY id")]
    if [os.path.dirname(p) for p in paths] != [
            os.path.dirname(l) for l in libraries[:RECORDED]]:
        jobs.fail("libraries: %s" % paths)
    for copy, issued, grouped in said[:RECORDED]:
        got = db.execute(
            "SELECT count(*), sum(grp NOTNULL), count(DISTINCT grp),"
            " count(DISTINCT c.comm), min(c.count), max(c.count),"
            " sum(o.flags >> 16 <> 0) FROM op o"
            " JOIN op_class c ON c.id = o.class JOIN comm m ON m.id = c.comm"
            " WHERE m.library = ?", (copy,)).fetchone()
        if got != (issued, grouped, issued // 2, 2, 1000, 1000, 0):
            jobs.fail("copy %d: %s" % (copy, got))
    mixed = db.execute(
        "SELECT count(*) FROM (SELECT grp FROM op o"
        " JOIN op_class c ON c.id = o.class JOIN comm m ON m.id = c.comm"
        " GROUP BY grp HAVING count(DISTINCT m.library) <> 1"
        " OR count(*) <> 2)").fetchone()[0]
    launches = db.execute("SELECT count(*), sum(ops) FROM launch").fetchone()
    ops = sum(issued for _, issued, _ in said[:RECORDED])
    if mixed or launches != (ops, ops):
        jobs.fail("%d groups of both copies, launches %s" % (mixed, launches))
    lost = db.execute("SELECT cause, what, n FROM loss").fetchall()
    more = len(libraries) - RECORDED
    if lost != ([("nccl_copies", "function", LOOKED_UP * more)]
                if more > 0 else []):
        jobs.fail("losses: %s" % lost)
    return ops


def compare(program, libraries):
    with jobs.Scratch() as tmp:
        trace = os.path.join(tmp, "trace")
        bare, _ = run(program, libraries)
        traced, words = run(program, libraries, trace)
        if bare != traced:
            jobs.fail("%r, traced %r" % (bare, traced))
        if words.count("\n") != (len(libraries) > RECORDED):
            jobs.fail("it is told: %r" % words)
        db, = jobs.traces(trace).values()
        print("%d ops of %d copies of NCCL are told apart" %
              (check(db, libraries, bare), len(libraries)))


def main():
    program, = sys.argv[1:]
    first = os.path.join(jobs.BUILD, "fabric", "libnccl.so.2")
    with jobs.Scratch() as tmp:
        libraries = [first]
        for i in range(4):
            os.mkdir(os.path.join(tmp, str(i)))
            libraries.append(shutil.copy(first, os.path.join(tmp, str(i))))
        compare(program, libraries[:2])
        compare(program, libraries)


if __name__ == "__main__":
    main()
