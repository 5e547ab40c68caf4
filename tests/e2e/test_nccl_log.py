"""test_nccl_log.py GETENV_JOB LIVES_JOB: NCCL's log is had without anybody noticing, and
whatever the user has set himself, and wherever, is as it would be without the
recorder."""
import contextlib
import glob
import os
import re
import shutil
import sqlite3
import subprocess
import sys

import jobs

HERE = os.path.dirname(os.path.abspath(__file__))
GETENV_JOB, LIVES_JOB = sys.argv[1:]
MACHINE = "dgx_h100"
GETENV_TOOL = os.path.join(jobs.BUILD, "tests", "libgetenv_tool.so")
SANITISED = not os.path.exists(GETENV_TOOL)  # then it is not built


def steady(text):
    """A log without what differs between two runs, in one order."""
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    text = re.sub(r"\b\d+(:\d+)?(:\d+)? \[", "PID [", text)
    text = re.sub(r"<\d+>|\d+\.\d+|\d\d:\d\d:\d\d|/tmp/[^ ]*", "N", text)
    return sorted(text.split("\n"))


def files(folder):
    return sorted(open(path).read() for path in glob.glob(folder + "/log*"))


def machine(folder, release):
    path = os.path.join(folder, "machine.fabric")
    text = open(os.path.join(jobs.MACHINES, MACHINE + ".fabric")).read()
    with open(path, "w") as out:
        out.write(text + ("nccl_version %s\n" % release if release else ""))
    return path


def run(folder, env, traced, release=None, before=None):
    """stdout, stderr, log files, traces."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("NCCL_", "COMMTRACE_"))}
    clean.update({k: v.replace("@", folder) for k, v in env.items()})
    clean.setdefault("HOME", folder)
    clean["FABRIC"] = machine(folder, release)
    command = [os.path.join(jobs.BUILD, "samples", "launch"), "-n", "2", "--"]
    if traced:
        clean["COMMTRACE_DIR"] = os.path.join(folder, "trace")
        command += ["env", "LD_PRELOAD=" + jobs.SHIM]
    command += [os.path.join(jobs.BUILD, "samples", "train3d"), "--tp", "2",
                "--steps", "2"]
    done = subprocess.run(command, env=clean, capture_output=True, text=True,
                          timeout=300, preexec_fn=before)
    if done.returncode != 0:
        jobs.fail("%s: exit %d\n%s%s" % (env, done.returncode, done.stdout,
                                         done.stderr))
    return done.stdout, done.stderr, files(folder)


def facts(folder):
    """What the two traces hold of NCCL's log."""
    found = {}
    dbs = jobs.traces(os.path.join(folder, "trace"))
    for rank, db in dbs.items():
        for table in ("conn", "tuning", "choice", "nccl_message"):
            found[table, rank], = db.execute(
                "SELECT count(*) FROM " + table).fetchone()
        found["why", rank] = " ".join(
            why for why, in db.execute(
                "SELECT why FROM absence WHERE what = 'nccl_log'"))
        found["via", rank] = {via for via, in db.execute(
            "SELECT DISTINCT via FROM conn")}
        found["stray", rank], = db.execute(
            "SELECT count(*) FROM conn WHERE comm NOT IN"
            " (SELECT id FROM comm) OR comm IS NULL").fetchone()
        found["loss", rank] = db.execute("SELECT * FROM loss").fetchall()
        pid, = db.execute("SELECT pid FROM process").fetchone()
        if glob.glob("/dev/shm/commtrace.*.%d.*" % pid):
            jobs.fail("%s: left in /dev/shm" % folder)
    return found


def compare(env, release=None, prepare=None, before=None):
    """Runs without and with the recorder; what the latter has found."""
    with jobs.Scratch() as bare, jobs.Scratch() as traced:
        seen = []
        for folder in (bare, traced):
            with prepare(folder) if prepare else contextlib.nullcontext():
                seen.append(run(folder, env, folder == traced, release,
                                before))
        plain, watched = seen
        logs_to_stdout = env.get("NCCL_DEBUG") and not env.get("NCCL_DEBUG_FILE")
        if logs_to_stdout:
            same = steady(plain[0]) == steady(watched[0])
        else:
            same = plain[0] == watched[0]
        if not same or plain[1] != watched[1]:
            jobs.fail("%s: %s without, %s with" % (env, plain, watched))
        if [steady(t) for t in plain[2]] != [steady(t) for t in watched[2]]:
            jobs.fail("%s: log %s without, %s with" % (env, plain[2],
                                                       watched[2]))
        found = facts(traced)
        found["log"] = watched[2]
        return found


