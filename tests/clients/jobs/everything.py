"""everything.py BACKEND: each way in which PyTorch calls NCCL, with its values
checked; data loaders with forked and spawned workers in between."""
import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

WRONG = []


def check(what, got, want):
    if not torch.equal(got.cpu(), want.to(got.dtype)):
        WRONG.append("%s: %s, not %s" % (what, got.cpu()[:4], want[:4]))


def full(value, n=1000, dtype=torch.float32):
    return torch.full((n,), value, dtype=dtype)


def each(n, value, count=1000):
    return torch.cat([full(value(i), count) for i in range(n)])


def collectives(r, n, d):
    total = n * (n + 1) / 2
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8):
        x = full(r + 1, dtype=dtype).to(d)
        dist.all_reduce(x)
        check("all_reduce", x, full(total, dtype=dtype))
    for op, want in ((dist.ReduceOp.MAX, n), (dist.ReduceOp.AVG, total / n),
                     (dist._make_nccl_premul_sum(0.5), total / 2)):
        x = full(r + 1.).to(d)
        dist.all_reduce(x, op)
        check("all_reduce", x, full(want))
    x = full(r + 1.).to(d)
    dist.all_reduce(x, async_op=True).wait()
    check("asynchronous all_reduce", x, full(total))
    x = full(r).to(d)
    dist.broadcast(x, n - 1)
    check("broadcast", x, full(n - 1))
    x = full(r + 1).to(d)
    dist.reduce(x, 0)
    if r == 0:
        check("reduce", x, full(total))


def shares(r, n, d):
    total = n * (n + 1) / 2
    x = torch.empty(n * 1000, device=d)
    dist.all_gather_into_tensor(x, full(r).to(d))
    check("all_gather_into_tensor", x, each(n, lambda i: i))
    x = [torch.empty(1000, device=d) for _ in range(n)]
    dist.all_gather(x, full(r).to(d))
    check("all_gather", torch.cat(x), each(n, lambda i: i))
    x = torch.empty(1000, device=d)
    dist.reduce_scatter_tensor(x, each(n, lambda i: (r + 1) * (i + 1)).to(d))
    check("reduce_scatter_tensor", x, full(total * (r + 1)))
    x = torch.empty(1000, device=d)
    dist.reduce_scatter(x, [full((r + 1) * (i + 1)).to(d) for i in range(n)])
    check("reduce_scatter", x, full(total * (r + 1)))
    x = torch.empty(7, device=d)
    dist.scatter(x, [full(i, 7).to(d) for i in range(n)] if r == 0 else None)
    check("scatter", x, full(r, 7))
    x = [torch.empty(7, device=d) for _ in range(n)] if r == 0 else None
    dist.gather(full(r, 7).to(d), x)
    if r == 0:
        check("gather", torch.cat(x), each(n, lambda i: i, 7))


def uneven(r, n, d):
    """Shares of different sizes: broadcasts and reductions in a group."""
    x = [torch.empty(100 * (i + 1), device=d) for i in range(n)]
    dist.all_gather(x, full(r, 100 * (r + 1)).to(d))
    check("uneven all_gather", torch.cat(x),
          torch.cat([full(i, 100 * (i + 1)) for i in range(n)]))
    x = torch.empty(100 * (r + 1), device=d)
    dist.reduce_scatter(x, [full(i, 100 * (i + 1)).to(d) for i in range(n)])
    check("uneven reduce_scatter", x, full(n * r, 100 * (r + 1)))


def all_to_all(r, n, d):
    x = torch.empty(n * 1000, device=d)
    dist.all_to_all_single(x, each(n, lambda i: 10 * r + i).to(d))
    check("all_to_all_single", x, each(n, lambda i: 10 * i + r))
    x = [torch.empty(5, device=d) for _ in range(n)]
    dist.all_to_all(x, [full(10 * r + i, 5).to(d) for i in range(n)])
    check("all_to_all", torch.cat(x), each(n, lambda i: 10 * i + r, 5))
    ins = list(range(n))  # rank 0 gets nothing
    x = torch.empty(n * r, device=d)
    dist.all_to_all_single(
        x, torch.cat([full(10 * r + i, i) for i in range(n)]).to(d), [r] * n,
        ins)
    check("uneven all_to_all_single", x, each(n, lambda i: 10 * i + r, r))


