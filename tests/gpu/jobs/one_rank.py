"""one_rank.py ddp|fsdp|graphs|streams: PyTorch on one rank. Prints nothing
but exact results, the same in every run."""
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import common
from common import gpt

STEPS = 8


def train(model, args, device):
    optimizer = gpt.optimizer_of(model, args)
    for step in range(STEPS):
        words, wanted = (x.to(device) for x in gpt.text(args, step))
        optimizer.zero_grad()
        loss = gpt.loss_of(model(words), wanted)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        common.mark()
        print("step %d loss %s" % (step, mean.item().hex()))
    print("parameters", common.digest(model.parameters()))


def ddp(device):
    args = common.shape()
    train(DistributedDataParallel(gpt.GPT(args).to(device), [device.index],
                                  bucket_cap_mb=0.2), args, device)


def fsdp(device):
    """Also the collectives that FSDP2 itself leaves out on one rank."""
    args = common.shape()
    model = gpt.GPT(args).to(device)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    train(model, args, device)
    whole = torch.empty(1 << 20, device=device)
    for i in range(20):
        part = torch.full_like(whole, i + 1)
        dist.all_gather_into_tensor(whole, part)
        dist.reduce_scatter_tensor(part, whole, dist.ReduceOp.AVG)
        dist.all_reduce(part, dist._make_nccl_premul_sum(0.5))
        check(part, (i + 1) / 2)
    common.mark()


def check(tensor, value):
    wrong = (tensor != value).sum().item()
    if wrong:
        sys.exit("%d of %d elements are not %s but for example %s" %
                 (wrong, tensor.numel(), value, tensor.flatten()[0].item()))


def graphs(device):
    """Captured collectives, replayed between others on the same streams."""
    x, out = (torch.zeros(1 << 20, device=device) for _ in range(2))

    def work():
        x.add_(1)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        dist.all_gather_into_tensor(out, x)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    common.mark()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    y = torch.zeros(1 << 16, device=device)
    for i in range(20):
        graph.replay()
        y.add_(1)
        dist.all_reduce(y, dist.ReduceOp.AVG)
        if i % 5 == 0:
            common.mark()
    common.mark()
    check(y, 20)
    if common.REAL_GPU:
        check(out, 23)
    print("results", common.digest([y] + ([x, out] if common.REAL_GPU else [])))


def on_stream(i, device, y, weight, group):
    """Tensor ops and collectives of all shapes in the order of a stream."""
    y = y @ weight
    works = [dist.all_reduce(y, dist.ReduceOp.AVG, async_op=True)]
    whole, part = torch.empty_like(y), torch.empty_like(y)
    works.append(dist.all_gather_into_tensor(whole, y, group=group,
                                             async_op=True))
    works[-1].wait()
    works.append(dist.reduce_scatter_tensor(part, whole, async_op=True))
    for work in works:
        work.wait()
    dist.broadcast(part, 0)
    dist.reduce(part, 0, dist.ReduceOp.MAX, group)
    return part.relu_()


def streams(device):
    torch.manual_seed(1)
    group = dist.new_group([0])
    sides = [torch.cuda.Stream() for _ in range(3)]
    weight = torch.linalg.qr(torch.randn(256, 256))[0].to(device)
    values = [torch.randn(256, 256).to(device) for _ in sides]
    for step in range(20):
        for i, side in enumerate(sides):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                values[i] = on_stream(i, device, values[i], weight, group)
        for side in sides:
            torch.cuda.current_stream().wait_stream(side)
        if step % 4 == 0:
            with dist._coalescing_manager(device=device):
                for value in values:
                    dist.all_reduce(value)
            dist.barrier()
            common.mark()
    common.mark()
    print("results", common.digest(values))


def main():
    common.exactly()
    device = common.start()
    {"ddp": ddp, "fsdp": fsdp, "graphs": graphs,
     "streams": streams}[sys.argv[1]](device)
    common.finish()


if __name__ == "__main__":
    main()
