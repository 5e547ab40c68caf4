"""Jobs for tracegen, drawn by a seed."""
import random

SWITCHES = ("native-alltoall overlap gather-ahead twin coalesce early-roots"
            " sequence-parallel recompute vocabulary tie-embeddings loss"
            " own-streams share-world initialise broadcast-batch"
            " lone-groups").split()


def options(seed, least=1):
    """Options of a job of at most 32 ranks, in which anything may meet; what
    happens every few steps does after least or more."""
    draw = random.Random(seed)
    degrees = [draw.choice((1, 2, 3, 4)), draw.choice((1, 2, 4)),
               draw.choice((1, 1, 2, 3)), draw.choice((1, 2, 4))]
    while degrees[0] * degrees[1] * degrees[2] * degrees[3] > 32:
        degrees[draw.randint(1, 3)] = 1
    pp, tp, cp, dp = degrees
    name = draw.choice(("1f1b", "gpipe", "zero-bubble", "interleaved"))
    chunks, micro_batches = 1, draw.randint(1, 7)
    if name == "interleaved" and pp > 2:
        chunks, micro_batches = draw.randint(1, 3), pp * draw.randint(1, 3)
    elif name == "interleaved":
        name = "1f1b"
    order = ["tp", "cp", "dp", "pp"]
    draw.shuffle(order)
    zero = draw.randint(0, 3)
    found = ["--pp", pp, "--tp", tp, "--cp", cp, "--dp", dp, "--zero", zero,
               "--schedule", name, "--chunks", chunks, "--micro-batches",
               micro_batches, "--layers", pp * chunks * draw.randint(1, 3),
               "--order", ",".join(order), "--hosts",
               draw.randint(1, min(3, pp * tp * cp * dp)),
               "--shard" if zero == 3 else "--ep",
               draw.choice([n for n in (1, 2, 4) if dp % n == 0]),
               "--context", draw.choice(("ring", "ulysses", "gather")),
               "--norm", draw.choice(("world", "model")),
               "--pipeline-over", draw.choice(("pp", "world")),
               "--hidden", draw.choice((4096, 1 << 20, 4 << 20, 32 << 20)),
               "--buckets", draw.randint(0, 6), "--steps", 4, "--seed", seed]
    for switch in SWITCHES:
        found += ["--" + switch] if draw.random() < .3 else []
    for name in "warm-up", "scalars", "moe-every":
        found += ["--" + name, draw.randint(1, 3)] if draw.random() < .4 else []
    for name in "checkpoint-every", "ragged-every", "eval-every":
        found += ["--" + name, draw.randint(least, 5)] \
            if draw.random() < .4 else []
    return found
