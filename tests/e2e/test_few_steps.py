"""What a straggler costs is the same of any few steps as of all: two ranks are
slow, and only by what one is slower than the other a step would gain.

usage: test_few_steps.py COMMTRACE TRACEGEN"""
import json
import subprocess
import sys
import tempfile

COMMTRACE, TRACEGEN = sys.argv[1:3]
JOB = "--layers 4 --micro-batches 4 --tp 2 --dp 4 --hosts 2 --steps 30" \
    " --jitter 0.05 --slow 5,1.25 --slow 1,"
BY_CHANCE = 1.1  # late in one job and not in the other
PARTS = ["..", "0..2", "5..7", "10..14", "17..19", "20..29"]


def reports(factor, parts):
    with tempfile.TemporaryDirectory() as trace:
        subprocess.run([TRACEGEN, *(JOB + factor).split(), "--out", trace],
                       check=True, stdout=subprocess.DEVNULL)
        return [json.loads(subprocess.run(
            [COMMTRACE, "report", "--json", trace] +
            (["--steps", steps] if steps != ".." else []), check=True,
            stdout=subprocess.PIPE).stdout)["jobs"][0] for steps in parts]


def main():
    all_slow = reports("1.3", PARTS)
    less, = reports("1.25", [".."])
    lost = all_slow[0]["job"]["step_ms"] - less["job"]["step_ms"]
    for steps, job in zip(PARTS, all_slow):
        found = [f for f in job["findings"] if f["code"] == "STRAGGLER"]
        if len(found) != 1 or not found[0]["text"].startswith("rank 1 "):
            sys.exit("%s: %s" % (steps, found))
        few = "so few steps" in found[0]["text"]
        if few != (job["job"]["steps"] < 10):
            sys.exit("%s: %s" % (steps, found[0]["text"]))
        if not found[0]["loss_low_ms"] / BY_CHANCE <= lost <= \
                found[0]["loss_high_ms"] * BY_CHANCE:
            sys.exit("%s: %.3f ms in truth: %s" % (steps, lost, found[0]))


if __name__ == "__main__":
    main()
