"""What hostile programs may do, and what each must leave behind: the program is
run without the recorder and with it, its output, exit status and files are
compared, and its trace is held to what it did."""
import collections
import os
import re
import shutil
import subprocess
import tempfile
import time

import traces
import jobs

PROGRAM = os.path.join(jobs.BUILD, "tests", "hostile_process")
RELOAD = os.path.join(jobs.BUILD, "tests", "hostile_reload")
MODULE = os.path.join(jobs.BUILD, "tests", "libhostile_module.so")

# ops: in all files together; None: as many as it says, some maybe counted as
# lost; ANY: what there is must be whole. closed: files that were closed. says:
# lines of ours on stderr.
ANY = object()
Way = collections.namedtuple("Way", "name item ops files closed says env",
                             defaults=(10, 1, 1, 0, {}))
WAYS = {way.name: way for way in [
    Way("plain", "a program like any other"),
    Way("fork", "fork after communicators exist"),
    Way("clone", "fork after communicators exist, raw clone"),
    Way("fork_deep", "fork: child of a child, fork inside a group"),
    Way("fork_busy", "fork while others are in NCCL", None),
    Way("fork_exec", "fork+exec of a program that uses NCCL", 20, 2, 2),
    Way("vfork", "vfork"),
    Way("shell", "LD_PRELOAD inherited by ls, bash, pipes"),
    Way("exec", "exec", 17, 2),
    Way("daemon", "daemons"),
    Way("daemon_late", "daemons made after the first call"),
    Way("_exit", "_exit", closed=0),
    Way("quick_exit", "_exit, quick_exit", closed=0),
    Way("abort", "abort", closed=0),
    Way("crash", "abort, SIGSEGV", closed=0),
    Way("atexit", "NCCL from an atexit handler"),
    Way("constructor", "NCCL from a constructor and a destructor"),
    Way("backlog", "exit with a full ring", None,
        env={"COMMTRACE_RING_SLOTS": "131072", "COMMTRACE_FLUSH_MS": "5000"}),
    Way("busy_exit", "exit while others call NCCL", ANY),
    Way("thread_exit", "exit from a thread while others call NCCL", ANY),
    Way("first_leaves", "exit of the first thread alone"),
    Way("signals", "signals: handlers run in the program's thread"),
    Way("altstack", "signals on an alternate stack"),
    Way("altstack_first", "signals on an alternate stack, first call there"),
    Way("storm", "signals in the middle of everything", None),
    Way("storm_first", "signals in the middle of the first call"),
    Way("jump", "signals: siglongjmp out of a call"),
    Way("race", "stacks of 16 KiB, 16 threads racing the first call", 48),
    Way("open_bracket", "a thread ends inside a group", 2),
    Way("keys", "no thread-specific data left", 1),
    Way("cancel", "a thread is cancelled"),
    Way("numbers", "descriptors keep their numbers"),
    Way("close_all", "all descriptors closed"),
    Way("no_stdio", "no stdin, stdout, stderr"),
    Way("new_stderr", "stderr closed and its number used", 0, 0, 0),
    Way("nofile", "RLIMIT_NOFILE 8", 0, 0, 0, says=1),
    Way("nofile_late", "RLIMIT_NOFILE 8, later"),
    Way("fsize", "RLIMIT_FSIZE", 0, 0, 0, says=1),
    Way("fsize_late", "RLIMIT_FSIZE, later", closed=0, says=1),
    Way("as", "RLIMIT_AS tight", ANY, None, None, says=99),
    Way("sandbox", "seccomp, no threads", 0, 0, 0, says=1),
    Way("comms", "4,096 communicators created and destroyed", 32768),
    Way("comms_alive", "4,096 communicators, 1,024 at a time", 16384),
    Way("comms_fast", "communicators faster than the writer", ANY,
        env={"COMMTRACE_RING_SLOTS": "64"}),
    Way("million", "a million ops in one group", None),
    Way("local", "NCCL loaded RTLD_LOCAL"),
    Way("lookup", "NCCL's functions by dlsym"),
    Way("reload", "dlclose of libnccl", 30),
    Way("config", "a configuration of rubbish", 1),
    Way("environment", "environment changed before, between and after"),
    Way("start", "environment and folder changed before"),
    Way("no_environ", "environment NULL before"),
    Way("disabled", "environment changed before, recorder off", 0, 0, 0,
        env={"COMMTRACE_DISABLE": "1"}),
    Way("removed", "the trace is removed while it is written", 0, 0, 0, says=1),
]}
REDUCE = 5 # handlers' own, of which some may be missing
# Communicators and launches, where a wrong number was once found.
ROWS = {"open_bracket": (1, 1), "race": (32, 16), "comms": (16384, 0),
        "comms_alive": (16384, 0)}


