"""profiled.py FILE: collectives that launch work on one rank, under PyTorch's
profiler, whose account goes to FILE. Every second op finds the GPU busy, so
that all of it is enqueued when it starts."""
import sys
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

import common

SIZES = [1 << n for n in range(14, 27)]
BUSY_CYCLES = 1000000


def ops(x, out):
    for count in SIZES:
        for busy in (False, True):
            for work in (lambda: dist.all_reduce(x[:count], dist.ReduceOp.AVG),
                         lambda: dist.all_gather_into_tensor(out[:count],
                                                             x[:count])):
                if busy:
                    torch.cuda._sleep(BUSY_CYCLES)
                work()
                torch.cuda.synchronize()


def main():
    device = common.start()
    x, out = (torch.ones(SIZES[-1], device=device) for _ in range(2))
    ops(x, out)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        torch.cuda.synchronize()
        common.MARKS.append(time.monotonic_ns())
        ops(x, out)
        common.mark()
    p.export_chrome_trace(sys.argv[1])
    common.finish()


if __name__ == "__main__":
    main()
