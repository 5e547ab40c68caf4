"""two_ranks.py: collectives of two ranks, on one GPU where there is one."""
import os
import sys

import torch
import torch.distributed as dist

import common


def main():
    device = common.start()
    r, n = dist.get_rank(), dist.get_world_size()
    wrong = []
    for size in range(3, 23):
        x = torch.full((1 << size,), r + 1., device=device)
        for _ in range(3):
            dist.all_reduce(x, dist.ReduceOp.MAX)
        dist.all_reduce(x)
        if not bool((x == n * n).all()):
            wrong.append("all_reduce of %d: %s" % (1 << size, x[0].item()))
        whole = torch.empty(n << size, device=device)
        dist.all_gather_into_tensor(whole, x)
        if not bool((whole == n * n).all()):
            wrong.append("all_gather of %d" % (1 << size))
        if r == 0:
            dist.send(x, 1)
        else:
            dist.recv(x, 0)
    common.finish()
    if r == 0:
        print("wrong: %s" % wrong if wrong else "all values right")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    if "MARKS" in os.environ:
        os.environ["MARKS"] += "." + os.environ["RANK"]
    main()
