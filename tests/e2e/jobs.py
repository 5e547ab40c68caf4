"""What the e2e tests share: running sample jobs on the fabric, traced or not,
and reading what was recorded with nothing but sqlite3."""
import glob
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
MACHINES = os.path.join(ROOT, "tests", "fabric", "machines")
SHIM = os.path.join(BUILD, "libcommtrace.so")
COMMTRACE = os.path.join(BUILD, "commtrace")


class Scratch:
    """A temporary folder, kept when the test fails."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="commtrace-e2e-")

    def __enter__(self):
        return self.path

    def __exit__(self, kind, *_):
        if kind is None:
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            print("kept", self.path, file=sys.stderr)


def job(machine, ranks, argv, trace=None, env=None, check=True):
    """Runs BUILD/samples/argv[0] on ranks ranks of a machine description;
    traced into folder trace unless that is None."""
    e = dict(os.environ, FABRIC=os.path.join(MACHINES, machine + ".fabric"))
    e.update(env or {})
    prog = os.path.join(BUILD, "samples", argv[0])
    launch = [os.path.join(BUILD, "samples", "launch"), "-n", str(ranks), "--"]
    if trace:
        e["COMMTRACE_DIR"] = trace
        launch += ["env", "LD_PRELOAD=" + e.get("JOB_PRELOAD", SHIM)]
    done = subprocess.run(launch + [prog] + [str(a) for a in argv[1:]], env=e,
                          capture_output=True, text=True, timeout=300)
    if check and done.returncode != 0:
        sys.exit("%s: exit %d\n%s%s" % (argv, done.returncode, done.stdout,
                                        done.stderr))
    return done


def commtrace(*argv):
    done = subprocess.run([COMMTRACE, *argv], capture_output=True, text=True,
                          timeout=120)
    if done.returncode != 0:
        sys.exit("commtrace %s: exit %d\n%s" % (argv, done.returncode,
                                                done.stderr))
    return done.stdout


def report(*argv):
    return json.loads(commtrace("report", "--json", *argv))


def traces(folder):
    """rank -> open database of each trace file in folder."""
    out = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.db"))):
        db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        rank, = db.execute("SELECT rank FROM process").fetchone()
        assert rank not in out, "two traces of rank %d" % rank
        out[rank] = db
    return out


def members(dbs):
    """communicator uid -> global ranks in its order."""
    found = {}
    for rank, db in dbs.items():
        for uid, place, n in db.execute("SELECT uid, rank, nranks FROM comm"):
            ranks = found.setdefault(uid, [None] * n)
            assert ranks[place] is None, "two ranks %d of one communicator" % place
            ranks[place] = rank
    return found


def fail(text):
    sys.exit("FAILED: " + text)
