"""company.py: other libraries that are preloaded too, before ours and after it: a
tool that wraps calls of NCCL and dlsym, and allocators."""
import glob
import os
import shutil
import subprocess
import tempfile

import traces # finds jobs
import jobs
import ways

TOOL = os.path.join(jobs.BUILD, "tests", "libhostile_tool.so")
NAMES = ["plain", "fork", "race", "atexit", "constructor", "thread_exit",
         "altstack_first", "storm_first", "cancel", "local", "lookup",
         "reload", "environment", "open_bracket", "fork_exec", "shell"]
# What the tool counts depends on time there.
NOT_WITH_TOOL = ["thread_exit", "storm_first"]


def installed(pattern):
    found = sorted(glob.glob("/usr/lib/*/" + pattern))
    return found[0] if found else None


def twice():
    """Ours itself, in two copies: one of them records, the other says why not."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(jobs.SHIM, os.path.join(folder, "copy.so"))
        for preload in (copy, jobs.SHIM), (jobs.SHIM, copy):
            trace = os.path.join(folder, os.path.basename(preload[0]) + ".d")
            done = subprocess.run(
                [ways.PROGRAM, "plain"], text=True, capture_output=True,
                env=dict(os.environ, LD_PRELOAD=":".join(preload),
                         COMMTRACE_DIR=trace), timeout=60)
            path, = traces.databases(trace)
            ops = len(traces.all_ops(path))
            if (done.returncode, done.stdout, ops) != (0, "done\n", 10) or \
                    len(done.stderr.splitlines()) != 1:
                traces.fail("two copies: %d ops, %s" % (ops, done))
    print("ok  two preloaded tools, both of them ours: 10 ops")


def main():
    twice()
    others = [("two preloaded tools", TOOL, NOT_WITH_TOOL),
              ("jemalloc preloaded too", installed("libjemalloc.so.2"), []),
              ("tcmalloc preloaded too",
               installed("libtcmalloc_minimal.so.4"), [])]
    for name, library, without in others:
        if not library:
            print("skipped: %s: it is not installed" % name)
            continue
        for place in (ways.Place(name + ", it first", before=[library]),
                      ways.Place(name + ", ours first", after=[library])):
            for way in NAMES:
                if way not in without:
                    ways.check(way, place)


if __name__ == "__main__":
    main()
