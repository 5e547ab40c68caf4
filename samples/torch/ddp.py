"""Data parallelism: every rank holds the model, gradients are averaged."""
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import gpt
import job

args = job.options(__doc__, bucket_mb=(0.2, "gradients sent at once"))
device = job.start(args)
rank, ranks = dist.get_rank(), dist.get_world_size()

model = DistributedDataParallel(gpt.GPT(args).to(device), [device.index],
                                bucket_cap_mb=args.bucket_mb)
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
