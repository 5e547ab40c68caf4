"""company.py: other libraries that are preloaded too, before ours and after it: a
tool that wraps calls of NCCL and dlsym, and allocators."""
import glob
import os

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


def main():
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
