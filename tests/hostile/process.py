"""process.py PROGRAM LIBRARY MODULE RELOAD: processes that fork, exec, abort,
race, end in the middle. With and without the recorder they behave alike, and
their trace holds what they did."""
import os
import shutil
import subprocess
import sys
import tempfile

import traces

PROGRAM, LIBRARY, MODULE, RELOAD = sys.argv[1:]

# way: (files, ops in all of them, closed files)
WAYS = {
    "plain": (1, 10, 1),
    "fork": (1, 10, 1),
    "clone": (1, 10, 1),
    "vfork": (1, 10, 1),
    "exec": (2, 17, 1),
    "_exit": (1, 10, 0),
    "abort": (1, 10, 0),
    "atexit": (1, 10, 1),
    "race": (1, 16, 1),
    "local": (1, 10, 1),
    "signals": (1, 10, 1),
    "busy_exit": (1, None, 1),
    "numbers": (1, 10, 1),
    "close_all": (1, 10, 1),
    "no_stdio": (1, 10, 1),
    "open_bracket": (1, 2, 1),
    "keys": (1, 1, 1),
    "cancel": (1, 10, 1),
    "config": (1, 1, 1),
    "reload": (1, 30, 1),
}
# Communicators and launches, where a wrong number was once found.
ROWS = {"open_bracket": (1, 1)}


def run(way, env):
    program = RELOAD if way == "reload" else PROGRAM
    done = subprocess.run([program, way, MODULE], env=env, capture_output=True,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


def check(way, folder):
    files, ops, closed = WAYS[way]
    env = dict(os.environ)
    bare = run(way, env)
    env.update(LD_PRELOAD=LIBRARY, COMMTRACE_DIR=folder,
               COMMTRACE_FLUSH_MS="50")
    traced = run(way, env)
    if bare != traced:
        traces.fail("%s: %s without, %s with" % (way, bare, traced))
    paths = traces.databases(folder)
    if len(paths) != files:
        traces.fail("%s: traces %s" % (way, paths))
    found = sum(len(traces.all_ops(path)) for path in paths)
    if ops is not None and found != ops:
        traces.fail("%s: %d ops, not %d" % (way, found, ops))
    ended = 0
    if way in ROWS:
        db = traces.open_db(paths[0])
        rows = tuple(traces.one(db, "SELECT count(*) FROM " + table)
                     for table in ("comm", "launch"))
        if rows != ROWS[way]:
            traces.fail("%s: %d communicators, %d launches" % (way, *rows))
    for path in paths:
        db = traces.open_db(path)
        ended += traces.one(db, "SELECT end_ns IS NOT NULL FROM process")
        if traces.one(db, "PRAGMA integrity_check") != "ok":
            traces.fail("%s: %s is damaged" % (way, path))
    if ended != closed:
        traces.fail("%s: %d traces closed, not %d" % (way, ended, closed))


def main():
    for way in WAYS:
        folder = tempfile.mkdtemp(prefix="commtrace-hostile-")
        check(way, folder)
        if way in ("_exit", "abort"):
            # The next traced process moves what they left.
            subprocess.run([PROGRAM, "plain"], check=True, capture_output=True,
                           env=dict(os.environ, LD_PRELOAD=LIBRARY,
                                    COMMTRACE_DIR=folder + "/next"))
            if not os.path.exists(traces.databases(folder)[0] + ".ring"):
                traces.fail("%s: its ring was not rescued" % way)
            if len(traces.all_ops(traces.databases(folder)[0])) != 10:
                traces.fail("%s: ops are missing after the rescue" % way)
        if traces.rings(folder):
            traces.fail("%s: left %s" % (way, traces.rings(folder)))
        shutil.rmtree(folder)
    print("%d ways" % len(WAYS))


if __name__ == "__main__":
    main()
