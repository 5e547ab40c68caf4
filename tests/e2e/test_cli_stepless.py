"""test_cli_stepless.py COMMTRACE TRACEGEN: a rank whose steps were not found
is left out of what the others do in a step, and that is said."""
import json
import subprocess
import sys
import tempfile

COMMTRACE, TRACEGEN = sys.argv[1:3]
JOB = "--tp 4 --pp 2 --dp 2 --order dp,tp,pp --hosts 8 --micro-batches 4" \
    " --steps 10"


def report(options):
    with tempfile.TemporaryDirectory() as trace:
        subprocess.run([TRACEGEN, *(JOB + options).split(), "--out", trace],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads(subprocess.run(
            [COMMTRACE, "report", "--json", trace], check=True,
            stdout=subprocess.PIPE).stdout)["jobs"][0]


def tp_of(job):
    role, = [r for r in job["roles"] if r["role"] == "TP"]
    return role


whole, cut = report(""), report(" --cut 5@200")
a, b = tp_of(whole), tp_of(cut)
assert whole["verdict"]["complete"], whole["verdict"]
assert "1 rank without steps, left out of means" in cut["verdict"]["data"], \
    cut["verdict"]
assert a["calls"] == b["calls"] == 64, (a, b)
assert a["bytes"] == b["bytes"], (a, b)
assert abs(b["transfer_ms"] / a["transfer_ms"] - 1) < .02, (a, b)
print("TP: %g calls, %.2f ms; without one rank's steps %.2f ms"
      % (a["calls"], a["transfer_ms"], b["transfer_ms"]))