def pairs(r, n, d):
    after, before = (r + 1) % n, (r - 1) % n
    x, y = full(r).to(d), torch.empty(1000, device=d)
    if r % 2 == 0:
        dist.send(x, after)
        dist.recv(y, before)
    else:
        dist.recv(y, before)
        dist.send(x, after)
    check("send and recv", y, full(before))
    y = torch.empty(1000, device=d)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, after),
                                        dist.P2POp(dist.irecv, y, before)]):
        work.wait()
    check("batch_isend_irecv", y, full(before))


def coalesced(r, n, d):
    x = [full(r + i).to(d) for i in range(3)]
    with dist._coalescing_manager(device=d):
        for y in x:
            dist.all_reduce(y)
    check("coalesced all_reduce", x[2], full(sum(i + 2 for i in range(n))))
    x = [torch.empty(n * 10, device=d) for _ in range(2)]
    with dist._coalescing_manager(device=d):
        for y in x:
            dist.all_gather_into_tensor(y, full(r, 10).to(d))
    check("coalesced all_gather", x[1], each(n, lambda i: i, 10))
    x = [torch.empty(10, device=d) for _ in range(2)]
    with dist._coalescing_manager(device=d):
        for y in x:
            dist.reduce_scatter_tensor(y, full(r, n * 10).to(d))
    check("coalesced reduce_scatter", x[1], full(n * (n - 1) / 2, 10))


def groups(r, n, d):
    pair = dist.new_group([0, 1])
    if r < 2:
        x = full(r + 1).to(d)
        dist.all_reduce(x, group=pair)
        check("all_reduce of a new group", x, full(3))
    everyone = dist.split_group(split_ranks=[list(range(n))])
    x = full(1).to(d)
    dist.all_reduce(x, group=everyone)
    check("all_reduce of a split group", x, full(n))
    mine = dist.new_subgroups(1)[0]  # groups of one rank carry traffic, too
    x = full(r).to(d)
    dist.all_reduce(x, group=mine)
    check("all_reduce of one rank", x, full(r))


def streams(r, n, d):
    x = [full(r + i).to(d) for i in range(2)]
    for i, y in enumerate(x):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            dist.all_reduce(y)
        torch.cuda.current_stream().wait_stream(side)
        check("all_reduce on a side stream", y,
              full(n * (n - 1) / 2 + n * i))


def objects(r, n):
    out = [None] * n
    dist.all_gather_object(out, {"rank": r})
    if out != [{"rank": i} for i in range(n)]:
        WRONG.append("all_gather_object: %s" % out)
    out = [{"a": [1, 2]} if r == 0 else None]
    dist.broadcast_object_list(out, 0)
    if out != [{"a": [1, 2]}]:
        WRONG.append("broadcast_object_list: %s" % out)


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return i * i


def loaders():
    for how in ("fork", "spawn"):
        got = [int(x) for x in DataLoader(Squares(), num_workers=2,
                                          multiprocessing_context=how)]
        if got != [i * i for i in range(8)]:
            WRONG.append("%sed workers: %s" % (how, got))


def main():
    backend = sys.argv[1] if len(sys.argv) > 1 else "nccl"
    r, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    d = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(d)
    dist.init_process_group(backend, device_id=d)
    collectives(r, n, d)
    shares(r, n, d)
    uneven(r, n, d)
    all_to_all(r, n, d)
    loaders()
    pairs(r, n, d)
    coalesced(r, n, d)
    groups(r, n, d)
    streams(r, n, d)
    objects(r, n)
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()
    print("rank %d %s" % (r, "; ".join(WRONG) or "fine"))
    sys.exit(1 if WRONG else 0)


if __name__ == "__main__":
    main()
