"""test_steps_any.py [SEED COUNT]: of any jobs, steps are found as they are or not
at all. What comes after every single step cannot be told from it, so nothing
does. Prints the options of each job whose steps are others; those of few jobs
may not be found."""
import json
import os
import shutil
import sqlite3
import subprocess
import sys

import any_job
import jobs

TRACEGEN = os.path.join(jobs.BUILD, "tests", "tracegen", "tracegen")
FOUND_SHARE = .9


def true_ends(truth, rank):
    """When the rank's steps end, after its t0, by what they are."""
    with open(os.path.join(truth, "truth.json")) as f:
        segments = json.load(f)["segments"][rank]
    db = sqlite3.connect(os.path.join(truth, "truth.sqlite"))
    t0, = db.execute("SELECT t0_ns FROM process WHERE rank = ?",
                     (rank,)).fetchone()
    ends = {}
    for kind, _, last, _ in segments:
        end, = db.execute("SELECT start_ns + gpu_ns FROM op WHERE process = ?"
                          " AND n = ?", (rank, last)).fetchone()
        ends[end - t0] = kind
    return ends


def wrong(folder):
    """Steps found, and why they are not the job's: None if they are."""
    db = sqlite3.connect(os.path.join(folder, "job.db"))
    found = 0
    for process, rank in db.execute("SELECT process, rank FROM process"):
        truth = true_ends(folder, rank)
        steady = {end for end, in db.execute(
            "SELECT end_ns FROM step WHERE process = ? AND kind = 'steady'",
            (process,))}
        found += len(steady)
        steps = {end for end, kind in truth.items() if kind == "step"}
        others = {end for end in steady
                  if truth.get(end) not in ("step", "warm_up")}
        if steady and (others or steps - steady):
            return found, "rank %d: %d others, %d missing of %d" % (
                rank, len(others), len(steps - steady), len(steps))
    return found, None


def main():
    seed, count = [int(word) for word in sys.argv[1:]] or (1, 20)
    jobs.COMMTRACE = os.environ.get("COMMTRACE", jobs.COMMTRACE)
    bad = none = 0
    with jobs.Scratch() as tmp:
        for i in range(seed, seed + count):
            folder = os.path.join(tmp, "job")
            options = [str(word) for word in any_job.options(i, 2)]
            options += ["--steps", "8"]
            subprocess.run([TRACEGEN, *options, "--truth-db", "--out", folder],
                           check=True)
            subprocess.run([jobs.COMMTRACE, "merge", "--db",
                            os.path.join(folder, "job.db"), folder],
                           check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            found, why = wrong(folder)
            shutil.rmtree(folder)
            bad += why is not None
            none += not found
            if why or not found:
                print("seed %d: %s: %s"
                      % (i, why or "no steps", " ".join(options)))
    print("%d jobs from seed %d: steps of %d wrong, of %d not found"
          % (count, seed, bad, none))
    if bad or none > (1 - FOUND_SHARE) * count:
        jobs.fail("steps")


if __name__ == "__main__":
    main()
