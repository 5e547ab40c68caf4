"""graph.py: collectives in torch.cuda.graph, replayed on changing streams. The
sums of a replay are real on the stand-ins as well. Rank 0 prints what a rank
issued: captured calls, replays, and what ran by them."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

REPLAYS = 100
WARM_UP = 3
DDP_WARM_UP = 11  # before a capture of DDP, torch's notes on graphs say


def check(tensor, value):
    if not (tensor == value).all():
        sys.exit("%s instead of %s" % (tensor.flatten()[0].item(), value))


def warm_up(work, n, side):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(n):
            work()
    torch.cuda.current_stream().wait_stream(side)


def capture(work, stream=None):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        work()
    return graph


def collectives(device, world):
    """Two graphs; each replay multiplies x by the number of ranks."""
    x = torch.ones(1 << 10, dtype=torch.float64, device=device)
    parts = torch.empty(world << 10, dtype=torch.float64, device=device)

    def both():
        dist.all_reduce(x)
        dist.all_gather_into_tensor(parts, x)

    warm_up(both, WARM_UP, torch.cuda.Stream())
    torch.cuda.synchronize()
    two, one = capture(both), capture(lambda: dist.all_reduce(x))
    torch.cuda.synchronize()
    check(x, float(world) ** WARM_UP)
    streams = [torch.cuda.Stream() for _ in range(3)]
    for i in range(REPLAYS):
        with torch.cuda.stream(streams[i % 3]):
            (one if i % 4 == 3 else two).replay()
        streams[i % 3].synchronize()
    check(x, float(world) ** (WARM_UP + REPLAYS))
    check(parts, float(world) ** (WARM_UP + REPLAYS - 1))
    ones = REPLAYS // 4
    return 3, REPLAYS, ones + 2 * (REPLAYS - ones)


def ddp(device):
    """A whole step of DDP; its arithmetic is captured as well."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(),
                                torch.nn.Linear(64, 8)).to(device)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model = DistributedDataParallel(model, [device.index])
    x = torch.ones(4, 64, device=device)

    def step():
        model.zero_grad(set_to_none=False)
        model(x).sum().backward()

    warm_up(step, DDP_WARM_UP, side)
    torch.cuda.synchronize()
    graph = capture(step, side)
    for _ in range(REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    return 1, REPLAYS, REPLAYS  # one bucket


def main():
    dist.init_process_group(sys.argv[1])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    done = [collectives(device, dist.get_world_size()), ddp(device)]
    if dist.get_rank() == 0:
        print("captured %d launches %d runs %d" %
              tuple(sum(column) for column in zip(*done)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
