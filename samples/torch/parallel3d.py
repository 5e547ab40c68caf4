"""Tensor, pipeline and (sharded) data parallelism at once."""
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import parallelize_module

import gpt
import job
import pipeline
import tensor_parallel


def mesh_of(args):
    """All ranks as (pp, dp, tp), numbered in the order that was asked for."""
    ranks = dist.get_world_size()
    sizes = {"tp": args.tp, "pp": args.pp, "dp": ranks // (args.tp * args.pp)}
    outer_first = args.order.split("-")[::-1]
    if sorted(outer_first) != sorted(sizes):
        sys.exit("--order %s: not tp, pp and dp in some order" % args.order)
    if sizes["dp"] * args.tp * args.pp != ranks:
        sys.exit("%d ranks are not a multiple of tp %d x pp %d" %
                 (ranks, args.tp, args.pp))
    numbers = torch.arange(ranks).view([sizes[n] for n in outer_first])
    names = ("pp", "dp", "tp")
    numbers = numbers.permute([outer_first.index(n) for n in names])
    return DeviceMesh("cuda", numbers, mesh_dim_names=names)


def main():
    args = job.options(
        __doc__, tp=(2, "ranks that share a layer"),
        pp=(2, "pipeline stages"), micro_batches=(4, "of a step"),
        order=("tp-dp-pp", "neighbouring ranks first: the first stays on a "
               "host, the last crosses hosts"))
    device = job.start(args)
    mesh = mesh_of(args)
    stage, stages = mesh["pp"].get_local_rank(), args.pp
    replica, replicas = mesh["dp"].get_local_rank(), mesh["dp"].size()

    model = gpt.GPT(args, stage, stages).to(device)
    for block in model.blocks:
        parallelize_module(block, mesh["tp"], tensor_parallel.PLAN)
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    pipe = pipeline.schedule(model, args, args.batch // replicas, stage, stages,
                             device, mesh["pp"].get_group())
    optimizer = gpt.optimizer_of(model, args)
    losses = []
    for step in range(args.steps):
        words, wanted = (job.share(x, replica, replicas).to(device)
                         for x in gpt.text(args, step))
        optimizer.zero_grad()
        loss = pipeline.run(pipe, stage, stages, words, wanted)
        optimizer.step()
        if loss is not None:
            dist.all_reduce(loss, dist.ReduceOp.AVG,
                            group=mesh["dp"].get_group())
            losses.append(loss.item())

    last = stage == stages - 1
    job.finish(args, losses, last and replica == 0 and
               mesh["tp"].get_local_rank() == 0)


if __name__ == "__main__":
    main()
