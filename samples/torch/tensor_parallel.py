"""Tensor parallelism: each rank holds a share of every layer."""
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)

import gpt
import job

PLAN = {"qkv": ColwiseParallel(), "out": RowwiseParallel(),
        "up": ColwiseParallel(), "down": RowwiseParallel()}


def main():
    args = job.options(__doc__)
    device = job.start(args)
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))

    model = gpt.GPT(args).to(device)
    for block in model.blocks:
        parallelize_module(block, mesh, PLAN)
    optimizer = gpt.optimizer_of(model, args)
    losses = []
    for step in range(args.steps):
        words, wanted = (x.to(device) for x in gpt.text(args, step))
        optimizer.zero_grad()
        loss = gpt.loss_of(model(words), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    job.finish(args, losses, dist.get_rank() == 0)


if __name__ == "__main__":
    main()
