"""test_witness.py [JOB...]: what the trace of each job holds is, call by call,
what two independent witnesses saw. Without arguments: all jobs."""
import os
import sys

import clients
import compare
import jobs

BACKENDS = ("nccl", "nccl-legacy", "nccl-lazy")
NONBLOCKING = {"TORCH_NCCL_USE_COMM_NONBLOCKING": "1"}
EXPANDABLE = {"PYTORCH_ALLOC_CONF": "expandable_segments:True",
              "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}

# name: (script, arguments, ranks of a node, nodes, environment)
JOBS = {
    "ddp": ("ddp.py", ["--verify"], 2, 1, {}),
    "fsdp": ("fsdp.py", ["--verify"], 2, 1, {}),
    "hsdp": ("fsdp.py", ["--verify", "--replicas", 2], 4, 1, {}),
    "tensor_parallel": ("tensor_parallel.py", ["--verify"], 2, 1, {}),
    "pipeline": ("pipeline.py", ["--verify"], 2, 1, {}),
    "pipeline4": ("pipeline.py", ["--verify", "--micro-batches", 8], 4, 1, {}),
    "parallel3d": ("parallel3d.py", ["--verify"], 4, 2, {}),
    "pipeline-lazy": ("pipeline.py", ["--verify", "--backend", "nccl-lazy"], 4,
                      1, {}),
    "ddp-nonblocking": ("ddp.py", ["--verify"], 2, 1, NONBLOCKING),
    "fsdp-nonblocking": ("fsdp.py", ["--verify", "--backend", "nccl-legacy"], 2,
                         1, NONBLOCKING),
    "fsdp-expandable": ("fsdp.py", ["--verify"], 2, 1, EXPANDABLE),
    **{"everything-" + b: ("everything.py", [b], 2, 1, {}) for b in BACKENDS},
    "everything-4": ("everything.py", ["nccl"], 4, 1, EXPANDABLE),
}


def run(name):
    script, argv, ranks, nodes, env = JOBS[name]
    with jobs.Scratch() as tmp:
        watch = clients.Watch(tmp)
        done = clients.torchrun(script, argv, ranks, nodes, watch, env)
        if "--verify" in argv and "process on the CPU" not in done.stdout:
            jobs.fail("%s compared nothing: %s" % (name, done.stdout))
        # Agents, shells and data loaders have left nothing behind.
        files = os.listdir(watch.trace)
        if len(files) != ranks * nodes:
            jobs.fail("%s left %s" % (name, files))
        return compare.all_accounts(name, watch)


def main():
    clients.need_venv()
    names = sys.argv[1:] or list(JOBS)
    total = sum(run(name) for name in names)
    print("%d ops in %d jobs, all equal" % (total, len(names)))


if __name__ == "__main__":
    main()
