"""test_match.py COMMTRACE TRACEGEN [SEED...]: generated jobs on hosts with wrong
clocks, beside their truth: which ops met, what each transfer and wait was, how
far the common time is off. With seeds: as many jobs, drawn by them."""
import json
import os
import random
import subprocess
import sys
import tempfile

import truth

COMMTRACE, TRACEGEN = sys.argv[1:3]
CLOCKS = "--hosts 4 --clock-us 50 --drift-ppm 1 --end-us 0.3 "
CASES = (
    # Everything whole; ranks some transfers apart.
    CLOCKS + "--tp 4 --pp 2 --dp 2 --jitter .2 --steps 6 --seed 11",
    # One record of a hundred is lost.
    CLOCKS + "--tp 2 --pp 4 --dp 2 --drop .01 --steps 8 --seed 12",
    # Long runs of them, a rank without a trace, ranks that end early, so that
    # others are ahead of them.
    CLOCKS + "--tp 2 --dp 8 --drop .01,40 --missing 5 --cut 2-3@40 --steps 6"
    " --seed 13",
    # Ranks that called something else.
    CLOCKS + "--tp 4 --dp 4 --steps 6 --mismatch 5,40,count"
    " --mismatch 5,90,kind --mismatch 14,200,type --seed 14",
    CLOCKS + "--dp 8 --zero 3 --layers 12 --contention .1,1 --steps 6 --seed 15",
    CLOCKS + "--dp 8 --ep 4 --moe-every 2 --steps 6 --seed 16",
    # All-gathers of 20 us, little above what events tell apart.
    CLOCKS + "--tp 2 --pp 4 --dp 2 --order pp,tp,dp --jitter .3 --steps 4"
    " --sequence-parallel --schedule interleaved --chunks 2 --seed 17",
    # The same, each of another length, to which ranks come late by more.
    CLOCKS + "--tp 2 --pp 2 --dp 4 --order tp,dp,pp --jitter .1 --steps 9"
    " --lone-groups --sequence-parallel --schedule zero-bubble --seed 130",
    # A few messages between hosts, long waits, clocks that run far apart.
    "--hosts 8 --clock-us 50 --drift-ppm 200 --pp 4 --tp 4 --order pp,tp"
    " --micro-batches 2 --layers 4 --hidden 4096 --steps 4 --schedule gpipe"
    " --norm model --contention .1,1 --compute-us 8000 --seed 28",
    # Messages between clocks that a few collectives tie.
    "--hosts 4 --clock-us 50 --drift-ppm 1 --pp 4 --tp 4 --dp 2"
    " --micro-batches 6 --layers 4 --pipeline-over world --hidden 4096"
    " --steps 2 --drop .2 --jitter 0 --slow 31,1.3 --norm model --seed 146",
    # Messages that now wait for their receivers and now are waited for.
    "--hosts 4 --clock-us 50 --drift-ppm 1 --tp 4 --pp 4 --order tp,dp,pp"
    " --jitter .02 --steps 6 --overlap --schedule zero-bubble --seed 170",
    # Late receivers, whose messages tell less than a few collectives do.
    "--hosts 4 --clock-us 50 --drift-ppm 1 --tp 4 --pp 4 --order dp,tp,pp"
    " --jitter .3 --steps 6 --missing 12 --zero 3 --schedule gpipe --cut 1@60"
    " --seed 145",
    # Two stages of four hosts each that only messages tie well.
    "--hosts 8 --clock-us 50 --drift-ppm 1 --pp 4 --dp 4 --order tp,pp,dp"
    " --jitter .1 --steps 9 --slow 9,1.3 --zero 3 --schedule zero-bubble"
    " --seed 219",
    # The same, so few that they seem to drift.
    "--hosts 8 --clock-us 50 --drift-ppm 1 --pp 4 --dp 4 --order pp,tp,dp"
    " --end-us .2 --jitter .1 --steps 4 --drop .01,20 --lone-groups --scalars 3"
    " --schedule gpipe --eval-every 4 --seed 6074",
    # More receivers late one way than the other.
    "--hosts 8 --clock-us 50 --drift-ppm 1 --tp 2 --pp 4 --dp 2"
    " --order tp,dp,pp --end-us .3 --jitter .02 --steps 4 --sequence-parallel"
    " --schedule interleaved --chunks 2 --checkpoint-every 3 --seed 5032",
)


def drawn(seed):
    """A job by chance: layout, noise, losses."""
    draw = random.Random(seed)
    tp, pp, dp = draw.choice(((1, 1, 16), (2, 4, 2), (4, 2, 2), (8, 1, 2),
                              (2, 2, 4), (1, 4, 4), (4, 4, 1)))
    order = ["tp", "pp", "dp"]
    draw.shuffle(order)
    words = ["--tp %d --pp %d --dp %d --order %s" % (tp, pp, dp,
                                                     ",".join(order)),
             "--hosts %d" % draw.choice((2, 4, 8)), "--clock-us 50",
             "--drift-ppm 1", "--end-us %g" % draw.choice((0, .2, .3)),
             "--jitter %g" % draw.choice((.02, .1, .3)),
             "--steps %d" % draw.randint(4, 10), "--seed %d" % seed]
    words += draw.choice(([], ["--drop .01"], ["--drop .01,20"],
                          ["--missing %d" % draw.randint(1, 15)]))
    words += draw.choice(([], ["--lone-groups"], ["--contention .05,1"],
                          ["--slow %d,1.3" % draw.randint(0, 15)]))
    words += draw.choice(([], ["--zero 1"], ["--zero 3"], ["--overlap"],
                          ["--sequence-parallel"], ["--scalars 3"]))
    if pp > 1:
        words += draw.choice(([], ["--schedule gpipe"],
                              ["--schedule zero-bubble"],
                              ["--schedule interleaved --chunks 2"]))
    words += draw.choice(([], ["--warm-up 2"], ["--checkpoint-every 3"],
                          ["--eval-every 4"], ["--cut %d@60" %
                                               draw.randint(0, 15)]))
    return " ".join(words)


