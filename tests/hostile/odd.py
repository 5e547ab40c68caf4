"""odd.py: unusual jobs on the fabric. They answer and end as without the recorder,
every call that reached a communicator is in the trace, and each one without a
GPU time is counted as such."""
import os
import subprocess
import tempfile

import traces
import jobs

PROGRAM = os.path.join(jobs.BUILD, "tests", "hostile_odd")
# job: (ops, communicators, ops that could have GPU times)
JOBS = {"nonsense": (None, 1, None), "wide_group": (200, 2, 200),
        "reset": (150, 3, 150), "streams": (303, 1, 303)}


def run(job, env):
    done = subprocess.run([PROGRAM, job], env=env, text=True,
                          capture_output=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def check(job, folder):
    env = dict(os.environ, COMMTRACE_DIR=folder, COMMTRACE_TIMING="all",
               FABRIC=os.path.join(jobs.MACHINES, "one_host.fabric"))
    bare = run(job, env)
    traced = run(job, dict(env, LD_PRELOAD=jobs.SHIM))
    if bare[0] != 0 or bare != traced:
        traces.fail("%s: %s without, %s with" % (job, bare, traced))
    path, = traces.databases(folder)
    db = traces.open_db(path)
    ops, comms, timed = JOBS[job]
    found = traces.one(db, "SELECT count(*) FROM op")
    if ops is None: # those that name a communicator
        ops = sum(1 for line in bare[1].splitlines() if ", comm, " in line
                  and line.startswith(("ncclAllReduce", "ncclSend",
                                       "ncclRecv", "ncclBroadcast")))
    if found != ops:
        traces.fail("%s: %d ops, not %d" % (job, found, ops))
    if traces.one(db, "SELECT count(*) FROM comm") != comms:
        traces.fail("%s: not %d communicators" % (job, comms))
    if timed is not None:
        has = traces.one(db, "SELECT count(gpu_ns) FROM v_op")
        lacks = traces.one(db, "SELECT coalesce(sum(n), 0) FROM loss WHERE"
                               " what = 'timing'")
        if has + lacks != timed:
            traces.fail("%s: %d timed, %d counted as not" % (job, has, lacks))
    return found


def main():
    for job in JOBS:
        with tempfile.TemporaryDirectory() as folder:
            print("ok  %s: %d ops" % (job, check(job, folder)), flush=True)


if __name__ == "__main__":
    main()