# Where the program runs: with other libraries preloaded before ours or after
# it, in front of the command what makes the place.
Place = collections.namedtuple("Place", "name before after command",
                               defaults=((), (), ()))
ALONE = Place("")


def run(way, place, preload, env):
    program = RELOAD if way.name == "reload" else PROGRAM
    preload = [*place.before, *preload, *place.after]
    command = list(place.command)
    if preload:
        command += ["env", "LD_PRELOAD=" + ":".join(preload)]
    try:
        done = subprocess.run(command + [program, way.name, MODULE], env=env,
                              text=True, capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        traces.fail("%s: hangs" % way.name)
    ours = [l for l in done.stderr.splitlines() if l.startswith("commtrace: ")]
    theirs = [l for l in done.stderr.splitlines() if l not in ours]
    issued = re.search(r"^issued (\d+)\n", done.stdout, re.M)
    return ((done.returncode, re.sub(r"issued \d+\n", "", done.stdout), theirs),
            ours, int(issued.group(1)) if issued else None)


def compare(way, place, folder):
    """Without and with the recorder; how many ops the latter issued."""
    place_of = os.path.relpath if way.name == "start" else str
    env = {**os.environ, "COMMTRACE_DIR": place_of(folder),
           "COMMTRACE_FLUSH_MS": "50", **way.env}
    bare, _, _ = run(way, place, [], env)
    os.makedirs(folder, exist_ok=True) # unless it has been removed
    traced, ours, issued = run(way, place, [jobs.SHIM],
                               dict(env, HOSTILE_TRACED="1"))
    if bare != traced:
        traces.fail("%s: %s without, %s with; %s" % (way.name, bare, traced,
                                                     ours))
    if len(ours) > way.says or (0 < way.says < 99 and not ours):
        traces.fail("%s: said %s" % (way.name, ours))
    return issued


def whole(way, paths):
    """Nothing is damaged; how many were closed."""
    ended = 0
    for path in paths:
        db = traces.open_db(path)
        if traces.one(db, "PRAGMA integrity_check") != "ok":
            traces.fail("%s: %s is damaged" % (way.name, path))
        ended += traces.one(db, "SELECT end_ns IS NOT NULL FROM process")
    return ended


def check_trace(way, folder, issued):
    paths = traces.databases(folder)
    if way.files is not None and len(paths) != way.files:
        traces.fail("%s: traces %s" % (way.name, paths))
    ended = whole(way, paths)
    if way.closed is not None and ended != way.closed:
        traces.fail("%s: %d traces closed, not %d" % (way.name, ended,
                                                      way.closed))
    found = sum(1 for path in paths for op in traces.all_ops(path)
                if op[0] != REDUCE)
    lost = sum(traces.lost_ops(path) for path in paths)
    if way.ops is not ANY and found + lost != (way.ops if issued is None
                                               else issued):
        traces.fail("%s: %d ops recorded, %d lost, %s issued" %
                    (way.name, found, lost, issued or way.ops))
    if lost and way.ops is not ANY and issued is None:
        traces.fail("%s: %d ops lost" % (way.name, lost))
    if way.name in ROWS:
        db = traces.open_db(paths[0])
        rows = tuple(traces.one(db, "SELECT count(*) FROM " + table)
                     for table in ("comm", "launch"))
        if rows != ROWS[way.name]:
            traces.fail("%s: %d communicators, %d launches" %
                        (way.name, *rows))
    return found, lost


def rescue(way, folder):
    """The next traced process moves what was left on tmpfs."""
    before = traces.all_ops(traces.databases(folder)[0])
    subprocess.run([PROGRAM, "plain"], check=True, capture_output=True,
                   env=dict(os.environ, LD_PRELOAD=jobs.SHIM,
                            COMMTRACE_DIR=folder + "/next"))
    path, = traces.databases(folder)
    # Or a traced process of somebody else on this host is just doing it.
    for _ in range(1000):
        if os.path.exists(path + ".ring"):
            break
        time.sleep(0.01)
    else:
        traces.fail("%s: its ring was not rescued" % way.name)
    if traces.all_ops(path) != before:
        traces.fail("%s: ops are missing after the rescue" % way.name)


def check(name, place=ALONE):
    way = WAYS[name]
    folder = tempfile.mkdtemp(prefix="commtrace-hostile-")
    os.chmod(folder, 0o777)
    issued = compare(way, place, folder)
    found, lost = check_trace(way, folder, issued)
    if way.closed == 0 and way.files:
        rescue(way, folder)
    if traces.rings(folder):
        traces.fail("%s: left %s" % (way.name, traces.rings(folder)))
    shutil.rmtree(folder, ignore_errors=True)
    print("ok  %s%s (%s): %d ops%s" % (
        place.name + ": " if place.name else "", way.item, name, found,
        ", %d lost" % lost if lost else ""), flush=True)