def check(what, found, wanted):
    if found["stray", 0] or found["stray", 1] or found["loss", 0]:
        jobs.fail("%s: %s" % (what, found))
    for key, value in wanted.items():
        for rank in (0, 1):
            is_so = value(found[key, rank]) if callable(value) else \
                value in found[key, rank]
            if not is_so:
                jobs.fail("%s: rank %d: %s is %s" % (what, rank, key,
                                                     found[key, rank]))
    print("ok  " + what, flush=True)


def some(n):
    return n > 0


def none(n):
    return n == 0


def nothing(text):
    return not text


def check_asked():
    check("by default", compare({}),
          {"conn": some, "tuning": none, "choice": none, "why": nothing,
           "via": "P2P/CUMEM"})
    found = compare({"COMMTRACE_NCCL_LOG": "tuning"})
    check("tuning", found, {"conn": some, "why": nothing})
    for table in ("tuning", "choice"): # rank 0 alone tells
        if not found[table, 0] or found[table, 1]:
            jobs.fail("%s: %s" % (table, found))
    check("off", compare({"COMMTRACE_NCCL_LOG": "off"}),
          {"conn": none, "nccl_message": none, "why": "COMMTRACE_NCCL_LOG=off"})


def check_releases():
    check("2.19, not asked", compare({}, "2.19"),
          {"conn": none, "why": "prints its version on stdout"})
    with jobs.Scratch() as folder:
        out, err, _ = run(folder, {"COMMTRACE_NCCL_LOG": "connections"}, True,
                          "2.19")
        if not re.match("NCCL version 2.19", out) or err:
            jobs.fail("2.19, asked: %s" % out)
        check("2.19, asked", facts(folder), {"conn": some, "why": nothing})
    for release in ("2.23", "2.28"):
        check(release, compare({}, release), {"conn": some, "why": nothing})


def same_as_log(what, found, wanted):
    """Every line of the user's log is a row, whoever wrote it."""
    lines = sum(text.count(" via ") for text in found["log"])
    rows = found["conn", 0] + found["conn", 1]
    if lines != rows or not found["log"]:
        jobs.fail("%s: %d connections in the log, %d rows" % (what, lines,
                                                              rows))
    check(what, found, wanted)


@contextlib.contextmanager
def conf(folder, name="nccl.conf"):
    with open(os.path.join(folder, name), "w") as out:
        out.write("# NCCL_DEBUG=TRACE\nNCCL_DEBUG=INFO\n"
                  "NCCL_DEBUG_FILE=%s/log.%%p\nNCCL_DEBUG=WARN\n" % folder)
    yield


@contextlib.contextmanager
def other_conf(folder):
    with open(os.path.join(folder, ".nccl.conf"), "w") as out:
        out.write("NCCL_P2P_DISABLE=1\nNCCL_NVLS_ENABLE=0\n"
                  "XNCCL_DEBUG=INFO\n")
    yield


def check_theirs():
    check("NCCL_DEBUG=INFO", compare({"NCCL_DEBUG": "INFO"}),
          {"conn": none, "why": "goes to stdout"})
    check("NCCL_DEBUG=", compare({"NCCL_DEBUG": ""}),
          {"conn": none, "why": "NCCL_DEBUG= is set"})
    check("NCCL_DEBUG_FILE alone", compare({"NCCL_DEBUG_FILE": "@/log"}),
          {"conn": none, "why": "without NCCL_DEBUG"})
    same_as_log("%h and %p", compare({"NCCL_DEBUG": "info",
                                      "NCCL_DEBUG_FILE": "@/log.%h.%p"}),
                {"conn": some, "why": nothing})
    same_as_log("warnings alone", compare({"NCCL_DEBUG": "WARN",
                                           "NCCL_DEBUG_FILE": "@/log.%p.%%"}),
                {"conn": none, "why": nothing})
    check("costly subsystems", compare({"NCCL_DEBUG_SUBSYS": "ALL"}),
          {"conn": none, "why": "NCCL_DEBUG_SUBSYS=ALL"})
    check("their subsystems", compare({"NCCL_DEBUG_SUBSYS": "ENV"}),
          {"conn": none, "why": nothing, "nccl_message": some})
    same_as_log("NCCL_CONF_FILE", compare({"NCCL_CONF_FILE": "@/nccl.conf"},
                                          prepare=conf),
                {"conn": some, "why": nothing})
    same_as_log("~/.nccl.conf", compare(
        {"HOME": "@"}, prepare=lambda f: conf(f, ".nccl.conf")),
        {"conn": some, "why": nothing})
    check("a file of other settings", compare({"HOME": "@"},
                                              prepare=other_conf),
          {"conn": some, "why": nothing, "via": "SHM/direct"})


def limit_files():
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


def check_limits():
    check("ulimit -f", compare({}, before=limit_files),
          {"conn": none, "why": "ulimit -f"})


