"""What the checks share: where things are, how jobs run, how checks end."""
import json
import os
import re
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Read before any of these is imported: they look for the build there, too.
BUILD = os.environ["BUILD"]
sys.path[:0] = [os.path.join(ROOT, "tests", "clients"),
                os.path.join(ROOT, "tests", "e2e")]

WORK = os.environ["WORK"]
SHIM = os.path.join(BUILD, "libcommtrace.so")
COMMTRACE = os.path.join(BUILD, "commtrace")
OP_COST, WITNESS = os.environ["OP_COST"], os.environ["WITNESS_LIBRARY"]
ON_FABRIC = os.environ.get("COMMTRACE_GPU_TEST_ON_FABRIC") == "1"
NO_GPU = "no GPU here but the fabric"


class Fail(Exception):
    pass


class Skip(Exception):
    pass


def need_gpu(why=NO_GPU):
    if ON_FABRIC:
        raise Skip(why)


def figures_only(text):
    """Ends a check of times, which mean nothing where there is no GPU."""
    if ON_FABRIC:
        raise Skip("%s, its times prove nothing: %s" % (NO_GPU, text))
    return text


def folder(*names):
    path = os.path.join(WORK, *names)
    os.makedirs(path, exist_ok=True)
    return path


def environment(trace=None, **more):
    """Of a job, traced into folder trace unless that is None."""
    e = {name: value for name, value in os.environ.items()
         if name != "LD_PRELOAD" and not re.match("COMMTRACE_", name)}
    e.update(OMP_NUM_THREADS="1", CUBLAS_WORKSPACE_CONFIG=":4096:8",
             TORCH_FR_BUFFER_SIZE="100000",
             TORCH_NCCL_TRACE_BUFFER_SIZE="100000")
    e.update(more)
    if trace:
        e.update(LD_PRELOAD=SHIM, COMMTRACE_DIR=trace)
    if "WITNESS" in more:
        e.update(LD_PRELOAD=WITNESS + " " + e["LD_PRELOAD"])
    return e


class Job:
    """A command that runs; what it prints is kept in files of a folder."""

    def __init__(self, where, argv, env):
        self.argv, self.paths = argv, [os.path.join(where, name)
                                       for name in ("stdout", "stderr")]
        with open(self.paths[0], "w") as out, open(self.paths[1], "w") as err:
            self.process = subprocess.Popen(argv, env=env, stdout=out,
                                            stderr=err,
                                            stdin=subprocess.DEVNULL)

    def end(self):
        """What it printed. The check has a time limit, so this has none."""
        status = self.process.wait()
        self.stdout, self.stderr = (open(p).read() for p in self.paths)
        wrong = re.search(r".*(CUDA|NCCL) error.*", self.stderr)
        if status or wrong:
            raise Fail("%s: exit %d: %s" % (
                " ".join(self.argv[-2:]), status,
                wrong.group(0) if wrong else first_reason(self.stderr)))
        return self


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing said"


def first_reason(text):
    """The end of the first traceback, or the first words of all."""
    end = re.search(r"^Traceback.*\n(?:\s.*\n)*(\S.*)", strip_ranks(text), re.M)
    return end.group(1) if end else " ".join(text.split())[:300]


def strip_ranks(text):
    """PyTorch may put [rank0]: before what a rank prints."""
    return re.sub(r"^\[rank\d+\]: ?", "", text, flags=re.M)


def torchrun(where, ranks, script, *argv, trace=None, **more):
    """Starts a script of jobs/ on ranks ranks of this machine."""
    path = os.path.join(HERE, "jobs", script)
    return Job(where,
               [sys.executable, "-B", "-m", "torch.distributed.run",
                "--standalone", "--nproc-per-node", str(ranks), path, *argv],
               environment(trace, MARKS=os.path.join(where, "marks"), **more))


def output(*argv, env=None):
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    if done.returncode:
        raise Fail("%s: exit %d: %s" % (os.path.basename(argv[0]),
                                        done.returncode,
                                        last_line(done.stderr + done.stdout)))
    return done.stdout


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


PROBE = """
import json, torch
torch.zeros(1, device="cuda")
files = {line.split()[-1] for line in open("/proc/self/maps")}
version = torch.cuda.nccl.version()
print(json.dumps({
    "torch": torch.__version__, "cuda": torch.version.cuda,
    "gpu": torch.cuda.get_device_name(0), "devices": torch.cuda.device_count(),
    "nccl": ".".join(map(str, version)), "nccl_version": list(version),
    "libnccl": next(f for f in files if "/libnccl.so" in f),
    "libcuda": next(f for f in files if "/libcuda.so" in f)}))
"""


def facts():
    """What PyTorch says of this machine; asked once."""
    path = os.path.join(WORK, "facts.json")
    if not os.path.exists(path):
        found = output(sys.executable, "-c", PROBE, env=environment())
        with open(path, "w") as f:
            f.write(last_line(found))
    with open(path) as f:
        return json.load(f)
