"""How the jobs start, and what they leave: moments at which the GPU was done,
and exact digests of their results."""
import argparse
import hashlib
import os
import sys
import time

import torch
import torch.distributed as dist

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.join(os.path.dirname(HERE), "..", "..", "samples", "torch")
sys.path.insert(0, SAMPLES)
import gpt  # noqa: E402

# Compute in a captured graph is not replayed by the stand-ins.
REAL_GPU = "FABRIC" not in os.environ
MARKS = []


def start():
    """All ranks of a job may share one GPU."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) %
                          torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return device


def exactly():
    """The same numbers in every run."""
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)


def shape(**sizes):
    """Of a model of samples/torch/gpt.py."""
    return argparse.Namespace(
        **{"layers": 4, "width": 64, "heads": 4, "length": 32, "batch": 16,
           "lr": 3e-3, "seed": 1, **sizes})


def mark():
    """All that was asked of the GPU before is done now."""
    torch.cuda.synchronize()
    MARKS.append(time.monotonic_ns())


def digest(tensors):
    h = hashlib.sha256()
    for t in tensors:
        t = t.to_local() if hasattr(t, "to_local") else t
        h.update(t.detach().cpu().contiguous().numpy().tobytes())
    return h.hexdigest()


def finish():
    mark()
    dist.destroy_process_group()
    with open(os.environ["MARKS"], "w") as f:
        f.write("\n".join(map(str, MARKS)))