def python_job(folder, settings, traced, tool=None):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("NCCL_", "COMMTRACE_"))}
    env.update(FABRIC=machine(folder, None), HOME="/nonexistent",
               LD_LIBRARY_PATH=os.path.join(jobs.BUILD, "fabric"))
    if traced:
        env.update(LD_PRELOAD=":".join(filter(None, (tool, jobs.SHIM))),
                   COMMTRACE_DIR=os.path.join(folder, "trace"))
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(HERE, "nccl_log_job.py")] +
        [s.replace("@", folder) for s in settings], env=env,
        capture_output=True, text=True, timeout=120)
    out = done.stdout.replace(folder, "@")
    return re.sub(r"done \d+", "done", out), done.stderr, files(folder)


def check_python():
    for settings in ([], ["NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=@/log.%p"],
                     ["NCCL_CONF_FILE=@/.nccl.conf"]):
        # From the file NCCL puts settings into the environment, and there
        # they stay.
        with jobs.Scratch() as bare, jobs.Scratch() as traced, \
                other_conf(bare), other_conf(traced):
            plain = python_job(bare, settings, False)
            watched = python_job(traced, settings, True)
            if plain[:2] != watched[:2] or "done" not in plain[0] or \
                    len(watched[2]) != len(plain[2]) or \
                    len(watched[2]) != ("NCCL_DEBUG=INFO" in settings):
                jobs.fail("os.environ %s: %s without, %s with"
                          % (settings, plain, watched))
            db, = jobs.traces(os.path.join(traced, "trace")).values()
            if not db.execute("SELECT count(*) FROM nccl_message"
                              " WHERE kind = 'version'").fetchone()[0]:
                jobs.fail("os.environ %s: no log" % settings)
        print("ok  os.environ %s" % settings, flush=True)


def environment(folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith("NCCL_")}
    env.update(FABRIC=machine(folder, None), HOME="/nonexistent",
               LD_LIBRARY_PATH=os.path.join(jobs.BUILD, "fabric"),
               COMMTRACE_DIR=os.path.join(folder, "trace"))
    return env


def check_ids():
    """Who makes ids for others is no part of a job."""
    code = ("import ctypes; nccl = ctypes.CDLL('libnccl.so.2');"
            "print(nccl.ncclGetUniqueId((ctypes.c_char * 128)()))")
    with jobs.Scratch() as folder:
        env = dict(environment(folder), LD_PRELOAD=jobs.SHIM)
        done = subprocess.run([sys.executable, "-c", code], env=env,
                              capture_output=True, text=True, timeout=120)
        left = glob.glob(os.path.join(folder, "trace", "*"))
        if (done.returncode, done.stdout, done.stderr) != (0, "0\n", "") or left:
            jobs.fail("an id alone: %s, %s" % (done, left))
    print("ok  an id alone", flush=True)


def check_lives():
    """Each communicator has what NCCL said of it, and nothing else."""
    with jobs.Scratch() as folder:
        env = dict(environment(folder), LD_PRELOAD=jobs.SHIM,
                   NCCL_RUNTIME_CONNECT="0", NCCL_NVLS_ENABLE="0")
        done = subprocess.run([LIVES_JOB], env=env, capture_output=True,
                              text=True, timeout=300)
        if done.returncode or done.stdout or done.stderr:
            jobs.fail("lives: %s" % done)
        db, = jobs.traces(os.path.join(folder, "trace")).values()
        rows = db.execute("""
            SELECT comm.id, comm.nranks, origin, nccl_comm.local_ranks,
              (SELECT count(DISTINCT src * 8 + dst) FROM conn
               WHERE comm = comm.id), (SELECT count(*) FROM ring
               WHERE comm = comm.id AND (prev <> (comm.rank + nranks - 1)
               % nranks AND next <> (comm.rank + nranks - 1) % nranks))
            FROM comm LEFT JOIN nccl_comm ON nccl_comm.comm = comm.id
            """).fetchall()
        for comm, n, origin, local, pairs, foreign in rows:
            if local != n or not 0 < pairs <= n * (n - 1) or foreign:
                jobs.fail("lives: %s" % ((comm, n, origin, local, pairs,
                                          foreign),))
        stray, = db.execute("SELECT count(*) FROM conn WHERE comm IS NULL OR"
                            " src >= (SELECT nranks FROM comm"
                            " WHERE comm.id = conn.comm)").fetchone()
        if len(rows) != 120 or stray:
            jobs.fail("lives: %d communicators, %d stray" % (len(rows), stray))
    print("ok  %d lives of communicators" % len(rows), flush=True)


