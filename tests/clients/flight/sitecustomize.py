"""Put in front of a job by PYTHONPATH: at exit each rank writes PyTorch's own
Flight Recorder to $FLIGHT/<rank>.<restart>.<pid>.<backend>."""
import atexit
import os
import pickle
import sys


def dump():
    torch = sys.modules.get("torch")
    if not torch or "FLIGHT" not in os.environ or "RANK" not in os.environ:
        return
    c10d = torch._C._distributed_c10d
    name = "%s.%s.%d" % (os.environ["RANK"],
                         os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"),
                         os.getpid())
    dumps = {"nccl2": lambda: c10d._dump_fr_trace(backend="nccl2",
                                                  includeStackTraces=False),
             "lazy": lambda: c10d._dump_fr_trace(backend="nccl-lazy",
                                                 includeStackTraces=False),
             "legacy": lambda: c10d._dump_nccl_trace(includeStackTraces=False)}
    for backend, take in dumps.items():
        dumped = take()
        if not pickle.loads(dumped).get("entries"):
            continue
        path = os.path.join(os.environ["FLIGHT"], name + "." + backend)
        with open(path, "wb") as f:
            f.write(dumped)


if "LOCAL_RANK" in os.environ:
    atexit.register(dump)
