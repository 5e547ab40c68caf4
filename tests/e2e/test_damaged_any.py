"""test_damaged_any.py [SEED COUNT]: any jobs whose ranks died, whose records were
lost, whose clocks were wrong. Reports and job.db of all of them are written, ops
meet as they did, and nothing is called a step that was none. Prints the options
of each job where that is not so."""
import bisect
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys

import any_job
import jobs

TRACEGEN = os.path.join(jobs.BUILD, "tests", "tracegen", "tracegen")
CLOCKS = ("--clock-us 50 --drift-ppm 1 --end-us 1 --gpu-us 1"
          " --tick-ns 32").split()
NEAR_NS = 8000  # of a step's end, by such clocks


def ranks_of(options):
    values = dict(zip(options, options[1:]))
    product = 1
    for name in "--tp", "--pp", "--cp", "--dp":
        product *= int(values[name])
    return product


def damage(seed, nranks):
    """Options of what is wrong with a job and its files."""
    draw = random.Random("damage %d" % seed)

    def rank():
        return draw.randrange(nranks)

    def one_of(share, *words):
        return list(words) if draw.random() < share else []

    found = one_of(.4, "--drop", "%g,%d" % (draw.choice((.002, .01, .03)),
                                            draw.choice((1, 5))))
    found += one_of(.3, "--missing", rank()) if nranks > 1 else []
    found += one_of(.2, "--drop-launches", .02)
    found += one_of(.3, "--cut", "%d@%d" % (rank(), draw.choice((20, 60, 150))))
    found += one_of(.3, "--mismatch", "%d,%d,%s" % (
        rank(), draw.randrange(100), draw.choice(("count", "type", "kind"))))
    found += one_of(.15, "--kill", "%d@%d" % (rank(), draw.choice((20, 60, 150))))
    found += one_of(.1, "--skip", "%d,%d" % (rank(), draw.randrange(300)))
    found += CLOCKS if draw.random() < .5 else []
    found += one_of(.3, "--contention", "0.1,0.5")
    found += one_of(.3, "--slow", "%d,1.2" % rank())
    return [str(word) for word in found]


class Truth:
    def __init__(self, folder):
        self.db = sqlite3.connect(os.path.join(folder, "truth.sqlite"))
        with open(os.path.join(folder, "truth.json")) as f:
            self.segments = json.load(f)["segments"]
        self.host = dict(self.db.execute("SELECT rank, host FROM process"))

    def time(self, rank, monotonic_ns):
        clock = self.db.execute("SELECT monotonic_ns, true_ns FROM clock"
                                " WHERE host = ? ORDER BY 1",
                                (self.host[rank],)).fetchall()
        i = bisect.bisect_left(clock, (monotonic_ns,))
        (a, x), (b, y) = clock[max(1, min(i, len(clock) - 1)) - 1:][:2]
        return x + (monotonic_ns - a) * (y - x) / (b - a)

    def step_ends(self, rank):
        """Of what is a step, by the ops that its file has."""
        for kind, first, last, _ in self.segments[rank]:
            end, = self.db.execute(
                "SELECT max(start_ns + gpu_ns) FROM op WHERE process = ?"
                " AND id NOTNULL AND n BETWEEN ? AND ?",
                (rank, first, last)).fetchone()
            if end and kind in ("step", "warm_up"):
                yield end

    def keys(self, rank):
        """What the ops of its file met in; None: it was written as another."""
        return [None if unlike else (uid, src, dst, ordinal)
                for uid, src, dst, ordinal, unlike in self.db.execute(
                    "SELECT uid, src, dst, ordinal, unlike FROM op"
                    " WHERE process = ? AND id NOTNULL ORDER BY n", (rank,))]


def wrong_steps(db, truth):
    for process, rank, t0 in db.execute("SELECT process, rank, t0_ns FROM process"):
        ends = sorted(truth.step_ends(rank))
        for end, in db.execute("SELECT end_ns FROM step WHERE process = ?"
                               " AND kind = 'steady'", (process,)):
            at = truth.time(rank, t0 + end)
            if not any(abs(at - e) < NEAR_NS for e in ends):
                return "rank %d: a step ends at %d ns, where none does" % (rank, at)
    return None


def wrong_matches(db, truth):
    """Ops of one instance met, and those that met are of one."""
    met = {}
    for process, rank in db.execute("SELECT process, rank FROM process"):
        keys = truth.keys(rank)
        for op, instance in db.execute("SELECT op, instance FROM op_match"
                                       " WHERE process = ?", (process,)):
            key = keys[op]  # job.db numbers them from 0
            if key and met.setdefault(instance, key) != key:
                return "rank %d: op %d met in another" % (rank, op)
    return None if len(set(met.values())) == len(met) else "one is two instances"


def wrong(folder):
    job_db = os.path.join(folder, "job.db")
    for words in (["merge", "--db", job_db], ["report"]):
        done = subprocess.run([jobs.COMMTRACE, *words, folder],
                              capture_output=True, text=True)
        if done.returncode:
            return "%s: exit %d: %s" % (words[0], done.returncode, done.stderr)
    db, truth = sqlite3.connect(job_db), Truth(folder)
    return wrong_matches(db, truth) or wrong_steps(db, truth)


def main():
    seed, count = [int(word) for word in sys.argv[1:]] or (1, 20)
    jobs.COMMTRACE = os.environ.get("COMMTRACE", jobs.COMMTRACE)
    bad = 0
    with jobs.Scratch() as tmp:
        for i in range(seed, seed + count):
            folder = os.path.join(tmp, "job")
            options = [str(word) for word in any_job.options(i, 2)]
            options += ["--steps", "8", *damage(i, ranks_of(options))]
            subprocess.run([TRACEGEN, *options, "--truth-db", "--out", folder],
                           check=True)
            why = wrong(folder)
            shutil.rmtree(folder)
            bad += why is not None
            if why:
                print("seed %d: %s: %s" % (i, why, " ".join(options)), flush=True)
    print("%d jobs from seed %d: %d wrong" % (count, seed, bad))
    if bad:
        jobs.fail("damaged jobs")


if __name__ == "__main__":
    main()