def fail(arguments, what):
    sys.exit("tracegen %s: %s" % (arguments, what))


def check_transfers(arguments, job):
    """Median error 2 % at most, also where ranks came up to five transfers
    apart."""
    said = []
    for kind, errors in sorted(truth.transfer_errors(job).items()):
        for name, part in (
                (kind, [e for e, _ in errors]),
                (kind + ", skews 1 to 5", [e for e, s in errors
                                           if 1 <= s <= 5])):
            if len(part) < 20:
                continue
            said.append("%s %.2f %%" % (name, 100 * truth.median(part)))
            if truth.median(part) > .02:
                fail(arguments, "transfers of %s: median error %.1f %% of %d"
                     % (name, 100 * truth.median(part), len(part)))
    return said


def check_marks(arguments, job):
    """What is far off is marked, but for one in a thousand."""
    told = truth.unmarked_errors(job)
    far = [(error, took) for error, took in told
           if abs(error) > 5000 + took / 4]
    if len(far) > len(told) / 1000:
        fail(arguments, "%d of %d transfers are off and not marked, as one of"
             " %d ns by %d" % (len(far), len(told), *max(far)[::-1]))


def check_named(arguments, job, folder):
    """Ranks that called something else are named, and nobody else is."""
    planted = sorted((op.rank, job.truth.execute(
        "SELECT count(*) FROM op WHERE process = ? AND uid = ? AND unlike",
        (op.rank, op.key[0])).fetchone()[0]) for op in
        {(op.rank, op.key[0]): op for op in reversed(job.ops)
         if op.unlike}.values())
    found = json.loads(subprocess.run(
        [COMMTRACE, "report", "--json", folder], check=True,
        stdout=subprocess.PIPE).stdout)["jobs"][0]
    named = sorted((u["global_rank"], u["calls"])
                   for u in found["quality"]["unlike"])
    if named != planted:
        fail(arguments, "unlike calls of %s, named %s" % (planted, named))
    texts = [f["text"] for f in found["findings"]
             if f["code"] == "OP_MISMATCH"]
    if len(texts) != bool(planted) or planted and \
            "rank %d called" % max(planted, key=lambda p: p[1])[0] not in \
            texts[0]:
        fail(arguments, "finding of unlike calls: %s" % texts)


def check(tmp, arguments):
    folder, db = os.path.join(tmp, "job"), os.path.join(tmp, "job.db")
    subprocess.run(["rm", "-rf", folder], check=True)
    if subprocess.run([TRACEGEN, "--out", folder, "--truth-db"] +
                      arguments.split(), stdout=subprocess.DEVNULL
                      ).returncode:
        if arguments in CASES:
            fail(arguments, "not generated")
        return  # options that do not go together
    subprocess.run([COMMTRACE, "merge", "--db", db, folder], check=True)
    job = truth.Job(db, os.path.join(folder, "truth.sqlite"))
    faults, counts = truth.mismatches(job)
    if faults:
        fail(arguments, "%d faults of matching, the first: %s" % (
            len(faults), faults[0]))
    if not counts["ops"]:
        fail(arguments, "no op")
    check_named(arguments, job, folder)
    check_marks(arguments, job)
    said = check_transfers(arguments, job)
    waits = truth.wait_errors(job)
    if waits and truth.median(waits) > .02:
        fail(arguments, "waits: median error %.1f %%" % (
            100 * truth.median(waits)))
    clocks = job.clock_errors()
    if not clocks:
        fail(arguments, "no clock was tied")
    if truth.quantile(clocks, .95) > 5000:
        fail(arguments, "clocks are off by %.0f ns" %
             truth.quantile(clocks, .95))
    untied, = job.db.execute("SELECT count(*) FROM host_clock"
                             " WHERE common <> 0").fetchone()
    if untied:
        fail(arguments, "%d clocks are not tied" % untied)
    print("tracegen %s\n  %d ops in %d instances (%d not whole, %d unlike): all "
          "met their own; transfers off by %s; waits by %.2f %%; clocks by "
          "%.0f ns (95 %%)" % (
              arguments, counts["ops"], counts["instances"],
              counts["not whole"], counts["unlike"], ", ".join(said),
              100 * truth.median(waits), truth.quantile(clocks, .95)),
          flush=True)


with tempfile.TemporaryDirectory() as tmp_folder:
    for case in [drawn(int(s)) for s in sys.argv[3:]] or CASES:
        check(tmp_folder, case)
