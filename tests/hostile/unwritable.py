"""unwritable.py: no room and no permission for a trace. The job does not
notice, one line says so, and what was lost is counted where it can be."""
import os
import subprocess
import tempfile

import traces
import jobs

JOB = ["train3d", "--tp", 2, "--steps", 4]


def mounted(kind, *options):
    """A folder on a mount of its own, or None where that is not allowed."""
    folder = tempfile.mkdtemp(prefix="commtrace-mount-")
    done = subprocess.run(["mount", *options, kind, folder],
                          capture_output=True)
    if done.returncode != 0:
        os.rmdir(folder)
        return None
    return folder


def unmount(folder):
    subprocess.run(["umount", "-l", folder], check=True)
    os.rmdir(folder)


def lines(text):
    return [l for l in text.splitlines() if l.startswith("commtrace: ")]


def compare(name, bare, traced, most):
    """Every rank may say one line."""
    said = lines(traced.stderr)
    rest = [l for l in traced.stderr.splitlines() if l not in said]
    if (traced.returncode, traced.stdout, rest) != (
            bare.returncode, bare.stdout, bare.stderr.splitlines()):
        traces.fail("%s: the job differs:\n%s%s" % (name, traced.stdout,
                                                    traced.stderr))
    if not 1 <= len(said) <= most:
        traces.fail("%s: said %s" % (name, said))


def read_only(bare):
    source = tempfile.mkdtemp(prefix="commtrace-ro-")
    folder = mounted(source, "--bind")
    if not folder:
        print("read-only mount: skipped, needs root")
        return
    subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
    try:
        for trace in folder, os.path.join(folder, "deeper"):
            compare("read-only", bare, jobs.job("one_host", 2, JOB, trace), 2)
        if os.listdir(source):
            traces.fail("read-only: %s" % os.listdir(source))
    finally:
        unmount(folder)
        os.rmdir(source)


def too_long(bare):
    """SQLite takes no such path: the line says what is wrong with it."""
    top = os.path.join(tempfile.mkdtemp(), "deep")
    for trace in top + "/deep" * 100, os.path.dirname(top) + "/" + "x" * 2000:
        done = jobs.job("one_host", 2, JOB, trace)
        compare("long path", bare, done, 2)
        if "may have 500 bytes" not in lines(done.stderr)[0]:
            traces.fail("long path: %s" % lines(done.stderr))
        if os.path.exists(top):
            traces.fail("long path: left %s" % top)
    os.rmdir(os.path.dirname(top))


def accounted(folder, log):
    """Recorded and counted as lost is what was issued."""
    for path in traces.databases(folder):
        db = traces.open_db(path)
        if traces.one(db, "PRAGMA integrity_check") != "ok":
            traces.fail("%s is damaged" % path)
        rank = traces.one(db, "SELECT rank FROM process")
        issued = len(open(os.path.join(log, "rank%d.log" % rank)).readlines())
        found, lost = len(traces.all_ops(path)), traces.lost_ops(path)
        if found + lost != issued:
            traces.fail("%s: %d recorded, %d lost, %d issued" %
                        (path, found, lost, issued))
        yield lost


def full(bare):
    """Too small for anything, then too small for the end, first with a ring
    that takes in the rest, then with one that overflows."""
    for size, slots in ("32k", 8192), ("400k", 8192), ("400k", 64):
        folder = mounted("tmpfs", "-t", "tmpfs", "-o", "size=" + size)
        if not folder:
            print("full tmpfs: skipped, needs root")
            return
        with tempfile.TemporaryDirectory() as log:
            done = jobs.job("one_host", 2, JOB + ["--log", log], folder,
                            {"COMMTRACE_RING_SLOTS": str(slots)})
            compare("tmpfs of " + size, bare, done, 2)
            lost = sum(accounted(folder, log))
            if (lost > 0) != (slots == 64):
                traces.fail("tmpfs of %s: %d ops lost" % (size, lost))
        for ring in traces.rings(folder):
            os.unlink(ring) # it waits for a later process
        unmount(folder)


def no_file_size(bare):
    """A limit whose signal kills by default."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(jobs.BUILD, "samples", "train3d")
        launch = os.path.join(jobs.BUILD, "samples", "launch")
        env = dict(os.environ, COMMTRACE_DIR=folder,
                   FABRIC=os.path.join(jobs.MACHINES, "one_host.fabric"))
        def run(*preload):
            return subprocess.run(
                [launch, "-n", "1", "--", "sh", "-c",
                 "ulimit -f 0; exec env \"$@\"", "sh", *preload, program,
                 "--steps", "2"], env=env, capture_output=True, text=True,
                timeout=60)
        compare("RLIMIT_FSIZE", run(), run("LD_PRELOAD=" + jobs.SHIM), 1)
        if traces.databases(folder):
            traces.fail("RLIMIT_FSIZE: %s" % os.listdir(folder))


def main():
    bare = jobs.job("one_host", 2, JOB)
    read_only(bare)
    full(bare)
    no_file_size(bare)
    too_long(bare)
    print("done")


if __name__ == "__main__":
    main()
