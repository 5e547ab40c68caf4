"""test_probe.py PROGRAM LINKED MODULE OLDEST: programs that ask dlsym for everything
hear the same with and without the recorder, from every release of NCCL, and
what they call by what they got is recorded."""
import os
import re
import subprocess
import sys

import jobs

PROGRAM, LINKED, MODULE, OLDEST = sys.argv[1:]
RELEASES = re.findall(r"^RELEASE\(([\d.]+), (\d+)\)", open(os.path.join(
    jobs.ROOT, "tests", "fabric", "nccl", "releases.def")).read(), re.M)
CLIENTS = {"dlopened": [PROGRAM], "linked": [LINKED],
           "module": [PROGRAM, "module", MODULE]}


def folder_of(release):
    return os.path.join(jobs.BUILD, "fabric", "nccl-" + release)


def run(command, release, env=None):
    fabric = os.path.join(jobs.BUILD, "fabric")
    e = dict(os.environ, FABRIC=os.path.join(jobs.MACHINES, "fast.fabric"),
             LD_LIBRARY_PATH=folder_of(release) + ":" + fabric, **(env or {}))
    done = subprocess.run(command, env=e, capture_output=True, text=True,
                          timeout=120)
    return done.returncode, done.stdout, done.stderr


def exports(release):
    out = subprocess.run(
        ["nm", "-D", "--defined-only", folder_of(release) + "/libnccl.so.2"],
        capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^\S+ [TW] (\S+)$", out, re.M))


def first_difference(bare, traced):
    for b, t in zip(bare.splitlines(), traced.splitlines()):
        if b != t:
            return "%r without, %r with" % (b, t)
    return "%d lines without, %d with" % (bare.count("\n"), traced.count("\n"))


def check_answers(what, release, out):
    """The fabric's release itself: a handle finds what nm finds."""
    names = exports(release)
    asked = re.findall(r"^local handle (\S+) (found|NULL)", out, re.M)
    if len(asked) < 100:
        jobs.fail("%s: %d questions" % (what, len(asked)))
    for name, answer in asked:
        if name.lstrip("p").startswith("nccl") and \
                (answer == "found") != (name in names):
            jobs.fail("%s: %s is %s" % (what, name, answer))


OPS = ("bcast", "all_reduce", "send", "recv", "alltoall")
# A library that comes after the recorder and asks for the next one is a tool
# with its own hooks, and means the real function.
UNSEEN = ("module", "next")


def called(out):
    """The ops that the program said it called, and the communicators."""
    ops, inits, way = [], 0, None
    for line in out.splitlines():
        words = line.split(" ")
        if words[0] in ("before", "local", "global", "module"):
            way = tuple(words[:2])
        elif way != UNSEEN and words[0] in OPS:
            ops.append(words[0])
        elif way != UNSEEN and words[0] == "init":
            inits += 1
    return ops, inits


def check_trace(what, code, trace, out):
    ops, inits = called(out)
    dbs = list(jobs.traces(trace).values())
    if not ops or len(dbs) != 1:
        jobs.fail("%s: %d ops, %d traces" % (what, len(ops), len(dbs)))
    found = [row[0] for row in dbs[0].execute(
        "SELECT k.name FROM op o JOIN op_class c ON c.id = o.class "
        "JOIN op_kind k ON k.id = c.kind ORDER BY o.id")]
    if found != ops:
        jobs.fail("%s: recorded %s, called %s" % (what, found, ops))
    comms, = dbs[0].execute("SELECT count(*) FROM comm WHERE origin = 'init' "
                            "AND end_ns IS NOT NULL").fetchone()
    if comms != inits:
        jobs.fail("%s: %d communicators, not %d" % (what, comms, inits))
    libraries = dbs[0].execute("SELECT path, version FROM library").fetchall()
    if [v for _, v in libraries] != [int(code)] or \
            os.path.dirname(os.path.realpath(libraries[0][0])) != \
            os.path.realpath(os.path.dirname(libraries[0][0])):
        jobs.fail("%s: libraries %s" % (what, libraries))


def check(client, release, code):
    what = "%s, NCCL %s" % (client, release)
    with jobs.Scratch() as tmp:
        bare = run(CLIENTS[client], release)
        if bare[0] != 0:
            jobs.fail("%s: %s" % (what, bare[2]))
        check_answers(what, release, bare[1])
        traced = run(CLIENTS[client], release,
                     {"LD_PRELOAD": jobs.SHIM, "COMMTRACE_DIR": tmp})
        if bare != traced:
            jobs.fail("%s: %s; stderr %r, %r; status %d, %d" % (
                what, first_difference(bare[1], traced[1]), bare[2], traced[2],
                bare[0], traced[0]))
        check_trace(what, code, tmp, traced[1])


def run_job(tmp, release, argv, trace):
    """A job of four ranks, linked; launch finds it the release."""
    machine = os.path.join(tmp, "m.fabric")
    with open(machine, "w") as f:
        f.write(open(os.path.join(jobs.MACHINES, "fast.fabric")).read())
        f.write("nccl_version %s\n" % release)
    done = jobs.job("fast", 4, argv, trace, {"FABRIC": machine})
    return sorted(done.stdout.splitlines()), done.stderr


def recorded(what, trace, code):
    """rank -> its ops, all by the right library."""
    ops = {}
    for rank, db in jobs.traces(trace).items():
        versions = db.execute("SELECT version FROM library").fetchall()
        if versions != [(int(code),)]:
            jobs.fail("%s, rank %d: versions %s" % (what, rank, versions))
        ops[rank] = [row[0] for row in db.execute(
            "SELECT k.name FROM op o JOIN op_class c ON c.id = o.class "
            "JOIN op_kind k ON k.id = c.kind ORDER BY o.id")]
    if sorted(ops) != [0, 1, 2, 3]:
        jobs.fail("%s: traces of %s" % (what, sorted(ops)))
    return ops


def check_oldest(release, code):
    what = "a job of 2.4's functions, NCCL " + release
    with jobs.Scratch() as tmp:
        trace = os.path.join(tmp, "t")
        bare = run_job(tmp, release, [OLDEST], None)
        if bare != run_job(tmp, release, [OLDEST], trace) or bare[1]:
            jobs.fail("%s: it differs: %s" % (what, bare[1]))
        step = ["all_reduce", "bcast", "all_gather", "reduce",
                "reduce_scatter"]
        for rank, ops in recorded(what, trace, code).items():
            if ops != step * 3:
                jobs.fail("%s, rank %d: %s" % (what, rank, ops))


def check_train3d(release, code):
    """It needs ncclCommSplit."""
    what = "train3d, NCCL " + release
    argv = ["train3d", "--tp", 2, "--pp", 2, "--steps", 2, "--compute-us", 0,
            "--log"]
    with jobs.Scratch() as tmp:
        trace = os.path.join(tmp, "t")
        bare = run_job(tmp, release, argv + [tmp], None)
        if bare != run_job(tmp, release, argv + [tmp], trace):
            jobs.fail("%s: it differs: %s" % (what, bare))
        for rank, ops in recorded(what, trace, code).items():
            log = open(os.path.join(tmp, "rank%d.log" % rank))
            if len(ops) != len(log.readlines()):
                jobs.fail("%s, rank %d: %d ops" % (what, rank, len(ops)))


def main():
    for release, code in RELEASES:
        for client in CLIENTS:
            check(client, release, code)
        check_oldest(release, code)
        if int(code) >= 21801:
            check_train3d(release, code)
    print("%d releases of NCCL, %d clients" % (len(RELEASES), len(CLIENTS)))


if __name__ == "__main__":
    main()
