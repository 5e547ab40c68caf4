"""test_tracegen_jobs.py [SEED COUNT]: generated jobs are jobs that could be.
Ranks agree on every call, nothing begins before it was called or while its
stream or its communicator is busy, layouts call as often as the literature
says, schedules are idle as long as it says, the truth file tells the steps; and
all but the numbers holds for any jobs."""
import collections
import glob
import json
import os
import shutil
import sqlite3
import subprocess
import sys

import any_job
import jobs

TRACEGEN = os.path.join(jobs.BUILD, "tests", "tracegen", "tracegen")
L, M = 8, 4  # layers, micro-batches
BASE = ["--layers", L, "--micro-batches", M, "--steps", 3, "--seed", 7]

# Calls of a step by (role, kind), on a rank where all of them occur: all where
# there is one stage, else the last stage. research: Megatron-LM's layers.py,
# token_dispatcher.py; torch's FSDP2.
SIGNATURES = [
    ("--tp 2", {("TP", "all_reduce"): 4 * L * M}),
    ("--tp 2 --recompute", {("TP", "all_reduce"): 6 * L * M}),
    ("--tp 2 --sequence-parallel", {("TP", "all_gather"): 6 * L * M,
                                    ("TP", "reduce_scatter"): 4 * L * M}),
    ("--tp 2 --vocabulary", {("TP", "all_reduce"): 4 * L * M + 4 * M}),
    ("--tp 2 --broadcast-batch", {("TP", "all_reduce"): 4 * L * M,
                                  ("TP", "broadcast"): 4 * M}),
    ("--dp 4 --buckets 5 --overlap --own-streams", {("DP", "all_reduce"): 5}),
    ("--dp 4 --buckets 3 --zero 1", {("DP", "reduce_scatter"): 3,
                                     ("DP", "all_gather"): 3}),
    ("--dp 4 --buckets 3 --zero 1 --coalesce", {("DP", "reduce_scatter"): 3,
                                                ("DP", "all_gather"): 3}),
    ("--dp 4 --buckets 3 --zero 1 --overlap --gather-ahead --twin",
     {("DP", "reduce_scatter"): 3, ("DP", "all_gather"): 3}),
    ("--dp 4 --buckets 3 --zero 2", {("DP", "reduce_scatter"): 3 * M,
                                     ("DP", "all_gather"): 3}),
    ("--dp 4 --zero 3", {("DP", "all_gather"): (2 * L + 1) * M,
                         ("DP", "reduce_scatter"): (L + 1) * M}),
    ("--dp 4 --zero 3 --twin", {("DP", "all_gather"): (2 * L + 1) * M,
                                ("DP", "reduce_scatter"): (L + 1) * M}),
    ("--dp 4 --zero 3 --shard 2", {("DP", "all_gather"): (2 * L + 1) * M,
                                   ("DP", "reduce_scatter"): (L + 1) * M,
                                   ("DP", "all_reduce"): (L + 1) * M}),
    ("--cp 3 --buckets 0", {("CP", "send"): 2 * 2 * L * M,
                            ("CP", "recv"): 2 * 2 * L * M}),
    ("--cp 2 --context ulysses --native-alltoall --buckets 0",
     {("CP", "alltoall"): 8 * L * M}),
    ("--cp 2 --context ulysses --buckets 0",
     {("CP", "send"): 2 * 8 * L * M, ("CP", "recv"): 2 * 8 * L * M}),
    ("--cp 2 --context gather --buckets 0",
     {("CP", "all_gather"): 2 * L * M, ("CP", "reduce_scatter"): L * M}),
    # Tokens, probabilities and back, each way; how many is told before.
    ("--dp 4 --ep 2 --buckets 0", {("EP", "all_gather"): L * M,
                                   ("EP", "send"): 2 * 6 * L * M,
                                   ("EP", "recv"): 2 * 6 * L * M,
                                   ("DP", "all_reduce"): 1}),
    ("--dp 2 --ep 2 --moe-every 4 --buckets 0",
     {("EP", "all_gather"): L // 4 * M, ("EP", "send"): 2 * 6 * L // 4 * M,
      ("EP", "recv"): 2 * 6 * L // 4 * M}),
    ("--pp 4", {("PP", "send"): M, ("PP", "recv"): M}),
    ("--pp 2 --tp 2 --pipeline-over world", {
        ("control", "send"): M, ("control", "recv"): M,
        ("TP", "all_reduce"): 2 * L * M}),
    ("--pp 4 --schedule gpipe", {("PP", "send"): M, ("PP", "recv"): M}),
    ("--pp 4 --schedule zero-bubble", {("PP", "send"): M, ("PP", "recv"): M}),
    ("--pp 4 --schedule interleaved --chunks 2",
     {("PP", "send"): 2 * M + 2 * M - M, ("PP", "recv"): 2 * M + 2 * M - M}),
    ("--pp 4 --tie-embeddings", {("PP", "send"): M, ("PP", "recv"): M,
                                 ("embedding", "all_reduce"): 1}),
    ("--pp 2 --dp 2 --loss --buckets 0", {("PP", "send"): M, ("PP", "recv"): M,
                                          ("DP", "all_reduce"): 1}),
]

# Of nothing but these: agreement and times.
MIXTURES = [
    "--tp 2 --pp 2 --dp 4 --hosts 2 --zero 1 --overlap --own-streams --scalars 3",
    "--tp 2 --pp 2 --dp 4 --hosts 4 --zero 3 --shard 2 --twin --own-streams",
    "--tp 2 --cp 2 --dp 2 --pp 2 --order tp,cp,pp,dp --overlap --own-streams",
    "--pp 4 --dp 2 --zero 1 --overlap --gather-ahead --schedule interleaved"
    " --chunks 2",
    "--pp 3 --schedule interleaved --chunks 2 --micro-batches 6 --layers 12"
    " --hidden 16777216 --ragged-every 2 --eval-every 2",
    "--pp 4 --dp 2 --zero 3 --schedule zero-bubble --hidden 16777216",
    "--dp 8 --ep 4 --hosts 2 --overlap --own-streams",
    "--tp 2 --pp 2 --dp 2 --tie-embeddings --vocabulary --recompute --loss"
    " --norm model --warm-up 1 --checkpoint-every 2 --eval-every 2"
    " --ragged-every 2 --steps 5 --eval-micro-batches 2 --lone-groups",
    "--dp 2 --share-world --overlap --bucket-counts 2049000,7875584,6563840"
    " --buffers 53120,53 --scalars 0 --micro-batches 1 --barriers 0",
    "--tp 2 --pp 2 --serve --steps 40",
    "--tp 2 --pp 4 --dp 2 --initialise --broadcast-batch --pipeline-over world"
    " --schedule gpipe --hosts 2",
    "--dp 4 --sweep",
    "--dp 4 --zero 1 --coalesce --early-roots --buffers 53120,53 --warm-up 1",
]

# Nothing but computing takes time: idle as p, m and v say, in units of the
# forward pass of a stage; the backward pass takes two. ZB-H1 with F = B = W:
# (p-1)(F+B-W), Qi et al., Zero Bubble Pipeline Parallelism, table 1.
P, MANY = 4, 8
SCHEDULES = [
    ("1f1b", 1, 3 * (MANY + P - 1)),
    ("gpipe", 1, 3 * (MANY + P - 1)),
    ("interleaved", 2, 3 * MANY + 3 * (P - 1) / 2),
    ("zero-bubble", 1, 3 * MANY + P - 1),
]

Op = collections.namedtuple(
    "Op", "role kind uid peer rank ordinal type count stream start end enter")


def generate(folder, options):
    options = [str(word) for word in options]
    subprocess.run([TRACEGEN, *options, "--out", folder], check=True)
    with open(os.path.join(folder, "truth.json")) as f:
        truth = json.load(f)
    roles = {c["uid"]: c["role"] for c in truth["communicators"]}
    ranks = {}
    for path in glob.glob(os.path.join(folder, "*.db")):
        db = sqlite3.connect(path)
        rank, = db.execute("SELECT rank FROM process").fetchone()
        rows = db.execute(
            "SELECT k.name, c.uid, d.peer, c.rank, o.ordinal, d.type, d.count,"
            " d.stream, p.t0_real_ns + coalesce(o.enter_ns + o.gpu_off_ns,"
            " l.enter_ns + l.gpu_off_ns), coalesce(o.gpu_ns, l.gpu_ns),"
            " p.t0_real_ns + o.enter_ns FROM process AS p, op AS o"
            " JOIN op_class AS d ON d.id = o.class"
            " JOIN op_kind AS k ON k.id = d.kind JOIN comm AS c ON c.id = d.comm"
            " LEFT JOIN launch AS l ON l.grp = o.grp ORDER BY o.id")
        ranks[rank] = [Op(roles[row[1]], *row[:9], row[8] + row[9], row[10])
                       for row in rows]
        db.close()
    return truth, ranks


def check_agreement(truth, ranks):
    sizes = {c["uid"]: c["ranks"] for c in truth["communicators"]}
    calls = collections.defaultdict(list)
    for ops in ranks.values():
        for op in ops:
            if op.kind == "send":
                key = (op.uid, op.rank, op.peer, op.ordinal)
            elif op.kind == "recv":
                key = (op.uid, op.peer, op.rank, op.ordinal)
            else:
                key = (op.uid, op.ordinal)
            calls[key].append(op)
    for key, ops in calls.items():
        assert len({(op.type, op.count) for op in ops}) == 1, ops
        if len(key) == 4:
            kinds = {op.kind: op for op in ops}
            assert len(ops) == 2 and set(kinds) == {"send", "recv"}, ops
            assert kinds["send"].start < kinds["recv"].end, ops
        else:
            assert len(ops) == sizes[key[0]], ops
            assert len({op.kind for op in ops}) == 1, ops
            ends = {op.end for op in ops if op.rank != op.peer}
            assert len(ends) == 1 and max(op.end for op in ops) in ends, ops


def check_times(ranks):
    for ops in ranks.values():
        last = 0
        for op in ops:
            assert last <= op.enter <= op.start < op.end, op
            last = op.enter
        for lane in "stream", "uid":
            ends = {}
            spans = sorted({(getattr(op, lane), op.start, op.end)
                            for op in ops})
            for name, start, end in spans:
                assert start >= ends.get(name, 0), (lane, start)
                ends[name] = end


def check_segments(truth, ranks):
    for rank, ops in ranks.items():
        last, steps = -1, set()
        for kind, first, end, micro_batches in truth["segments"][rank]:
            assert last < first <= end < len(ops)
            last = end
            if kind == "step":
                steps.add(tuple(sorted(collections.Counter(
                    (op.role, op.kind) for op in ops[first:end + 1]).items())))
        assert len(steps) < 2, steps
        assert [s[1:3] for s in truth["segments"][rank] if s[0] == "step"] == \
            truth["steps"][rank]


def check(folder, options):
    truth, ranks = generate(folder, options)
    check_agreement(truth, ranks)
    check_times(ranks)
    check_segments(truth, ranks)
    return truth, ranks


def signature(folder, options, expected):
    truth, ranks = check(folder, BASE + options.split())
    rank = max(ranks)
    first, last = truth["steps"][rank][1]
    found = collections.Counter(
        (op.role, op.kind) for op in ranks[rank][first:last + 1])
    del found["control", "all_reduce"]
    assert found == expected, (options, found, expected)


def schedule(folder, name, chunks, units):
    truth, ranks = generate(folder, [
        "--pp", P, "--layers", L, "--micro-batches", MANY, "--steps", 4,
        "--jitter", 0, "--alpha-us", "0.001,0.001", "--GBps", "1e6,1e6",
        "--compute-us", 1000, "--schedule", name, "--chunks", chunks])
    ends = [ranks[0][last].end for _, last in truth["steps"][0]]
    unit = 2 * L / P * 1e6
    found = (ends[3] - ends[2] - 1e6) / unit # between steps one more ms
    print("%s: %.3f forward passes, in theory %.3f" % (name, found, units))
    assert abs(found / units - 1) < .002, name


def same_bytes(tmp):
    def read(name, seed):
        folder = os.path.join(tmp, name)
        generate(folder, BASE[:-1] + [seed, "--dp", 4, "--ep", 2])
        files = sorted(os.listdir(folder))
        return [open(os.path.join(folder, f), "rb").read() for f in files]

    once = read("a", 3)
    assert once == read("b", 3)
    assert once != read("c", 4)


def check_any(tmp, seed):
    folder, options = os.path.join(tmp, "any"), any_job.options(seed)
    try:
        check(folder, options)
    except Exception:
        print("seed", seed, *options)
        raise
    shutil.rmtree(folder)


def main():
    seed, count = [int(word) for word in sys.argv[1:]] or (1, 15)
    with jobs.Scratch() as tmp:
        for i, (options, expected) in enumerate(SIGNATURES):
            signature(os.path.join(tmp, "s%d" % i), options, expected)
        for i, options in enumerate(MIXTURES):
            check(os.path.join(tmp, "m%d" % i), BASE + options.split())
        for row in SCHEDULES:
            schedule(os.path.join(tmp, row[0]), *row)
        same_bytes(tmp)
        for i in range(seed, seed + count):
            check_any(tmp, i)
    print("%d layouts, %d mixtures, any jobs by seeds %d to %d"
          % (len(SIGNATURES), len(MIXTURES), seed, seed + count - 1))


if __name__ == "__main__":
    main()
