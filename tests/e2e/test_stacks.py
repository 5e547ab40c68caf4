"""Call sites: the frames of each stack by name, file and line, against programs
whose source says where they call NCCL from."""
import glob
import json
import os
import re
import shutil
import sqlite3
import subprocess

import jobs

PROGRAMS = os.path.join(jobs.BUILD, "tests", "stacks")
SOURCES = os.path.join(jobs.ROOT, "tests", "stacks")
LIBRARY = "libunwind-%s.so.8" % os.uname().machine


def line_of(mark):
    """The line of callers.c that a comment marks."""
    with open(os.path.join(SOURCES, "callers.c")) as f:
        lines, = [[n for n, text in enumerate(f, 1) if "/*%s*/" % mark in text]]
    assert len(lines) == 1, mark
    return lines[0]


def run(folder, program, *argv, env=None, check=True):
    """Runs a program, traced and not, which must make no difference."""
    command = [os.path.join(PROGRAMS, program) if "/" not in program
               else program, *argv]
    bare = subprocess.run(command, capture_output=True, timeout=60)
    traced = subprocess.run(command, capture_output=True, timeout=60, env=dict(
        os.environ, LD_PRELOAD=jobs.SHIM, COMMTRACE_DIR=folder, **(env or {})))
    if (bare.returncode, bare.stdout, bare.stderr) != (
            traced.returncode, traced.stdout, traced.stderr):
        jobs.fail("%s: %s without, %s with" % (command, bare, traced))
    if check and bare.returncode:
        jobs.fail("%s: %s" % (command, bare))
    return traced.stdout


def open_db(folder):
    path, = glob.glob(os.path.join(folder, "*.db"))
    return sqlite3.connect(path)


def rows(folder, sql):
    return open_db(folder).execute(sql).fetchall()


def stacks(folder, *options):
    job, = json.loads(jobs.commtrace("stacks", "--json", *options,
                                     folder))["jobs"]
    return job["stacks"]


def names(stack):
    return [f["function"] for f in stack["frames"]]


def equal(what, found, wanted):
    if found != wanted:
        jobs.fail("%s: %s, not %s" % (what, found, wanted))


CHAIN = ["f2", "f1", "run_chain", "main"]


def is_chain(frames, file=True):
    equal("functions", [f["function"] for f in frames][:4], CHAIN)
    for frame, mark in zip(frames, ("f2", "f1", "chain", "main")):
        equal("line of " + mark, frame["line"],
              line_of(mark) if file else None)
        if file and not frame["file"].endswith("tests/stacks/callers.c"):
            jobs.fail("file %s" % frame["file"])


def lines(tmp):
    run(tmp, "callers", "chain")
    stack, = stacks(tmp)
    is_chain([f for f in stack["frames"] if not f["inlined"]
              or f["function"] in CHAIN])
    equal("calls", (stack["ops"], stack["calls"], stack["ranks"]),
          ("all_reduce", 5, "0"))
    if "f1  " not in jobs.commtrace("stacks", tmp):
        jobs.fail("text without f1")
    if rows(tmp, "SELECT count(*) FROM loss") != [(0,)]:
        jobs.fail("losses")
    where, = rows(tmp, "SELECT value FROM meta WHERE key = 'stacks'")
    if LIBRARY not in where[0]:
        jobs.fail("meta says %s" % where)


def modes(tmp):
    off, every, first = (os.path.join(tmp, m) for m in ("off", "all", "first"))
    run(off, "callers", "twice", env={"COMMTRACE_STACKS": "off"})
    equal("off", rows(off, "SELECT (SELECT count(*) FROM stack),"
                           " (SELECT count(*) FROM frame), (SELECT value FROM"
                           " meta WHERE key = 'stacks')"), [(0, 0, "off")])
    run(every, "callers", "twice", env={"COMMTRACE_STACKS": "all"})
    equal("all", sorted((s["calls"], names(s)[:3]) for s in stacks(every)),
          [(1, ["f2", "either", "run_twice"]), (2, ["f2", "f1", "either"])])
    run(first, "callers", "twice", env={"COMMTRACE_STACKS": "first"})
    equal("first", [(s["calls"], names(s)[:3]) for s in stacks(first)],
          [(3, ["f2", "f1", "either"])])


