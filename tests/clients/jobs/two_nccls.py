"""two_nccls.py LIBRARY ROUNDS: PyTorch's own backend, and beside it a copy of
NCCL that this program opens by path and calls through ctypes, the way in which
inference engines bring one of their own. Groups of both are open at once."""
import ctypes
import os
import sys

import torch
import torch.distributed as dist

FLOAT32, SUM = 7, 0
p, i, z = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


class Nccl:
    """Some of NCCL's functions, looked up by name in one library."""

    SIGNATURES = {
        "ncclGetUniqueId": [ctypes.POINTER(UniqueId)],
        "ncclCommInitRank": [ctypes.POINTER(p), i, UniqueId, i],
        "ncclAllReduce": [p, p, z, i, i, p, p],
        "ncclSend": [p, z, i, i, p, p],
        "ncclRecv": [p, z, i, i, p, p],
        "ncclGroupStart": [],
        "ncclGroupEnd": [],
        "ncclCommDestroy": [p],
    }

    def __init__(self, path):
        library = ctypes.CDLL(path)
        for name, arguments in self.SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, i
            setattr(self, name[4:], self.checked(name, function))

    @staticmethod
    def checked(name, function):
        def call(*arguments):
            result = function(*arguments)
            if result:
                raise RuntimeError("%s: %d" % (name, result))
        return call


def connect(nccl, rank, ranks, device):
    """A communicator of the other copy; the id travels by PyTorch's."""
    uid = UniqueId()
    if rank == 0:
        nccl.GetUniqueId(ctypes.byref(uid))
    data = torch.tensor(list(bytes(uid)), dtype=torch.uint8, device=device)
    dist.broadcast(data, 0)
    torch.cuda.synchronize()
    ctypes.memmove(ctypes.byref(uid), bytes(data.cpu().tolist()), 128)
    comm = p()
    nccl.CommInitRank(ctypes.byref(comm), ranks, uid, rank)
    return comm


def one_round(nccl, comm, rank, stream, mine, theirs):
    other = 1 - rank
    # A group of the other copy stays open while PyTorch opens one of its own.
    nccl.GroupStart()
    nccl.Send(mine.data_ptr(), mine.numel(), FLOAT32, other, comm, stream)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, mine[:10], other),
        dist.P2POp(dist.irecv, theirs[:10], other)])
    nccl.Recv(theirs.data_ptr(), theirs.numel(), FLOAT32, other, comm, stream)
    nccl.GroupEnd()
    for work in works:
        work.wait()
    nccl.AllReduce(mine.data_ptr(), mine.data_ptr(), mine.numel(), FLOAT32,
                   SUM, comm, stream)
    torch.cuda.synchronize()


def main():
    path, rounds = sys.argv[1], int(sys.argv[2])
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    nccl = Nccl(path)
    comm = connect(nccl, rank, ranks, device)
    stream = torch.cuda.current_stream().cuda_stream
    for n in range(rounds):
        mine = torch.full([1000], float(rank + 1), device=device)
        theirs = torch.zeros(1000, device=device)
        one_round(nccl, comm, rank, stream, mine, theirs)
        dist.all_reduce(theirs)
        torch.cuda.synchronize()
        got = float(mine.cpu()[0]), float(theirs.cpu()[999])
        if got != (3.0, 3.0):
            sys.exit("round %d: %s" % (n, got))
    nccl.CommDestroy(comm)
    dist.destroy_process_group()
    if rank == 0:
        print("two copies agree")


if __name__ == "__main__":
    main()