def check_badly():
    """What the program may do to the log: that of nobody is not on stdout, and
    its limit kills nobody."""
    # With a limit the recorder may or may not try to write just then.
    ways = [("nobody", ""),
            ("limit", r"(commtrace: cannot write \S+\.db: .*\n)*")]
    if SANITISED:
        print("skip  nobody: a sanitiser that comes late cannot read its"
              " options once rights are given up", flush=True)
        del ways[0]
    for way, said in ways:
        with jobs.Scratch() as folder:
            # With a folder that it cannot make it would record nothing.
            trace = os.path.join(folder, "trace")
            os.mkdir(trace)
            os.chmod(folder, 0o777)
            os.chmod(trace, 0o777)
            plain = python_job(folder, [way], False)
            watched = python_job(folder, [way], True)
            if plain[0] != watched[0] or plain[1] or "done" not in plain[0] or \
                    not re.fullmatch(said, watched[1]):
                jobs.fail("%s: %s without, %s with" % (way, plain, watched))
            for path in glob.glob(trace + "/*.db"):
                os.chmod(path, 0o600)
            db, = jobs.traces(trace).values()
            if not db.execute("SELECT count(*) FROM nccl_message"
                              " WHERE kind = 'version'").fetchone()[0]:
                jobs.fail("%s: no log" % way)
        print("ok  " + way, flush=True)
    with jobs.Scratch() as folder:
        python_job(folder, ["NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=%s/big" %
                            folder, "huge"], True)
        db, = jobs.traces(os.path.join(folder, "trace")).values()
        if not db.execute("SELECT why FROM absence WHERE what = 'nccl_log' AND"
                          " why LIKE 'too much came into it%'").fetchall():
            jobs.fail("a huge log was read at the end")
    print("ok  huge", flush=True)
    with jobs.Scratch() as folder:
        out, err, _ = python_job(folder, ["much"], True)
        db, = jobs.traces(os.path.join(folder, "trace")).values()
        why = db.execute("SELECT why FROM absence WHERE what = 'nccl_log'"
                         ).fetchall()
        if "done" not in out or err != "read\n" or why:
            jobs.fail("much: %s, %s, %s" % (out, err, why))
    print("ok  much", flush=True)
    with jobs.Scratch() as folder:
        out, err, _ = python_job(folder, ["flood"], True)
        db, = jobs.traces(os.path.join(folder, "trace")).values()
        why = db.execute("SELECT why FROM absence WHERE what = 'nccl_log'"
                         ).fetchall()
        comms = db.execute("SELECT count(*), sum(n.comm NOTNULL) FROM comm LEFT"
                           " JOIN nccl_comm n ON n.comm = comm.id").fetchone()
        if "done" not in out or err != "cut\n" or comms != (2, 1) or why != [
                ("it ends early: it could not be read in time",)]:
            jobs.fail("flood: %s, %s, %s, %s" % (out, err, why, comms))
    print("ok  flood", flush=True)
    if SANITISED:
        print("skip  no getenv tool in a sanitised build", flush=True)
        return
    with jobs.Scratch() as folder:
        watched = python_job(folder, [], True, GETENV_TOOL)
        if "done" not in watched[0] or watched[1]:
            jobs.fail("the recorder's thread asks the environment: %s, %s" %
                      watched[:2])
    print("ok  no getenv in the recorder's thread", flush=True)


def has_log(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT count(*) FROM nccl_message"
                          " WHERE kind = 'version'").fetchone()[0] > 0


def check_getenv():
    times = int(os.environ.get("GETENV_TIMES", "5" if SANITISED else "20"))
    checkers = [[]] * times
    if SANITISED or not shutil.which("valgrind"):
        print("skip  getenv under valgrind: %s" %
              ("a sanitised build" if SANITISED else "there is none"),
              flush=True)
    else:
        checkers.append(["valgrind", "-q", "--error-exitcode=99",
                         "--fair-sched=yes"])
    with jobs.Scratch() as folder:
        env = dict(environment(folder), GETENV_JOB="yes")
        for checker in checkers:
            done = subprocess.run(
                ["env", "LD_PRELOAD=" + jobs.SHIM, *checker, GETENV_JOB],
                env=env, capture_output=True, text=True, timeout=300)
            if (done.returncode, done.stdout, done.stderr) != (0, "done\n", ""):
                jobs.fail("getenv %s: %s" % (checker, done))
        # Each has NCCL's log: in each the variables were published.
        paths = glob.glob(os.path.join(folder, "trace", "*.db"))
        published = sum(has_log(path) for path in paths)
        if (len(paths), published) != (len(checkers), len(checkers)):
            jobs.fail("getenv: %d traces, %d logs" % (len(paths), published))
    print("ok  getenv in 16 threads, %d times%s"
          % (times, ", and under valgrind" if checkers[-1] else ""))


check_asked()
check_releases()
check_theirs()
check_limits()
check_python()
check_ids()
check_lives()
check_badly()
check_getenv()
