"""PyTorch on the fabric: right numbers from everything that c10d can do.

A job for torchrun: test_fabric_torch.py BACKEND. Prints one line a rank, and
fails on the first wrong number.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
SUM = WORLD * (WORLD + 1) // 2


def full(value, count=1000, dtype=torch.float32):
    return torch.full((count,), value, dtype=dtype, device=DEVICE)


def ranks(count, value=lambda rank: rank):
    return torch.cat([full(value(r), count) for r in range(WORLD)])


def expect(got, want, what):
    want = torch.as_tensor(want, dtype=got.dtype).expand_as(got)
    if not torch.equal(got.cpu(), want.cpu()):
        sys.exit(f"rank {RANK}: {what}: {got.cpu()[:4]}, not {want.cpu()[:4]}")


def reductions():
    for dtype in torch.float32, torch.bfloat16, torch.int64:
        x = full(RANK + 1, dtype=dtype)
        dist.all_reduce(x)
        expect(x, SUM, f"all_reduce of {dtype}")
    x = full(RANK + 1)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    expect(x, WORLD, "maximum")
    x = full(RANK + 1)
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    expect(x, SUM / WORLD, "average")
    x = full(RANK + 1)
    dist.all_reduce(x, op=dist._make_nccl_premul_sum(0.5))
    expect(x, SUM / 2, "premultiplied sum")
    x = full(RANK + 1)
    dist.all_reduce(x, async_op=True).wait()
    expect(x, SUM, "asynchronous")
    x = full(RANK + 1)
    dist.reduce(x, 0)
    if not RANK:
        expect(x, SUM, "reduce")
    x = torch.empty(1000, device=DEVICE)
    dist.reduce_scatter_tensor(x, ranks(1000, lambda r: r + 1))
    expect(x, WORLD * (RANK + 1), "reduce_scatter")


def moves():
    x = full(RANK)
    dist.broadcast(x, WORLD - 1)
    expect(x, WORLD - 1, "broadcast")
    x = torch.empty(WORLD * 1000, device=DEVICE)
    dist.all_gather_into_tensor(x, full(RANK))
    expect(x, ranks(1000), "all_gather_into_tensor")
    parts = [torch.empty(5, device=DEVICE) for _ in range(WORLD)]
    dist.all_gather(parts, full(RANK, 5))
    expect(torch.cat(parts), ranks(5), "all_gather")
    x = torch.empty(WORLD * 7, device=DEVICE)
    dist.all_to_all_single(x, ranks(7, lambda r: 10 * RANK + r))
    expect(x, ranks(7, lambda r: 10 * r + RANK), "all_to_all_single")
    x = torch.empty((RANK + 1) * WORLD, device=DEVICE)
    uneven = torch.cat([full(RANK, r + 1) for r in range(WORLD)])
    dist.all_to_all_single(
        x, uneven, [RANK + 1] * WORLD, [r + 1 for r in range(WORLD)]
    )
    expect(x, ranks(RANK + 1), "uneven all_to_all_single")
    x = torch.empty(7, device=DEVICE)
    parts = [full(r, 7) for r in range(WORLD)] if not RANK else None
    dist.scatter(x, parts, 0)
    expect(x, RANK, "scatter")
    parts = [torch.empty(7, device=DEVICE) for _ in range(WORLD)]
    dist.gather(full(RANK, 7), parts if not RANK else None, 0)
    if not RANK:
        expect(torch.cat(parts), ranks(7), "gather")


def messages():
    after, before = (RANK + 1) % WORLD, (RANK - 1) % WORLD
    x = torch.empty(1000, device=DEVICE)
    if RANK % 2:
        dist.recv(x, before)
        dist.send(full(RANK), after)
    else:
        dist.send(full(RANK), after)
        dist.recv(x, before)
    expect(x, before, "send and recv")
    x = torch.empty(1000, device=DEVICE)
    pair = [
        dist.P2POp(dist.isend, full(RANK), after),
        dist.P2POp(dist.irecv, x, before),
    ]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    expect(x, before, "batch_isend_irecv")


def coalesced():
    xs = [full(RANK + i) for i in range(3)]
    with dist._coalescing_manager(device=DEVICE):
        for x in xs:
            dist.all_reduce(x)
    expect(xs[2], SUM + WORLD, "coalesced")


def objects():
    out = [None] * WORLD
    dist.all_gather_object(out, {"rank": RANK})
    told = [["a", 1] if not RANK else None]
    dist.broadcast_object_list(told, 0)
    if out != [{"rank": r} for r in range(WORLD)] or told != [["a", 1]]:
        sys.exit(f"rank {RANK}: objects")


def groups():
    pair = dist.new_group([0, 1])
    if RANK < 2:
        x = full(RANK + 1)
        dist.all_reduce(x, group=pair)
        expect(x, 3, "new_group")
    mesh = init_device_mesh("cuda", (WORLD // 2, 2), mesh_dim_names=("a", "b"))
    x = full(RANK)
    dist.all_reduce(x, group=mesh.get_group("b"))
    expect(x, 2 * (RANK // 2 * 2) + 1, "mesh")


def side_streams():
    x, side = full(1), torch.cuda.Stream(priority=-1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2
        dist.all_reduce(y)
    torch.cuda.current_stream().wait_stream(side)
    expect(y, 2 * WORLD, "side stream")


def graphs():
    """Only copies and collectives: what the CPU computes is not replayed."""
    x, y = full(RANK + 1), torch.empty(1000, device=DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y.copy_(x)
        dist.all_reduce(y)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y.copy_(x)
        dist.all_reduce(y)
    for k in range(3):
        x.copy_(full(RANK + 1 + k))
        graph.replay()
        expect(y, SUM + k * WORLD, "replay")


def training():
    torch.manual_seed(0)
    plain = torch.nn.Linear(32, 4)
    model = torch.nn.Linear(32, 4)
    model.load_state_dict(plain.state_dict())
    ddp = DistributedDataParallel(model.to(DEVICE))
    batch = torch.randn(WORLD, 8, 32)
    ddp(batch[RANK].to(DEVICE)).pow(2).mean().backward()
    plain(batch.flatten(0, 1)).pow(2).mean().backward()
    got, want = model.weight.grad.cpu(), plain.weight.grad
    if not torch.allclose(got, want, atol=1e-6):
        sys.exit(f"rank {RANK}: gradients differ by {(got - want).abs().max()}")


def main():
    torch.cuda.set_device(DEVICE)
    dist.init_process_group(sys.argv[1], device_id=DEVICE)
    for part in (
        reductions,
        moves,
        messages,
        coalesced,
        objects,
        groups,
        side_streams,
        graphs,
        training,
    ):
        part()
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.write(f"rank {RANK} of {WORLD} right\n")


main()
