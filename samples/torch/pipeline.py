"""Pipeline parallelism: each rank holds some of the layers; 1F1B."""
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import gpt
import job


def schedule(model, args, batch, stage, stages, device, group):
    """1F1B over micro-batches of a batch; shapes are given, so that the stages
    need not tell each other."""
    size = batch // args.micro_batches
    words = torch.zeros(size, args.length, dtype=torch.long, device=device)
    inner = torch.zeros(size, args.length, args.width, device=device,
                        requires_grad=True)
    logits = torch.zeros(size, args.length, gpt.WORDS, device=device)
    return Schedule1F1B(
        PipelineStage(model, stage, stages, device, group=group,
                      input_args=words if stage == 0 else inner,
                      output_args=logits if stage == stages - 1 else inner),
        args.micro_batches, loss_fn=gpt.loss_of)


def run(pipe, stage, stages, words, wanted):
    """One step; the loss on the last stage."""
    losses = []
    if stage == 0:
        pipe.step(words)
    elif stage == stages - 1:
        pipe.step(target=wanted, losses=losses)
    else:
        pipe.step()
    return torch.stack(losses).mean() if losses else None


def main():
    args = job.options(__doc__, micro_batches=(4, "of a step"))
    device = job.start(args)
    stage, stages = dist.get_rank(), dist.get_world_size()

    model = gpt.GPT(args, stage, stages).to(device)
    pipe = schedule(model, args, args.batch, stage, stages, device,
                    dist.group.WORLD)
    optimizer = gpt.optimizer_of(model, args)
    losses = []
    for step in range(args.steps):
        words, wanted = (x.to(device) for x in gpt.text(args, step))
        optimizer.zero_grad()
        loss = run(pipe, stage, stages, words, wanted)
        optimizer.step()
        if loss is not None:
            losses.append(loss.item())

    job.finish(args, losses, stage == stages - 1)


if __name__ == "__main__":
    main()
