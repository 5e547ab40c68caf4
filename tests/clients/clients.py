"""What the tests of real clients share: running PyTorch jobs under torchrun,
with the recorder and witnesses in front or without."""
import glob
import os
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import jobs  # noqa: E402

ROOT = jobs.ROOT
VENV = os.environ.get("VENV", os.path.join(jobs.BUILD, "torch-venv"))
WITNESS = os.path.join(jobs.BUILD, "tests", "libwitness.so")
SAMPLES = os.path.join(ROOT, "samples", "torch")
JOBS = os.path.join(HERE, "jobs")
SKIP = 77


def need_venv():
    """Tests run in what samples/torch/venv.sh made."""
    if not os.path.exists(os.path.join(VENV, "bin", "torchrun")):
        print("SKIPPED: no %s; samples/torch/venv.sh makes it" % VENV)
        sys.exit(SKIP)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Watch:
    """Where a job's trace and its witnesses' accounts go; all in one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.trace, self.witness, self.flight = (
            os.path.join(folder, name) for name in ("trace", "witness",
                                                    "flight"))
        for name in (self.witness, self.flight):
            os.makedirs(name)

    def environment(self):
        return {"COMMTRACE_DIR": self.trace, "WITNESS": self.witness,
                "FLIGHT": self.flight,
                "PYTHONPATH": os.path.join(HERE, "flight"),
                "LD_PRELOAD": WITNESS + " " + jobs.SHIM}


def environment(nodes, extra):
    machine = "two_hosts" if nodes > 1 else "one_host"
    e = dict(os.environ, OMP_NUM_THREADS="1", FABRIC_CPUOPS="1",
             FABRIC=os.path.join(jobs.MACHINES, machine + ".fabric"),
             TORCH_FR_BUFFER_SIZE="100000")
    for name in ("LD_PRELOAD", "COMMTRACE_DIR"):
        e.pop(name, None)
    e.update(extra or {})
    return e


def command(script, argv, ranks, options):
    return [os.path.join(VENV, "bin", "python3"), "-m", "torch.distributed.run",
            "--nproc-per-node", str(ranks), *options, script,
            *[str(a) for a in argv]]


class Done:
    def __init__(self, returncode, stdout, stderr):
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


def descendants(pid):
    """The process and all that it started, directly or not."""
    found = [pid]
    for parent in found:
        for tasks in glob.glob("/proc/%d/task/*/children" % parent):
            with open(tasks) as f:
                found += [int(child) for child in f.read().split()]
    return found


def end_all(agents):
    """Of an agent that is still there, each process; its workers are no
    longer of its process group."""
    for agent in agents:
        if agent.poll() is not None:
            continue
        for pid in descendants(agent.pid)[::-1]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def torchrun(script, argv=(), ranks=2, nodes=1, watch=None, env=None,
             options=(), check=True, timeout=150, wrap=None):
    """Runs a script of samples/torch or of jobs/ on ranks ranks of each of
    nodes agents. wrap(node) gives words to put before an agent's command."""
    path = os.path.join(SAMPLES, script)
    if not os.path.exists(path):
        path = os.path.join(JOBS, script)
    e = environment(nodes, env)
    if watch:
        e.update(watch.environment())
    options = list(options)
    if nodes == 1:
        options += ["--standalone"]
    else:
        options += ["--nnodes", str(nodes), "--master-addr", "127.0.0.1",
                    "--master-port", str(free_port())]
    agents = []
    try:
        for node in range(nodes):
            mine, where = dict(e), []
            if nodes > 1:
                mine["NCCL_HOSTID"] = "host%d" % node
                where = ["--node-rank", str(node)]
            agents.append(subprocess.Popen(
                (wrap(node) if wrap else []) +
                command(path, argv, ranks, options + where), env=mine,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                start_new_session=True))
        outputs = [a.communicate(timeout=timeout) for a in agents]
    finally:
        end_all(agents)
    done = Done(max((abs(a.returncode) for a in agents)),
                "".join(o for o, _ in outputs), "".join(o for _, o in outputs))
    if check and done.returncode != 0:
        sys.exit("%s %s: exit %d\n%s%s" % (script, argv, done.returncode,
                                           done.stdout, done.stderr))
    return done


def trace_files(watch):
    return sorted(glob.glob(os.path.join(watch.trace, "*.db")))


def main(*tests):
    """Runs those that the command line names, else all, each in a folder."""
    need_venv()
    names = {test.__name__: test for test in tests}
    for name in sys.argv[1:] or names:
        with jobs.Scratch() as tmp:
            names[name](tmp)
