"""test_same.py [output|interrupt|overhead]: with the recorder in front a job
prints the same, ends the same, and costs hardly more."""
import math
import os
import re
import signal
import statistics
import subprocess
import sys
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
PAIRS = 20  # of 10, 20, 30
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


def cpu_seconds(env):
    """Of torchrun and all its processes."""
    agent = subprocess.Popen(
        clients.command(os.path.join(clients.SAMPLES, "ddp.py"),
                        ["--steps", 12], 2, ["--standalone"]),
        env=clients.environment(1, env), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(agent.pid, 0)
    agent.returncode = os.waitstatus_to_exitcode(status)
    if agent.returncode:
        jobs.fail("ddp.py: exit %d" % agent.returncode)
    return usage.ru_utime + usage.ru_stime


T95 = {9: 1.833, 19: 1.729, 29: 1.699}  # Student's, one-sided


def overhead(tmp):
    """Pairs in turn, each in the other order than the one before it, so that
    neither a slow drift of the machine nor an order favours a side."""
    ratios, bare_seconds = [], []
    for i in range(PAIRS):
        sides = [{}, traced(os.path.join(tmp, str(i)))]
        took = {len(env): cpu_seconds(env)
                for env in (sides if i % 2 else sides[::-1])}
        bare_seconds.append(took[0])
        ratios.append(math.log(took[2] / took[0]))
    mean, error = statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(
        PAIRS)
    bound = math.exp(mean + T95[PAIRS - 1] * error) - 1
    print("overhead: CPU time of ddp, %d pairs of %.1f s: %+.2f %%, upper 95 %% "
          "bound %+.2f %% (at most %.0f %%)" %
          (PAIRS, statistics.mean(bare_seconds), 100 * math.expm1(mean),
           100 * bound, 100 * ALLOWED))
    if bound > ALLOWED:
        jobs.fail("the recorder costs too much; ratios of the pairs: %s" %
                  " ".join("%.3f" % math.exp(r) for r in ratios))


def main():
    clients.need_venv()
    tests = {"output": output, "interrupt": interrupt, "overhead": overhead}
    for name in sys.argv[1:] or tests:
        with jobs.Scratch() as tmp:
            tests[name](tmp)


if __name__ == "__main__":
    main()
