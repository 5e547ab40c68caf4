"""A rank that computes one and a half times as long as the others is named, in
the communicators of its tensor- and data-parallel peers, with a price that the
same job without it confirms."""
import os
import re
import shutil

import jobs

SLOW, FACTOR = 2, 1.5
# Computing is a multiple of what a busy machine adds to it.
JOB = ["train3d", "--tp", 2, "--dp", 2, "--layers", 2, "--micro-batches", 2,
       "--compute-us", 8000, "--steps", 8, "--summary"]


def step_ms(done):
    return float(re.search(r"step_ms_median=([0-9.]+)", done.stdout).group(1))


def main():
    with jobs.Scratch() as tmp:
        machine = os.path.join(tmp, "slow.fabric")
        shutil.copy(os.path.join(jobs.MACHINES, "fast.fabric"), machine)
        usual = min(step_ms(jobs.job("fast", 4, JOB)) for _ in range(3))
        with open(machine, "a") as f:
            f.write("straggler rank=%d compute=%g\n" % (SLOW, FACTOR))
        trace = os.path.join(tmp, "trace")
        slow = step_ms(jobs.job("fast", 4, JOB, trace, {"FABRIC": machine}))
        found = [f for f in jobs.report(trace)["jobs"][0]["findings"]
                 if f["code"] == "STRAGGLER"]
    if len(found) != 1 or not found[0]["text"].startswith("rank %d " % SLOW):
        jobs.fail("found %s" % found)
    low, high = found[0]["loss_low_ms"], found[0]["loss_high_ms"]
    print("%s\nin truth %.1f ms a step" % (found[0]["text"], slow - usual))
    if not low * 0.7 < slow - usual < high * 1.3:
        jobs.fail("the price")


if __name__ == "__main__":
    main()
