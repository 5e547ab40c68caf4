"""A program that finds everything by dlsym and uses two copies of NCCL at once
is recorded completely, and what it asked of each is told apart. Run as
test_two_copies.py PROGRAM."""
import os
import re
import shutil
import subprocess
import sys

import jobs


def run(program, folder, trace=None):
    fabric = os.path.join(jobs.BUILD, "fabric")
    env = dict(os.environ,
               FABRIC=os.path.join(jobs.MACHINES, "one_host.fabric"))
    if trace:
        env.update(LD_PRELOAD=jobs.SHIM, COMMTRACE_DIR=trace)
    done = subprocess.run(
        [program, os.path.join(fabric, "libcudart.so.13"),
         os.path.join(fabric, "libnccl.so.2"),
         os.path.join(folder, "libnccl.so.2")], env=env, capture_output=True,
        text=True, timeout=120)
    if done.returncode != 0 or done.stderr:
        jobs.fail("exit %d: %s" % (done.returncode, done.stderr))
    return done.stdout


def check(db, folder, said):
    paths = [path for path, in db.execute(
        "SELECT path FROM library WHERE version NOTNULL ORDER BY id")]
    want = [os.path.join(jobs.BUILD, "fabric"), folder]
    if [os.path.dirname(path) for path in paths] != want:
        jobs.fail("libraries: %s" % paths)
    for copy, issued, grouped in said:
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
    ops = sum(issued for _, issued, _ in said)
    if mixed or launches != (ops, ops):
        jobs.fail("%d groups of both copies, launches %s" % (mixed, launches))
    if db.execute("SELECT count(*) FROM loss").fetchone()[0]:
        jobs.fail("losses")
    return ops


def main():
    program, = sys.argv[1:]
    with jobs.Scratch() as tmp:
        folder, trace = os.path.join(tmp, "other"), os.path.join(tmp, "trace")
        os.mkdir(folder)
        shutil.copy(os.path.join(jobs.BUILD, "fabric", "libnccl.so.2"), folder)
        bare, traced = run(program, folder), run(program, folder, trace)
        if bare != traced:
            jobs.fail("%r, traced %r" % (bare, traced))
        said = [tuple(int(x) for x in line) for line in
                re.findall(r"issued (\d+) (\d+) (\d+)", bare)]
        db, = jobs.traces(trace).values()
        print("%d ops of two copies of NCCL are told apart" %
              check(db, folder, said))


if __name__ == "__main__":
    main()
