"""suite.py RESULT_FILE: every check in a process of its own, with a limit of
its own, within a limit for all. What a check leaves running is ended."""
import ctypes
import os
import signal
import subprocess
import sys
import time

import checks
import harness

SECONDS = float(os.environ.get("GPU_TEST_SECONDS", "560"))
PR_SET_CHILD_SUBREAPER = 36
WORDS = {0: "PASS", checks.SKIPPED: "SKIP"}


def adopt_orphans():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """pids of our children, adopted ones included, and of their children"""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as f:
                parents[int(name)] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            pass  # it has ended meanwhile
    found, more = set(), {os.getpid()}
    while more:
        more = {p for p, parent in parents.items() if parent in more} - found
        found |= more
    return found


def send(number):
    for pid in children():
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def end_all():
    """Launchers get a moment to end what they started."""
    send(signal.SIGTERM)
    until = time.monotonic() + 3
    while children() and time.monotonic() < until:
        reap()
        time.sleep(0.05)
    send(signal.SIGKILL)
    reap()


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def run(name, limit):
    """(word, text)"""
    check = subprocess.Popen(
        [sys.executable, "-B", os.path.join(harness.HERE, "checks.py"), name],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = check.communicate(timeout=limit)
        word = WORDS.get(check.returncode, "FAIL")
        text = harness.last_line(said)
    except subprocess.TimeoutExpired:
        word, text = "FAIL", "not done after %.0f s" % limit
    end_all()
    return word, text


def tell(file, line):
    print(line, flush=True)
    file.write(line + "\n")
    file.flush()


def main():
    adopt_orphans()
    end_at = time.monotonic() + SECONDS
    names = os.environ.get("GPU_TEST_CHECKS", "").split() or list(checks.CHECKS)
    count = {"PASS": 0, "FAIL": 0, "SKIP": 0}
    with open(sys.argv[1], "w") as file:
        for name in names:
            began = time.monotonic()
            left = end_at - began
            word, text = run(name, min(checks.CHECKS[name][1], left)) \
                if left > 1 else ("FAIL", "no time left")
            count[word] += 1
            tell(file, "%s %s: %s [%.0f s]" % (word, name, text,
                                               time.monotonic() - began))
        tell(file, "%(PASS)d passed, %(FAIL)d failed, %(SKIP)d skipped" % count)
        summaries = os.path.join(harness.WORK, "summaries")
        if os.path.exists(summaries):
            with open(summaries) as f:
                file.write(f.read())
    sys.exit(1 if count["FAIL"] or not count["PASS"] else 0)


if __name__ == "__main__":
    main()
