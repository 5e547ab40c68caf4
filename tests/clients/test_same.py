"""test_same.py [output|interrupt|overhead]: with the recorder in front a job
prints the same, ends the same, and costs hardly more."""
import glob
import math
import os
import re
import signal
import statistics
import subprocess
import time

import clients
import jobs

# script, arguments, ranks of a node, nodes, exit code of torchrun
JOBS = [
    ("ddp.py", ["--verify"], 2, 1, 0),
    ("fsdp.py", ["--verify"], 2, 1, 0),
    ("tensor_parallel.py", ["--verify"], 2, 1, 0),
    ("pipeline.py", ["--verify"], 2, 1, 0),
    ("parallel3d.py", ["--verify"], 4, 2, 0),
    ("ddp.py", ["--batch", 15], 2, 1, 1),  # does not divide: a failing job
    ("ddp.py", ["--nonsense"], 2, 1, 1),
]
PAIRS = 50  # after one to warm up
RANKS = 2
ALLOWED = 0.02


def traced(folder):
    return {"LD_PRELOAD": jobs.SHIM, "COMMTRACE_DIR": folder}


def anonymous(stderr):
    """Lines without their numbers, in any order: times, processes, ports."""
    return sorted(re.sub(r"[0-9]+", "#", line)
                  for line in stderr.splitlines())


def output(tmp):
    for i, (script, argv, ranks, nodes, code) in enumerate(JOBS):
        bare, recorded = (
            clients.torchrun(script, argv, ranks, nodes, env=env, check=False)
            for env in ({}, traced(os.path.join(tmp, str(i)))))
        for what, one, other in (
                ("exit code", bare.returncode, recorded.returncode),
                ("output", bare.stdout, recorded.stdout),
                ("messages", anonymous(bare.stderr),
                 anonymous(recorded.stderr))):
            # Of a failed job torchrun tells which rank failed first: chance.
            if one != other and (what != "messages" or code == 0):
                jobs.fail("%s %s: %s %s, traced %s" % (script, argv, what, one,
                                                       other))
        if bare.returncode != code:
            jobs.fail("%s %s: exit %d\n%s" % (script, argv, bare.returncode,
                                              bare.stderr))
        if code == 0 and "step 3 loss" not in bare.stdout:
            jobs.fail("%s: no losses in %r" % (script, bare.stdout))
        if "commtrace" in recorded.stderr:
            jobs.fail("%s %s: %s" % (script, argv, recorded.stderr))
        if "--nonsense" not in argv and not os.listdir(
                os.path.join(tmp, str(i))):
            jobs.fail("%s %s left no trace" % (script, argv))
    print("output: losses, messages and exit codes of %d jobs are the same" %
          len(JOBS))


def interrupted(env):
    """Exit code of a job that gets Ctrl-C in the middle of training."""
    e = clients.environment(1, env)
    agent = subprocess.Popen(
        clients.command(os.path.join(clients.SAMPLES, "ddp.py"),
                        ["--steps", 100000], 2, ["--standalone"]),
        env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True)
    try:
        time.sleep(12)
        started = len(clients.descendants(agent.pid)) > 2
        os.killpg(agent.pid, signal.SIGINT)
        agent.communicate(timeout=60)
    finally:
        clients.end_all([agent])
    return started, agent.returncode


def interrupt(tmp):
    bare, recorded = interrupted({}), interrupted(traced(tmp))
    if bare != recorded or not bare[0]:
        jobs.fail("Ctrl-C: %s, traced %s" % (bare, recorded))
    report = jobs.report(tmp)
    if len(report["jobs"]) != 1 or report["jobs"][0]["job"]["ops"] < 100:
        jobs.fail("after Ctrl-C: %s" % report["jobs"])
    print("interrupt: ends with %d as without; %d ops are there" %
          (bare[1], report["jobs"][0]["job"]["ops"]))


def start_rank(rank, env, port):
    """A rank without torchrun, whose own time would be a third of all; on a
    core of its own, so that none pays for another's waiting."""
    cores = sorted(os.sched_getaffinity(0))
    e = clients.environment(1, dict(
        env, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS),
        LOCAL_WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port)))
    return subprocess.Popen(
        [os.path.join(clients.VENV, "bin", "python3"),
         os.path.join(clients.SAMPLES, "ddp.py"), "--steps", "12"],
        env=e, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(
            0, {cores[rank % len(cores)]}))


def cpu_seconds(env):
    port = clients.free_port()
    ranks = [start_rank(rank, env, port) for rank in range(RANKS)]
    total = 0
    for rank in ranks:
        _, status, usage = os.wait4(rank.pid, 0)
        rank.returncode = os.waitstatus_to_exitcode(status)
        if rank.returncode:
            clients.end_all(ranks)
            jobs.fail("ddp.py: exit %d" % rank.returncode)
        total += usage.ru_utime + usage.ru_stime
    return total


def student95(freedom):
    """One-sided 95 % quantile of Student's distribution: where the integral of
    its density from 0 reaches 0.45."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
                     ) / math.sqrt(math.pi * freedom)

    def density(t):
        return scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2)

    step, t, area = 1e-4, 0.0, 0.0
    while area < 0.45:
        area += step * density(t + step / 2)
        t += step
    return t


def overhead(tmp):
    """Pairs in turn, each in the other order than the one before it, so that
    neither a slow drift of the machine nor an order favours a side. Both sides
    of a pair hash alike; where memory lies stays random: were it fixed, what
    chance gives one side by it would not average out."""
    ratios, bare_seconds = [], []
    for i in range(PAIRS + 1):
        same = {"PYTHONHASHSEED": str(i + 1)}
        sides = [same, dict(same, **traced(os.path.join(tmp, str(i))))]
        took = {len(env): cpu_seconds(env)
                for env in (sides if i % 2 else sides[::-1])}
        if len(glob.glob(os.path.join(tmp, str(i), "*.db"))) != RANKS:
            jobs.fail("pair %d was not recorded" % i)
        if i == 0:
            continue  # files come into memory
        bare_seconds.append(took[len(same)])
        ratios.append(math.log(took[len(sides[1])] / took[len(same)]))
    mean, error = statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(
        PAIRS)
    bound = math.exp(mean + student95(PAIRS - 1) * error) - 1
    print("overhead: CPU time of ddp's ranks, %d pairs of %.1f s, which scatter "
          "by %.1f %%: %+.2f %%, upper 95 %% bound %+.2f %% (at most %.0f %%)" %
          (PAIRS, statistics.mean(bare_seconds),
           100 * statistics.stdev(ratios), 100 * math.expm1(mean), 100 * bound,
           100 * ALLOWED))
    if bound > ALLOWED:
        jobs.fail("the recorder costs too much; ratios of the pairs: %s" %
                  " ".join("%.3f" % math.exp(r) for r in ratios))


if __name__ == "__main__":
    clients.main(output, interrupt, overhead)