def limit(tmp):
    run(tmp, "callers", "many")
    equal("classes with a stack per communicator",
          rows(tmp, "SELECT comm, count(*), count(stack) FROM op_class GROUP BY"
                    " comm"), [(1, 100, 64), (2, 1, 1)])
    equal("stacks", rows(tmp, "SELECT count(*) FROM stack"), [(2,)])
    equal("calls without", rows(tmp, "SELECT cause, what, n FROM loss"),
          [("stack_limit", "stack", 72)])


def race(tmp):
    run(tmp, "callers", "race")
    equal("of 16 threads", [(s["calls"], names(s)[:3]) for s in stacks(tmp)],
          [(16, ["f2", "f1", "race"])])


def small(tmp):
    """16 KiB of stack are enough, if not much of it is used already."""
    run(tmp, "callers", "small")
    by_count = dict(rows(tmp, "SELECT count, max(stack IS NOT NULL) FROM"
                              " op_class GROUP BY 1"))
    equal("counts", by_count, {5: 1, 6: 1})
    equal("losses", rows(tmp, "SELECT cause, n FROM loss"), [("stack_room", 1)])


def elsewhere(tmp):
    run(tmp, "callers", "elsewhere")
    equal("stacks of others", rows(tmp, "SELECT count(*) FROM stack"), [(0,)])
    equal("losses", rows(tmp, "SELECT cause, n FROM loss"), [("stack_room", 2)])


def modules(tmp):
    """Both are named, although they were gone when the writer came, and lay in
    one place."""
    files = [os.path.join(PROGRAMS, n + ".so") for n in ("first", "second")]
    run(tmp, "callers", "modules", *files)
    found = {s["frames"][2]["function"]: s for s in stacks(tmp)}
    for name, file in zip(("first", "second"), files):
        frames = found[name]["frames"]
        equal("modules", [f["function"] for f in frames[:4]],
              ["f2", "f1", name, "enter"])
        equal("path", [f["module"] for f in frames[2:4]], [file, file])


def made(tmp):
    if os.uname().machine != "x86_64":
        return
    run(tmp, "callers", "made")
    stack, = stacks(tmp)
    functions = names(stack)
    equal("around it", functions[:2] + functions[3:5],
          ["f2", "f1", "run_made", "main"])
    equal("of code made at run time", [stack["frames"][2][k] for k in
                                       ("function", "module")], [None, None])


def stripped(tmp):
    """Names and lines of a stripped program come from its debug file: beside
    it, or by its build id."""
    program, debug = (os.path.join(tmp, n) for n in ("program", "program.debug"))
    trace = os.path.join(tmp, "trace")
    whole = os.path.join(PROGRAMS, "callers")
    subprocess.run(["objcopy", "--only-keep-debug", whole, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", "--add-gnu-debuglink=" + debug,
                    whole, program], check=True)
    run(trace, program, "chain")
    is_chain(stacks(trace)[0]["frames"])
    build_id = stacks(trace)[0]["frames"][0]["build_id"]
    folder = os.path.join(tmp, "debug", ".build-id", build_id[:2])
    os.makedirs(folder)
    os.rename(debug, os.path.join(folder, build_id[2:] + ".debug"))
    bare = stacks(trace)[0]["frames"]
    equal("without it", ([f["line"] for f in bare[:4]], bare[0]["unknown"]),
          ([None] * 4, None))
    is_chain(stacks(trace, "--debug-dir", os.path.join(tmp, "debug"))[0]
             ["frames"])
    # A debug file of another program will not do.
    shutil.copy(os.path.join(PROGRAMS, "thrower"), debug)
    equal("a foreign one", names(stacks(trace)[0])[0], bare[0]["function"])
    changed(program, trace)


