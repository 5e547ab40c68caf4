"""test_real_nccl.py PROGRAM PROBE: NVIDIA's own library, without a GPU: what it
returns and says on the host is the same with and without the recorder, and
the trace knows the library. Skipped where there is no such library."""
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import jobs  # noqa: E402

PROGRAM, PROBE = sys.argv[1:]
PLACES = ["$NCCL_HOME/lib*", "$CUDA_HOME/lib*", "/usr/local/cuda*/lib*",
          "/usr/lib/*-linux-gnu", "/usr/lib64"]


HAS_GPU = bool(glob.glob("/dev/nvidia[0-9]*"))


def libraries():
    """Folders of the toolkit's libnccl and of the PyPI wheel's."""
    places = [os.path.expandvars(p) for p in PLACES if "$" not in
              os.path.expandvars(p)]
    places += [os.path.join(p, "nvidia", "nccl", "lib") for p in sys.path if p]
    found = {}
    for place in places:
        for path in glob.glob(os.path.join(place, "libnccl.so.2")):
            if os.path.getsize(path) > 10 << 20:  # no stand-in
                found.setdefault(os.path.realpath(path),
                                 os.path.dirname(path))
    return sorted(found.values())


def steady(text):
    """NCCL's log without what differs between two runs."""
    text = re.sub(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ", "", text, flags=re.M)
    return re.sub(r":\d+:\d+ ", ":PID:TID ", text)


def run(command, library, debug, trace=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("NCCL_")}
    env.update(LD_LIBRARY_PATH=library, NCCL_SOCKET_IFNAME="lo")
    if debug:
        env["NCCL_DEBUG"] = debug
    if trace:
        env.update(LD_PRELOAD=jobs.SHIM, COMMTRACE_DIR=trace)
    done = subprocess.run(command, env=env, capture_output=True,
                          text=True, timeout=120)
    return done.returncode, steady(done.stdout), steady(done.stderr)


def check_trace(what, trace, out):
    db, = jobs.traces(trace).values()
    version = int(re.search(r"^version (?:0 )?(\d+)$", out, re.M)[1])
    if db.execute("SELECT version FROM library").fetchall() != [(version,)]:
        jobs.fail("%s: another library than %d" % (what, version))
    if HAS_GPU:
        return
    # No communicator came to be, and calls on none are no communication.
    for table in ("comm", "op", "loss"):
        rows = db.execute("SELECT * FROM %s" % table).fetchall()
        if rows:
            jobs.fail("%s: %s %s" % (what, table, rows))


def check(library, command, debug):
    what = "%s, %s, NCCL_DEBUG=%s" % (library, command, debug)
    bare = run(command, library, debug)
    with jobs.Scratch() as trace:
        traced = run(command, library, debug, trace)
        if bare[0] != 0 or bare != traced:
            jobs.fail("%s:\n%s\n%s" % (what, bare, traced))
        check_trace(what, trace, traced[1])


def main():
    found = libraries()
    if not found:
        print("skipped: no libnccl.so.2 of NVIDIA's here")
        sys.exit(77)
    for library in found:
        for debug in (None, "WARN"):
            check(library, [PROGRAM, "linked"], debug)
            check(library, [PROGRAM, "handle"], debug)
        if not HAS_GPU: # it would be given host memory
            check(library, [PROBE], None)
    print(", ".join(found))


if __name__ == "__main__":
    main()
