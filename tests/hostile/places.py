"""places.py: surroundings that lack something: no /proc, no /dev/shm, no room
there, and programs that have more rights than their user."""
import os
import shutil
import subprocess
import tempfile

import traces
import jobs
import ways

NAMES = ["plain", "fork", "race", "atexit", "busy_exit", "_exit", "abort",
         "environment", "storm"]


def mounted(name, mount):
    """A mount name space of its own in which mount has been run."""
    return ways.Place(name, command=[
        "unshare", "--mount", "sh", "-c", mount + ' && exec "$@"', "sh"])


def may_mount(place):
    """Not every root may: in a chroot or a container it may not."""
    if subprocess.run([*place.command, "true"],
                      capture_output=True).returncode == 0:
        return True
    print("skipped: %s: needs the right to mount" % place.name)
    return False


def lacking():
    hidden = "mount -t tmpfs -o ro,size=4k none "
    places = [
        (mounted("no /proc", hidden + "/proc"), NAMES),
        (mounted("no /dev/shm", hidden + "/dev"), NAMES),
        (mounted("no writing to /dev/shm", hidden + "/dev/shm"), NAMES),
        (mounted("no /proc, no /dev/shm",
                 hidden + "/proc && " + hidden + "/dev"), ["plain", "race"]),
    ]
    for place, names in places:
        for name in names if may_mount(place) else ():
            ways.check(name, place)


def run_as_nobody(program, env):
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
         program, "plain"], env=env, capture_output=True, text=True,
        timeout=60)
    return done.returncode, done.stdout, done.stderr


def library_in_trusted_folder():
    """Where the loader takes a set-user-id library from, too, if root has put it
    there: over a file of the system, in a name space of its own."""
    for name in "libBrokenLocale.so.1", "libpcprofile.so", "libmemusage.so":
        for place in "/lib/x86_64-linux-gnu/", "/lib/aarch64-linux-gnu/":
            if os.path.exists(place + name):
                return name, place + name
    return None, None


def more_rights():
    """A set-user-id program started by an ordinary user: nothing is recorded,
    neither where the loader drops the library nor where it does not."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        print("skipped: setuid program: needs root and setpriv")
        return
    with tempfile.TemporaryDirectory(prefix="commtrace-setuid-") as folder:
        os.chmod(folder, 0o755)
        trace = os.path.join(folder, "trace")
        os.mkdir(trace)
        os.chmod(trace, 0o777)
        program = os.path.join(folder, "program")
        shutil.copy(ways.PROGRAM, program)
        os.chmod(program, 0o4755)
        env = dict(os.environ, COMMTRACE_DIR=trace)
        bare = run_as_nobody(program, env)
        if bare[0] != 0:
            print("skipped: setuid program: does not run as nobody: %s" %
                  bare[2].strip())
            return
        traced = run_as_nobody(program, dict(env, LD_PRELOAD=jobs.SHIM))
        # That the library was dropped is said by the loader.
        said = [l for l in traced[2].splitlines() if "LD_PRELOAD" not in l]
        if (traced[0], traced[1], said) != (bare[0], bare[1],
                                            bare[2].splitlines()):
            traces.fail("setuid: %s without, %s with" % (bare, traced))
        if os.listdir(trace):
            traces.fail("setuid: %s" % os.listdir(trace))
        print("ok  setuid program started by an ordinary user: nothing")
        trusted(folder, trace, program, env, bare)


def trusted(folder, trace, program, env, bare):
    library = os.path.join(folder, "library.so")
    shutil.copy(jobs.SHIM, library)
    os.chmod(library, 0o4755)
    name, path = library_in_trusted_folder()
    if not name:
        print("skipped: setuid program, setuid library: no place for it")
        return
    place = mounted("setuid program, setuid library",
                    "mount --bind %s %s" % (library, path))
    if not may_mount(place):
        return
    # What is run twice: the same, as the program's owner, is recorded.
    for uid, files in ("65534", 0), ("0", 1):
        done = subprocess.run(
            [*place.command, "setpriv", "--reuid=" + uid, "--regid=65534",
             "--clear-groups", "env", "LD_PRELOAD=" + name, program, "plain"],
            env=env, capture_output=True, text=True, timeout=60)
        if (done.returncode, done.stdout, done.stderr) != bare:
            traces.fail("setuid library: %s without, %s with" % (bare, done))
        if len(traces.databases(trace)) != files:
            traces.fail("setuid library, uid %s: %s" % (uid,
                                                        os.listdir(trace)))
    print("ok  setuid program, setuid library: nothing for nobody, all for"
          " root")


def main():
    lacking()
    more_rights()


if __name__ == "__main__":
    main()
