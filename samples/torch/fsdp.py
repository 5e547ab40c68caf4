"""Sharded data parallelism (FSDP2); with --replicas N hybrid: N copies of the
sharded model."""
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import gpt
import job

args = job.options(__doc__, replicas=(1, "copies of the sharded model"))
device = job.start(args)
rank, ranks = dist.get_rank(), dist.get_world_size()

if args.replicas == 1:
    mesh = init_device_mesh("cuda", (ranks,))
else:
    mesh = init_device_mesh("cuda", (args.replicas, ranks // args.replicas),
                            mesh_dim_names=("replicate", "shard"))
model = gpt.GPT(args).to(device)
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = gpt.optimizer_of(model, args)
losses = []
for step in range(args.steps):
    words, wanted = (job.share(x, rank, ranks).to(device)
                     for x in gpt.text(args, step))
    optimizer.zero_grad()
    loss = gpt.loss_of(model(words), wanted)
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    losses.append(mean.item())

job.finish(args, losses, rank == 0)
