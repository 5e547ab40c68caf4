"""test_digest.py TRACEGEN: digests say what their traces say. Whatever command
reads them prints the same bytes, whoever made them: one process, the processes
of MPICH's mpirun, or GNU parallel; of closed traces, of ranks that were killed
(whose rings are gone by then) or are running, and of files that are none."""
import glob
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import jobs

COMMANDS = (["report"], ["report", "--json"], ["ops"], ["ops", "--rank", "0"],
            ["ops", "--json"], ["groups", "--json"], ["model"],
            ["stacks", "--json"])


def run(*argv):
    """Exit status, stdout, stderr."""
    done = subprocess.run([jobs.COMMTRACE, *argv], capture_output=True,
                          text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def job_db(folders):
    """job.db, as text."""
    path = "job.db"
    code, _, err = run("merge", "--db", path, *folders)
    if code:
        return err
    with sqlite3.connect(path) as db:
        text = "\n".join(db.iterdump())
    os.remove(path)
    return text


def answers(*folders):
    """What is said of the traces or digests in folders."""
    said = {" ".join(c): run(*c, *folders) for c in COMMANDS}
    said["merge"] = job_db(folders)
    return said


def expect_same(what, found, wanted):
    for command, answer in wanted.items():
        if found[command] != answer:
            jobs.fail("%s: %s says\n%s\nand of the digests\n%s" %
                      (what, command, answer, found[command]))


def digest(out, *words, status=0):
    code, text, err = run("digest", "-o", out, *words)
    if code != status:
        jobs.fail("digest %s: exit %d: %s" % (words, code, err))
    return text, err


def same_files(one, other):
    """Those of two folders are alike, byte for byte."""
    names = sorted(os.listdir(one))
    if sorted(os.listdir(other)) != names:
        jobs.fail("%s has %s" % (other, sorted(os.listdir(other))))
    for name in names:
        with open(os.path.join(one, name), "rb") as a, \
                open(os.path.join(other, name), "rb") as b:
            if a.read() != b.read():
                jobs.fail("%s in %s and %s differ" % (name, one, other))


def bytes_in(folder):
    return sum(os.path.getsize(p) for p in glob.glob(folder + "/*"))


def generate(tracegen, folder, *words):
    subprocess.run([tracegen, "--out", folder, *words], check=True,
                   stdout=subprocess.DEVNULL)


def sums_of_ops():
    """Table op_stat, which is for people."""
    for path in glob.glob("whole/*"):
        trace = sqlite3.connect("closed/" + os.path.basename(path)[:-7])
        wanted = trace.execute(
            "SELECT class, count(*), min(enter_ns), max(enter_ns), sum(host_ns),"
            " count(gpu_ns), sum(gpu_ns), min(gpu_ns), max(gpu_ns) FROM op"
            " GROUP BY class ORDER BY class").fetchall()
        found = sqlite3.connect(path).execute("SELECT * FROM op_stat").fetchall()
        if not wanted or found != wanted:
            jobs.fail("op_stat of %s: %s, not %s" % (path, found, wanted))


def old():
    """A trace of schema version 1, which lacks tables and columns."""
    os.mkdir("old")
    with sqlite3.connect("old/host.1.1.db") as db, \
            open(os.path.join(jobs.HERE, "..", "unit", "trace_version1.sql")) \
            as sql:
        db.executescript(sql.read())
        db.execute("PRAGMA application_id = %d" % 0x43545243)
        db.execute("PRAGMA user_version = 1")
    wanted = answers("old")
    digest("of_old", "old")
    expect_same("old", answers("of_old"), wanted)
    print("old: schema version 1")


def closed(tracegen):
    """Traces of a job that ended well; and what digests cost."""
    generate(tracegen, "closed", "--tp", "2", "--pp", "2", "--dp", "2",
             "--hosts", "2", "--steps", "30", "--nccl", "kernel", "--order",
             "dp,pp,tp")
    wanted = answers("closed")
    said, _ = digest("whole", "closed")
    by_others("closed", "whole")
    ops = sum(sqlite3.connect(p).execute("SELECT count(*) FROM op").fetchone()[0]
              for p in glob.glob("closed/*.db"))
    if not said.startswith("8 digests of %d operations in whole: " % ops):
        jobs.fail("it says: " + said)
    expect_same("closed", answers("whole"), wanted)
    # Made again, they are the same, and nothing else is there.
    shutil.copytree("whole", "before")
    digest("whole", "closed")
    same_files("before", "whole")
    sums_of_ops()
    print("closed: %d ops in %d bytes, of %d" % (ops, bytes_in("whole"),
                                                 bytes_in("closed")))


def by_others(traces, digests):
    """The recipes of the README make the same digests."""
    if shutil.which("mpirun.mpich"):
        out = "mpi_" + digests
        subprocess.run(["mpirun.mpich", "-n", "4", "sh", "-c", jobs.COMMTRACE +
                        " digest --share $PMI_RANK/$PMI_SIZE -o %s %s" %
                        (out, traces)], check=True, capture_output=True)
        same_files(digests, out)
    if shutil.which("parallel"):
        out = "parallel_" + digests
        subprocess.run(["parallel", "-j4", jobs.COMMTRACE, "digest", "-o", out,
                        ":::", *sorted(glob.glob(traces + "/*.db"))],
                       check=True, capture_output=True)
        same_files(digests, out)


def say_skips():
    for tool, name in (("mpirun.mpich", "MPICH"), ("parallel", "GNU parallel")):
        if not shutil.which(tool):
            print("skipped: digests by %s: it is not installed" % name)


def remove_rings(folder):
    """Their number. Another traced process of this host may have moved them
    beside their traces, or do it now."""
    found = []
    for path in glob.glob("/dev/shm/commtrace.%d.*" % os.getuid()):
        try:
            with open(path, "rb") as f:
                if (os.path.realpath(folder) + "/").encode() in f.read(2176):
                    found.append(path)
            if path in found:
                os.remove(path)
        except FileNotFoundError:
            pass
    for path in glob.glob(folder + "/*.ring"):
        found.append(path)
        os.remove(path)
    return len(found)


def killed():
    """A rank dies in an operation; its host is gone when the report is made."""
    shutil.copy(os.path.join(jobs.MACHINES, "two_hosts.fabric"), "dies.fabric")
    with open("dies.fabric", "a") as f:
        f.write("fault rank=2 op=150 action=die\n")
    jobs.job("two_hosts", 4, ["train3d", "--tp", 2, "--pp", 2, "--steps", 20],
             os.path.abspath("killed"),
             {"FABRIC": os.path.abspath("dies.fabric")}, check=False)
    wanted = answers("killed")
    if "PROCESS_DIED" not in wanted["report --json"][1]:
        jobs.fail("nobody died")
    digest("of_killed", "killed")
    by_others("killed", "of_killed")
    rings = remove_rings("killed")
    if not rings or answers("killed")["ops"] == wanted["ops"]:
        jobs.fail("the %d rings did not matter" % rings)
    shutil.rmtree("killed")
    expect_same("killed", answers("of_killed"), wanted)
    print("killed: %d rings" % rings)


def rank_process(folder, way, ms):
    env = dict(os.environ, LD_PRELOAD=jobs.SHIM, COMMTRACE_DIR=folder,
               LD_LIBRARY_PATH=os.path.join(jobs.BUILD, "fabric"),
               FABRIC=os.path.join(jobs.MACHINES, "one_host.fabric"))
    return subprocess.Popen([sys.executable, "-B",
                             os.path.join(jobs.HERE, "test_early.py"), way,
                             str(ms)], env=env)


def unstored():
    """A process that was killed before its trace held anything."""
    folder = os.path.abspath("unstored")
    while run("report", "unstored")[0]: # once more where it was too late
        rank_process(folder, "kill", 0).wait()
        for path in glob.glob("unstored/*.db") + glob.glob("unstored/*-???"):
            os.remove(path)
    wanted = answers("unstored")
    digest("of_unstored", "unstored")
    remove_rings("unstored")
    expect_same("unstored", answers("of_unstored"), wanted)
    if '"ops":4,' not in wanted["report --json"][1]:
        jobs.fail("unstored: %s" % (wanted["report --json"],))
    print("unstored: its ring alone")


def running():
    """A process that lives, stopped so that it is the same for both."""
    folder = os.path.abspath("running")
    process = rank_process(folder, "exec", 600000)
    try:
        while run("ops", "running")[1].count(" all_reduce ") != 4:
            time.sleep(.02)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        wanted = answers("running")
        digest("of_running", "running")
    finally:
        process.kill()
        process.wait()
    expect_same("running", answers("of_running"), wanted)
    if "still running" not in wanted["report"][1]:
        jobs.fail("running: %s" % (wanted["report"],))
    remove_rings("running")
    print("running: as it was when it was looked at")


def cut(path, copy, n):
    with open(path, "rb") as f, open(copy, "wb") as g:
        g.write(f.read()[:n])


def copy_with(path, copy, sql):
    shutil.copy(path, copy)
    db = sqlite3.connect(copy, isolation_level=None)
    db.execute(sql)
    db.close()


def make_bad(folder, one, another):
    """name -> what is said of it. one, another: traces of folder."""
    with open(folder + "/a_text.db", "w") as f:
        f.write("no database, and long enough to have a header of one\n" * 3)
    open(folder + "/b_empty.db", "w").close()
    cut(one, folder + "/c_cut.db", 9000)
    copy_with(one, folder + "/d_newer.db", "PRAGMA user_version = 99")
    with sqlite3.connect(folder + "/e_foreign.db") as db:
        db.execute("CREATE TABLE t(x)")
    copy_with(one, folder + "/f_bad_row.db",
              "UPDATE op SET class = 77 WHERE id = (SELECT min(id) FROM op)")
    shutil.copy(another, folder + "/z_again.db")
    return {"a_text.db": "not a database", "b_empty.db": "empty file",
            "c_cut.db": "truncated", "d_newer.db": "newer version",
            "e_foreign.db": "not of commtrace",
            "f_bad_row.db": "class 77 does not exist",
            "z_again.db": "same process as"}


def jobs_in(answer):
    """What a report says of jobs, but for the files that it skipped."""
    said = jobs.json.loads(answer[1])["jobs"]
    for job in said:
        job["quality"].pop("skipped")
        job["verdict"].pop("complete")
        job["verdict"].pop("data")
    return said


def stale():
    """Of two files of one process the one that tells more counts, whichever is
    named first: a digest made while it ran is no reason to know less."""
    shutil.copytree("closed", "early")
    for path in glob.glob("early/*.db"):
        with sqlite3.connect(path) as db:
            db.execute("DELETE FROM op WHERE id > 100")
            db.execute("UPDATE process SET end_ns = NULL")
    digest("of_early", "early")
    wanted = jobs_in(run("report", "--json", "closed"))
    for folders in ("of_early", "closed"), ("closed", "of_early"):
        answer = run("report", "--json", *folders)
        if jobs_in(answer) != wanted:
            jobs.fail("%s: %s" % (folders, answer[1]))
        if any("skipped of_early/" not in line or "same process as closed/" not
               in line for line in answer[2].splitlines()):
            jobs.fail("%s: %s" % (folders, answer[2]))
    print("stale: the trace counts")


def bad(tracegen):
    """Files that are none beside those that are: each is named, by the traces
    and by their digests alike; so are two jobs."""
    generate(tracegen, "bad", "--tp", "2", "--pp", "2", "--hosts", "2",
             "--steps", "6")
    generate(tracegen, "second", "--dp", "2", "--steps", "5", "--seed", "9")
    traces = sorted(glob.glob("bad/*.db"))
    jobs_alone = jobs_in(run("report", "--json", "bad", "second"))
    sayings = make_bad("bad", traces[0], traces[1])
    wanted = answers("bad", "second")
    if jobs_in(wanted["report --json"]) != jobs_alone or len(jobs_alone) != 2:
        jobs.fail("jobs among bad files: %s" % wanted["report --json"][1])
    skipped = wanted["report"][2].splitlines()
    for name, words in sayings.items():
        if not any(name in line and words in line for line in skipped):
            jobs.fail("%s is not said to be '%s': %s" % (name, words, skipped))
        if name not in wanted["report"][1]:
            jobs.fail("the report does not name %s" % name)
    if len(skipped) != len(sayings):
        jobs.fail("skipped: %s" % skipped)
    _, err = digest("of_bad", "bad")
    # All but the copy, which has a digest like others.
    if len(err.splitlines()) != len(sayings) - 1:
        jobs.fail("digest says: " + err)
    by_others("bad", "of_bad")
    digest("of_second", "second")
    expect_same("bad", answers("of_bad", "of_second"), wanted)
    _, err = digest("alone", "bad/a_text.db")
    if "bad/a_text.db: not a database" not in err:
        jobs.fail("digest of a text: " + err)
    print("bad: %d files of %d, and a second job" % (len(sayings),
                                                     len(os.listdir("bad"))))


def bad_digests():
    """Digests that are damaged, newer, doubled, or beside their traces."""
    shutil.copytree("whole", "odd")
    names = sorted(os.listdir("odd"))
    paths = [os.path.join("odd", name) for name in names]
    wanted = run("report", "--json", *paths[4:])
    cut(os.path.join("whole", names[0]), paths[0], 5000)
    copy_with(os.path.join("whole", names[1]), paths[1],
              "UPDATE digest SET format = 99")
    copy_with(os.path.join("whole", names[1]), "odd/y.db.digest",
              "PRAGMA user_version = 99")
    copy_with(os.path.join("whole", names[2]), paths[2],
              "UPDATE packed SET data = zeroblob(50) WHERE name = 'op'")
    with open(paths[3], "w") as f:
        f.write("no digest\n" * 20)
    shutil.copy(paths[4], "odd/z.db.digest")
    trace = os.path.join("closed", names[4].replace(".digest", ""))
    shutil.copy(trace, "odd")
    sayings = {names[0]: "truncated", names[1]: "newer version",
               "y.db.digest": "newer version",
               names[2]: "packed rows of table op are damaged",
               names[3]: "not a database", "z.db.digest": "same process as",
               names[4]: "same process as"}
    code, out, err = run("report", "--json", "odd")
    lines = err.splitlines()
    for name, words in sayings.items():
        if not any("odd/" + name + ": " in line and words in line
                   for line in lines):
            jobs.fail("%s is not said to be '%s': %s" % (name, words, lines))
    if code or len(lines) != len(sayings):
        jobs.fail("odd: exit %d, %s" % (code, lines))
    one, all_ = jobs.json.loads(out), jobs.json.loads(wanted[1])
    for part in "job", "roles", "findings":
        if one["jobs"][0].get(part) != all_["jobs"][0].get(part):
            jobs.fail("odd: %s differs from that without them" % part)
    # What was there already is no loss.
    unread = len(sayings) - 2
    if "%d files not read" % unread not in one["jobs"][0]["verdict"]["data"]:
        jobs.fail("odd: data is '%s'" % one["jobs"][0]["verdict"]["data"])
    print("bad digests: %d files of %d" % (len(sayings),
                                           len(os.listdir("odd"))))


def refused():
    """What is no digest of that trace is not overwritten."""
    name = sorted(os.listdir("whole"))[0]
    trace = name.replace(".digest", "")
    os.mkdir("kept")
    with open("kept/" + name, "w") as f:
        f.write("mine")
    _, err = digest("kept", "closed", status=2)
    with open("kept/" + name) as f:
        if f.read() != "mine" or "not overwritten" not in err:
            jobs.fail("kept: " + err)
    if len(os.listdir("kept")) != len(os.listdir("whole")):
        jobs.fail("kept: %s" % os.listdir("kept"))
    shutil.copytree("closed", "copied")
    with sqlite3.connect("copied/" + trace) as db:
        db.execute("UPDATE process SET uuid = 'another'")
    for words, saying in ((["copied"], "that of another trace"),
                          (["closed", "copied"], "same name"),
                          (["whole/" + name], "is a digest"),
                          (["--share", "4/4", "closed"], "not K/N")):
        _, err = digest("whole", *words, status=2)
        if saying not in err:
            jobs.fail("digest %s: %s" % (words, err))
    same_files("before", "whole")
    # Of a folder with digests and job.db the traces are taken.
    shutil.copy("whole/" + name, "copied")
    run("merge", "--db", "copied/job.db", "closed")
    text, err = digest("of_copied", "copied")
    if err or not text.startswith("8 digests"):
        jobs.fail("of a mixed folder: %s%s" % (text, err))
    code, _, err = run("digest", "-o", "/proc/nowhere", "closed")
    if code != 2 or len(err.splitlines()) != 1:
        jobs.fail("/proc/nowhere: exit %d: %s" % (code, err))
    left = glob.glob("**/*.part", recursive=True)
    if left:
        jobs.fail("left behind: %s" % left)
    print("refused: what is another's")


def main():
    with jobs.Scratch() as tmp:
        os.chdir(tmp)
        say_skips()
        closed(sys.argv[1])
        killed()
        unstored()
        running()
        bad(sys.argv[1])
        bad_digests()
        stale()
        old()
        refused()


if __name__ == "__main__":
    main()
