"""Links that are slow are found and named, with what a step loses by them,
which is known: the same job without them takes so much less. Jobs without any,
however they are disturbed, have none.

usage: test_slow_link.py COMMTRACE TRACEGEN [SEED DRAWS]"""
import json
import random
import subprocess
import sys
import tempfile

COMMTRACE, TRACEGEN = sys.argv[1:3]
SEED, DRAWS = (int(a) for a in (sys.argv[3:5] or ("1", "20")))
SIZE = "--layers 4 --steps 12 --micro-batches 4 "
ROUNDING = 1.05  # of what others wait, which is measured

# Job, what is slow in it, and who is named.
PLANTED = [
    ("--tp 4 --dp 4 --hosts 4", "--slow-link 1-2,3", "ranks 0-3 (host0)"),
    ("--tp 8 --dp 4 --hosts 4", "--slow-link 9-10,1.6", "ranks 8-15 (host1)"),
    ("--tp 4 --dp 4 --hosts 4 --sequence-parallel", "--slow-link 5-6,3",
     "ranks 4-7 (host1)"),
    ("--tp 2 --pp 2 --dp 4 --hosts 4", "--slow-link 2-3,3",
     "rank 2 (host0) and rank 3 (host0)"),
    ("--pp 4 --dp 4 --hosts 4", "--slow-link 1-5,4",
     "rank 1 (host0) and rank 5 (host1)"),
    ("--pp 4 --dp 4 --hosts 4 --order pp,dp", "--slow-link 5-6,5",
     "rank 5 (host1) and rank 6 (host1)"),
    ("--tp 2 --pp 4 --dp 4 --hosts 8", "--slow-nic 3,3", "is host host3"),
    ("--tp 4 --pp 4 --hosts 4", "--slow-nic 1,3", "is host host1"),
    ("--tp 4 --pp 2 --dp 2 --hosts 4 --coalesce", "--slow-nic 2,3",
     "is host host2"),
    ("--tp 2 --pp 2 --dp 4 --hosts 8 --overlap", "--slow-nic 2,2",
     "is host host2"),
]

# What all groups share no other group shows, but a trace of better days does.
SHARED = ("--tp 4 --dp 4 --hosts 4", "--slow-nic 1,3")

LAYOUTS = ["--tp 8", "--dp 8 --hosts 2", "--tp 4 --dp 4 --hosts 4",
           "--tp 2 --pp 4 --dp 2 --hosts 4", "--pp 4 --dp 4 --hosts 4",
           "--tp 2 --pp 2 --dp 4 --hosts 8 --order tp,pp,dp",
           "--tp 8 --pp 2 --hosts 4", "--tp 2 --cp 2 --dp 4 --hosts 4",
           "--tp 2 --dp 8 --hosts 4 --zero 3 --overlap",
           "--dp 8 --hosts 4 --zero 3 --shard 2",
           "--tp 2 --dp 4 --hosts 2 --sequence-parallel --vocabulary",
           "--ep 4 --dp 8 --hosts 2 --moe-every 2",
           "--tp 2 --pp 4 --dp 2 --hosts 2 --coalesce --tie-embeddings",
           "--tp 2 --pp 4 --dp 2 --hosts 4 --schedule interleaved --chunks 2"
           " --layers 8",
           "--cp 4 --dp 2 --hosts 2 --context ulysses"]
DISTURBANCES = ["--slow 1,1.4", "--slow 3,2", "--slow-host 1,1.3",
                "--contention 0.3,2", "--contention 0.6,1",
                "--clock-us 1000000 --drift-ppm 5", "--end-us 3",
                "--end-order-us 4", "--gpu-us 2", "--drop 0.01",
                "--missing 1", "--eval-every 4", "--warm-up 2"]


def generate(options, seed, trace):
    subprocess.run([TRACEGEN, *SIZE.split(), *options.split(), "--seed",
                    str(seed), "--out", trace], check=True,
                   stdout=subprocess.DEVNULL)


def read(*words):
    return json.loads(subprocess.run(
        [COMMTRACE, "report", "--json", *words], check=True,
        stdout=subprocess.PIPE).stdout)["jobs"][0]


def report(options, seed=1):
    with tempfile.TemporaryDirectory() as trace:
        generate(options, seed, trace)
        return read(trace)


def links(job):
    return [f for f in job["findings"] if f["code"] == "SLOW_LINK"]


def check_price(what, found, clean, job):
    lost = job["job"]["step_ms"] - clean["job"]["step_ms"]
    if not found["loss_low_ms"] / ROUNDING <= lost <= \
            found["loss_high_ms"] * ROUNDING:
        sys.exit("%s: %.3f ms in truth: %s" % (what, lost, found))


def check_planted(options, slow, who):
    clean, job = report(options), report(options + " " + slow)
    found = job["findings"]
    if len(links(job)) != 1 or len(found) != 1:
        sys.exit("%s %s: %s" % (options, slow, found))
    if who not in found[0]["text"]:
        sys.exit("%s %s: not %s: %s" % (options, slow, who, found[0]["text"]))
    check_price(options + " " + slow, found[0], clean, job)


def check_reference(options, slow):
    with tempfile.TemporaryDirectory() as folder:
        traces = [folder + "/" + name for name in ("clean", "slow", "again")]
        generate(options, 1, traces[0])
        generate(options + " " + slow, 1, traces[1])
        generate(options, 2, traces[2])
        clean, alone = read(traces[0]), read(traces[1])
        job = read("--reference", traces[0], traces[1])
        again = read("--reference", traces[0], traces[2])
    if links(alone) or links(again) or len(links(job)) != 1:
        sys.exit("%s %s, with a reference: %s, %s, %s" %
                 (options, slow, links(alone), links(job), links(again)))
    found = links(job)[0]
    if "in the reference" not in found["text"] or found["groups"] != 4:
        sys.exit("with a reference: %s" % found)
    check_price("with a reference", found, clean, job)


def check_clean(draw):
    options = "%s --jitter %.3f" % (draw.choice(LAYOUTS),
                                    draw.choice([0, .02, .05, .1, .2]))
    for disturbance in draw.sample(DISTURBANCES, draw.randrange(3)):
        if "--hosts" in options or "host" not in disturbance:
            options += " " + disturbance
    seed = draw.randrange(1, 1 << 30)
    found = links(report(options, seed))
    if found:
        print("%s --seed %d: %s" % (options, seed, found[0]["text"]))
    return len(found) > 0


def main():
    draw = random.Random(SEED)
    for planted in PLANTED:
        check_planted(*planted)
    check_reference(*SHARED)
    wrong = sum(check_clean(draw) for _ in range(DRAWS))
    print("seed %d: %d of %d jobs without a slow link seem to have one" %
          (SEED, wrong, DRAWS))
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
