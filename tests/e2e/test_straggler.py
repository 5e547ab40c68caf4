"""A rank that computes one and a half times as long as the others is named,
with what each step loses by it: so much longer it computes."""
import os
import shutil

import jobs

SLOW, FACTOR = 2, 1.5
LAYERS, MICRO_BATCHES, LAYER_MS = 2, 2, 8  # forward; backward takes twice that
TRUTH_MS = (FACTOR - 1) * LAYERS * MICRO_BATCHES * 3 * LAYER_MS
TOLERANCE = 0.25  # a busy machine makes other ranks late as well
JOB = ["train3d", "--tp", 2, "--dp", 2, "--layers", LAYERS, "--micro-batches",
       MICRO_BATCHES, "--compute-us", 1000 * LAYER_MS, "--steps", 8]


def main():
    with jobs.Scratch() as tmp:
        machine = os.path.join(tmp, "slow.fabric")
        shutil.copy(os.path.join(jobs.MACHINES, "fast.fabric"), machine)
        with open(machine, "a") as f:
            f.write("straggler rank=%d compute=%g\n" % (SLOW, FACTOR))
        trace = os.path.join(tmp, "trace")
        jobs.job("fast", 4, JOB, trace, {"FABRIC": machine})
        found = [f for f in jobs.report(trace)["jobs"][0]["findings"]
                 if f["code"] == "STRAGGLER"]
    if len(found) != 1 or not found[0]["text"].startswith("rank %d " % SLOW):
        jobs.fail("found %s" % found)
    low, high = found[0]["loss_low_ms"], found[0]["loss_high_ms"]
    print("%s\nin truth %.0f ms a step" % (found[0]["text"], TRUTH_MS))
    if not (1 - TOLERANCE) * low < TRUTH_MS < (1 + TOLERANCE) * high:
        jobs.fail("the price")


if __name__ == "__main__":
    main()