def changed(program, trace):
    """Files that are gone, not ELF, cut off, or not the ones that ran."""
    with open(program, "rb") as f:
        data = f.read()
    ends = (0, 3, 20, 64, 1000, len(data) // 2, len(data) - 40)
    for content in [b"#!/bin/sh\n", b"\x7fELF"] + [data[:n] for n in ends]:
        with open(program, "wb") as f:
            f.write(content)
        frame = stacks(trace)[0]["frames"][0]
        if frame["line"] is not None or not frame["offset"]:
            jobs.fail("named by a damaged file: %s" % frame)
    os.remove(program)
    equal("gone", stacks(trace)[0]["frames"][0]["unknown"],
          "cannot be read here")
    shutil.copy(os.path.join(PROGRAMS, "thrower"), program)
    frame = stacks(trace)[0]["frames"][0]
    equal("another", (frame["function"], frame["unknown"]),
          (None, "changed since"))
    if "changed since" not in jobs.commtrace("stacks", trace):
        jobs.fail("text does not say that a module has changed")


def exceptions(tmp):
    """Thrown through the program's frames, and through the recorder's own."""
    run(tmp, "thrower")
    equal("ops", rows(tmp, "SELECT count(*) FROM op"), [(6,)])
    stack, = [s for s in stacks(tmp) if "job::" in (names(s)[0] or "")]
    if not re.match(r"job::Layer<int>::reduce\(int, std::.*string.* const&\)$",
                    names(stack)[0]):
        jobs.fail("demangled: %s" % names(stack)[0])
    equal("callers", [re.sub(r"\(.*", "", n) for n in names(stack)[1:3]],
          ["step", "main"])


def without(tmp):
    """libunwind that is not there, or is another: a fact, and no stack."""
    broken = os.path.join(tmp, "broken")
    os.makedirs(broken)
    for name, source, why in (("absent", None, "cannot be opened"),
                              ("old", "int other;", "lacks a function")):
        path = os.path.join(broken, LIBRARY)
        if source:
            subprocess.run(["cc", "-shared", "-x", "c", "-", "-o", path],
                           input=source.encode(), check=True)
        else:
            with open(path, "w") as f:
                f.write("not a library")
        trace = os.path.join(tmp, name)
        run(trace, "callers", "chain", env={"LD_LIBRARY_PATH": broken})
        equal(name, rows(trace, "SELECT value FROM meta WHERE key = 'stacks'"),
              [("none: %s %s" % (LIBRARY, why),)])
        equal(name, rows(trace, "SELECT (SELECT count(*) FROM op), count(*)"
                                " FROM stack"), [(5, 0)])
        equal(name, stacks(trace), [])


def scope(tmp):
    """Nothing of libunwind is seen by the program, in which nothing has it."""
    shown = run(tmp, "callers", "scope").decode()
    equal("stacks", len(stacks(tmp)), 1)
    for name in ("_Unwind_Backtrace", "unw_backtrace", "_Ux86_64_step",
                 "lzma_code"):
        if name + ": not there" not in shown:
            jobs.fail("%s is there already: nothing is tested" % name)


def forks(tmp):
    """No child inherits a lock of the loader that one of our walks held."""
    run(tmp, "callers", "forks", env={"COMMTRACE_STACKS": "all"})


def merged(tmp):
    """job.db has them, for SQL."""
    trace, db = os.path.join(tmp, "trace"), os.path.join(tmp, "job.db")
    run(trace, "callers", "chain")
    jobs.commtrace("merge", "--db", db, trace)
    found = sqlite3.connect(db).execute(
        "SELECT count(*), min(f.offset) > 0, max(m.path LIKE '%/callers')"
        " FROM v_op o JOIN frame f ON f.process = o.process AND"
        " f.stack = o.stack JOIN module m ON m.process = f.process AND"
        " m.id = f.module WHERE f.depth < 4").fetchall()
    equal("frames of 5 ops", found, [(20, 1, 1)])


def main():
    with jobs.Scratch() as tmp:
        for check in (lines, modes, limit, race, small, elsewhere, modules,
                      made, stripped, exceptions, scope, forks, without, merged):
            folder = os.path.join(tmp, check.__name__)
            os.makedirs(folder)
            check(folder)
    print("stacks: 14 checks")


if __name__ == "__main__":
    main()
