"""How the jobs start and end: options, process group, losses, verification."""
import argparse
import os
import sys

import torch
import torch.distributed as dist

import gpt


def options(description, **defaults):
    p = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--width", type=int, default=64)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--length", type=int, default=32, help="words of a sequence")
    p.add_argument("--batch", type=int, default=16,
                   help="sequences of a step, over all ranks")
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--backend", default="nccl")
    p.add_argument("--verify", action="store_true",
                   help="compare the losses with one process on the CPU")
    for name, (default, text) in defaults.items():
        p.add_argument("--" + name.replace("_", "-"), type=type(default),
                       default=default, help=text)
    return p.parse_args()


def start(args):
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group(args.backend, device_id=device)
    return device


def share(x, rank, ranks):
    """This rank's part of a batch."""
    if len(x) % ranks:
        sys.exit("a batch of %d does not divide by %d ranks" % (len(x), ranks))
    return x.chunk(ranks)[rank]


def alone(args):
    """The losses of one process on the CPU."""
    model = gpt.GPT(args)
    optimizer = gpt.optimizer_of(model, args)
    for step in range(args.steps):
        words, wanted = gpt.text(args, step)
        optimizer.zero_grad()
        loss = gpt.loss_of(model(words), wanted)
        loss.backward()
        optimizer.step()
        yield loss.item()


def finish(args, losses, speaker):
    """Ends the job; of the ranks that have the losses one is the speaker."""
    dist.barrier()
    dist.destroy_process_group()
    if not speaker:
        return
    for step, loss in enumerate(losses):
        print("step %d loss %.5f" % (step, loss), flush=True)
    if not args.verify:
        return
    error = max(abs(a - b) for a, b in zip(losses, alone(args)))
    right = len(losses) == args.steps and error < 1e-3
    print("largest difference to one process on the CPU: %.1e, %s" %
          (error, "fine" if right else "WRONG"), flush=True)
    if not right:
        sys.exit(1)
