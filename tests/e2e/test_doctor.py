"""test_doctor.py CC PROBE [--update]: `commtrace doctor` of programs that were
made for each of its verdicts, and what becomes of them when they are recorded:
what it says would be seen is, and `run` refuses what could not work."""
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys

import jobs

CC, PROBE = sys.argv[1:3]
FABRIC = os.path.join(jobs.BUILD, "fabric")
GOLDEN = os.path.join(jobs.HERE, "test_doctor_golden.txt")
ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(("COMMTRACE_", "NCCL_", "SLURM_", "PBS_", "LSB_"))
       and k not in ("LD_PRELOAD", "LD_AUDIT", "container")}
ENV["LD_LIBRARY_PATH"] = FABRIC

HELLO = "#include <stdio.h>\nint main(void) { return puts(\"ran\") < 0; }\n"
CALLS = """
#include <stdio.h>
extern int ncclGetVersion(int *), ncclGroupStart(void), ncclGroupEnd(void);
extern int ncclCommInitAll(void **, int, const int *), ncclCommDestroy(void *);
int main(void)
{
    void *comm;
    int bad = ncclCommInitAll(&comm, 1, 0);
    bad |= ncclGroupStart() | ncclGroupEnd() | ncclCommDestroy(comm);
    return puts("ran") < 0 || bad;
}
"""
INSIDE = """
int ncclAllReduce(void) { return 0; }
int ncclCommInitRank(void) { return 0; }
"""
STARTS = """
#include <unistd.h>
int main(int argc, char **argv) { return argc > 1 && execv(argv[1], argv + 1); }
"""


def doctor(*words, env=None, cwd=None):
    done = subprocess.run([jobs.COMMTRACE, "doctor", *words], text=True,
                          capture_output=True, timeout=120, cwd=cwd,
                          env=dict(ENV, **(env or {})))
    return done.returncode, done.stdout, done.stderr


def answer(*command, env=None, cwd=None):
    status, out, err = doctor("--json", "--", *command, env=env, cwd=cwd)
    if err:
        jobs.fail("%s: %s" % (command, err))
    return status, json.loads(out)


def run(*command, env=None):
    done = subprocess.run([jobs.COMMTRACE, "run", *command], text=True,
                          capture_output=True, timeout=120,
                          env=dict(ENV, **(env or {})))
    return done.returncode, done.stdout, done.stderr


def build(tmp, name, source, *flags):
    path = os.path.join(tmp, name)
    with open(path + ".c", "w") as f:
        f.write(source)
    subprocess.run([CC, "-o", path, path + ".c", *flags], check=True)
    return path


def verdict(what, command, seen, how, words="", env=None):
    status, got = answer(*command, env=env)
    if (got["seen"], got["how"]) != (seen, how) or words not in got["why"]:
        jobs.fail("%s: %s, %s: %s" % (what, got["seen"], got["how"],
                                      got["why"]))
    if status != (1 if seen == "no" else 0):
        jobs.fail("%s: exit status %d" % (what, status))
    return got


def is_recorded(tmp, command, env=None):
    """Whether a trace comes of the command, run as `commtrace run` does."""
    folder = os.path.join(tmp, "trace")
    status, out, err = run("--dir", folder, "--", *command, env=env)
    found = len(jobs.traces(folder)) if os.path.isdir(folder) else 0
    shutil.rmtree(folder, ignore_errors=True)
    if "ran" not in out:
        jobs.fail("%s did not run: %d %s %s" % (command, status, out, err))
    return found


def refuses(what, command, reason):
    status, out, err = run("--", *command)
    if status != 2 or "ran" in out or err != "commtrace run: %s\n" % reason:
        jobs.fail("%s: run ends with %d: %s%s" % (what, status, out, err))


def kept_out(tmp, path):
    """What env takes from a command, `run` cannot give it."""
    gone = "env takes LD_PRELOAD away, and the recorder with it"
    off = "COMMTRACE_DISABLE is set"
    for words, reason in (
            (["LD_PRELOAD="], gone), (["-u", "LD_PRELOAD"], gone),
            (["-i"], gone), (["-i", "A=1", "env", "B=1"], gone),
            (["LD_PRELOAD=libm.so.6"],
             "env sets LD_PRELOAD=libm.so.6, which replaces the recorder"),
            (["COMMTRACE_DISABLE=1"], off)):
        command = ["env", *words, path]
        verdict(command, command, "no", "linked", reason, env=ENV)
        refuses(command, command, reason)
    status, out, err = run("--", path, env={"COMMTRACE_DISABLE": "1"})
    if (status, out, err) != (2, "", "commtrace run: %s\n" % off):
        jobs.fail("recorder off: run ends with %d: %s%s" % (status, out, err))
    for words in (["-u", "LD_AUDIT"], ["LD_PRELOAD=" + jobs.SHIM],
                  ["-u", "COMMTRACE_DISABLE"], ["COMMTRACE_DISABLE=0"]):
        command = ["env", *words, path]
        env = {"COMMTRACE_DISABLE": "1"} if "DISABLE" in words[-1] else None
        verdict(command, command, "yes", "linked", env=env)
        if is_recorded(tmp, command, env=env) != 1:
            jobs.fail("%s: no trace" % command)
    # The folder that env sets has the last word, and `run` looks there.
    folder = os.path.join(tmp, "of env")
    command = ["env", "COMMTRACE_DIR=" + folder, path]
    _, _, err = run("--dir", os.path.join(tmp, "of run"), "--", *command)
    if "1 process recorded" not in err or folder not in err:
        jobs.fail("COMMTRACE_DIR of env: %s" % err)
    shutil.rmtree(folder)


def linked(tmp):
    path = build(tmp, "linked", CALLS, "-L" + FABRIC, "-lnccl", "-lcudart",
                 "-lcuda", "-Wl,--no-as-needed", "-lcudart")
    got = verdict("linked", [path], "yes", "linked", FABRIC)
    if (got["nccl_version"], got["driver"], got["runtime"], got["gpus"]) != \
            (23203, 13000, 13000, 8):
        jobs.fail("linked: %s" % got)
    if is_recorded(tmp, [path]) != 1:
        jobs.fail("linked: no trace")
    for release, code in (("2.4", 2408), ("2.19", 21904)):
        env = {"LD_LIBRARY_PATH": "%s/nccl-%s:%s" % (FABRIC, release, FABRIC)}
        if verdict(release, [path], "yes", "linked",
                   env=env)["nccl_version"] != code:
            jobs.fail("%s is not seen as such" % release)
    with_12 = build(tmp, "linked12", CALLS, "-L" + FABRIC, "-lnccl", "-lcuda",
                    "-Wl,--no-as-needed", "-l:libcudart.so.12")
    if answer(with_12)[1]["runtime"] != 12090:
        jobs.fail("runtime 12")
    # A command is what it comes down to.
    for command in (["env", "A=1", path], ["sh", "-c", path]):
        if is_recorded(tmp, command) != 1:
            jobs.fail("%s: no trace" % command)
    verdict("env", ["env", "A=1", path], "yes", "linked")
    verdict("sh", ["sh", "-c", path], "maybe", "children")
    kept_out(tmp, path)
    # What the program alone finds is not missing: NVML lies by its driver.
    rpath = build(tmp, "rpath", CALLS, "-L" + FABRIC, "-lnccl", "-lcudart",
                  "-Wl,--no-as-needed", "-lcuda", "-Wl,-rpath," + FABRIC)
    got = verdict("rpath", [rpath], "yes", "linked", FABRIC,
                  env={"LD_LIBRARY_PATH": ""})
    if any("NVLinks" in f["text"] for f in got["facts"]) or not any(
            "links by NVML" in f["text"] for f in got["facts"]):
        jobs.fail("rpath: %s" % got["facts"])
    # Where a library lies beside the program, a link to it finds it as well.
    os.makedirs(os.path.join(tmp, "bin"))
    build(tmp, "libbeside.so", "int x;", "-shared", "-fPIC")
    build(tmp, "bin/beside", HELLO, "-L" + tmp, "-Wl,--no-as-needed",
          "-l:libbeside.so", "-Wl,-rpath,$ORIGIN/..")
    os.symlink("bin/beside", os.path.join(tmp, "alias"))
    verdict("a link", [os.path.join(tmp, "alias")], "no", "none")
    gone = build(tmp, "libgone.so", INSIDE, "-shared", "-fPIC")
    path = build(tmp, "broken", HELLO, "-L" + tmp, "-Wl,--no-as-needed",
                 "-l:libgone.so")
    os.unlink(gone)
    verdict("a library gone", [path], "no", "broken",
            "libgone.so is not found")


def dlopened(tmp):
    verdict("dlopened", [PROBE], "yes", "dlopened", "loads libnccl.so")
    source = "#include <dlfcn.h>\nint main(int n, char **v) { return n > 1 " \
             "&& !dlopen(v[1], 2); }\n"
    path = build(tmp, "loads", source, "-ldl")
    verdict("dlopen of anything", [path], "maybe", "dlopened")


def no_nccl(tmp):
    path = build(tmp, "hello", HELLO)
    got = verdict("no NCCL", [path], "no", "none", "starts no other program")
    if is_recorded(tmp, [path]) != 0 or got["nccl"]:
        jobs.fail("no NCCL: %s" % got["nccl"])
    verdict("starts others", [build(tmp, "starts", STARTS)], "maybe",
            "children")


def static(tmp):
    try:
        path = build(tmp, "static", HELLO, "-static")
    except subprocess.CalledProcessError:
        print("no libc.a here: static programs are not tested")
        return
    why = verdict("static", [path], "no", "static", "linked statically")["why"]
    refuses("static", [path], why)
    shutil.copy(path, path + "-stripped")
    subprocess.run(["strip", path + "-stripped"], check=True)
    verdict("stripped", [path + "-stripped"], "no", "static")
    if "ran" not in run("--", path + "-stripped")[1]:
        jobs.fail("run refuses what it does not know")
    verdict("static, starts others", [build(tmp, "s2", STARTS, "-static")],
            "maybe", "children")
    path = build(tmp, "s3", STARTS + INSIDE, "-static")
    verdict("static with NCCL", [path], "no", "static")


def nccl_inside(tmp):
    path = build(tmp, "inside", HELLO + INSIDE)
    why = verdict("NCCL inside", [path], "no", "static",
                  "statically into " + path)["why"]
    refuses("NCCL inside", [path], why)
    verdict("an old NCCL inside", [path], "no", "static", "as before 2.27",
            env={"COMMTRACE_PROFILER": "coll"})
    build(tmp, "libinside.so", INSIDE, "-shared", "-fPIC")
    path = build(tmp, "inside2", HELLO, "-L" + tmp, "-Wl,--no-as-needed",
                 "-l:libinside.so", "-Wl,-rpath," + tmp)
    verdict("NCCL inside a library", [path], "no", "static", "libinside.so")


def nccl_inside_is_told(tmp):
    """Its profiler tells of its calls, if it is asked and nobody else is."""
    path = os.path.join(jobs.BUILD, "samples", "static_one")
    asked = {"COMMTRACE_PROFILER": "coll"}
    ours = dict(asked, NCCL_PROFILER_PLUGIN="STATIC_PLUGIN")
    theirs = dict(asked, NCCL_PROFILER_PLUGIN="theirs")
    conf = os.path.join(tmp, "nccl.conf")
    with open(conf, "w") as file:
        file.write("NCCL_PROFILER_PLUGIN=theirs\n")
    os.mkdir(os.path.join(tmp, "lib"))
    build(tmp, "lib/libnccl-profiler.so", "int x;", "-shared", "-fPIC")
    for what, env, words in (
            ("not asked", {}, "COMMTRACE_PROFILER=coll would"),
            ("theirs", theirs, "NCCL_PROFILER_PLUGIN=theirs is set in the"),
            ("theirs by a file", dict(asked, NCCL_CONF_FILE=conf),
             "NCCL_PROFILER_PLUGIN=theirs is set in " + conf),
            ("installed", dict(asked, LD_LIBRARY_PATH="%s/lib:%s" % (
                tmp, FABRIC)), "libnccl-profiler.so is installed")):
        why = verdict(what, [path], "no", "static", words, env=env)["why"]
        status, out, err = run("--", path, env=env)
        if (status, out, err) != (2, "", "commtrace run: %s\n" % why):
            jobs.fail("%s: run ends with %d: %s" % (what, status, err))
    for env, unset in (ours, False), (asked, True):
        got = verdict("asked", [path], "maybe", "static",
                      "its profiler tells of them", env=env)
        if any("set NCCL_PROFILER_PLUGIN" in f["text"] for f in got["facts"]
               ) != unset or not any("reduction operators" in f["text"]
                                     for f in got["facts"]):
            jobs.fail("%s: %s" % (env, got["facts"]))
        if is_recorded(tmp, [path], env=env) != 1:
            jobs.fail("%s: no trace" % env)
    stripped = os.path.join(tmp, "stripped")
    shutil.copy(path, stripped)
    subprocess.run(["strip", stripped], check=True)
    verdict("stripped", [stripped], "maybe", "static",
            "statically into " + stripped, env=ours)
    by_env = ["env", "NCCL_PROFILER_PLUGIN=theirs", path]
    verdict("theirs by env", by_env, "no", "static", "=theirs", env=ours)


def foreign(tmp):
    with open(build(tmp, "native", HELLO), "rb") as f:
        head = bytearray(f.read())
    for name, at, value, words in (("bits", 4, 1, "of 32 bits"),
                                   ("machine", 18, 22, "s390")):
        path = os.path.join(tmp, name)
        with open(path, "wb") as f:
            f.write(head[:at] + bytes([value]) + head[at + 1:])
        os.chmod(path, 0o755)
        why = verdict(name, [path], "no", "foreign", words)["why"]
        refuses(name, [path], why)
    path = os.path.join(tmp, "cut")
    with open(path, "wb") as f:
        f.write(head[:40])
    os.chmod(path, 0o755)
    verdict("cut off", [path], "no", "damaged")
    path = build(tmp, "musl", HELLO,
                 "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
    why = verdict("musl", [path], "no", "musl", "needs glibc")["why"]
    refuses("musl", [path], why)


def setuid(tmp):
    if os.getuid() != 0:
        print("not root: setuid is not tested")
        return
    if os.statvfs(tmp).f_flag & os.ST_NOSUID:
        print("%s is mounted nosuid: setuid is not tested" % tmp)
        return
    os.chmod(tmp, 0o755)
    for what, owner, mode in (("setuid", (65534, 0), stat.S_ISUID),
                              ("setgid", (0, 65534), stat.S_ISGID)):
        path = build(tmp, what, CALLS, "-L" + FABRIC, "-lnccl",
                     "-Wl,-rpath," + FABRIC)
        os.chown(path, *owner)
        os.chmod(path, 0o755 | mode)
        why = verdict(what, [path], "no", "secure", "is %s:" % what)["why"]
        refuses(what, [path], why)
        done = subprocess.run([path], env=dict(
            ENV, LD_PRELOAD=jobs.SHIM, COMMTRACE_DIR=tmp + "/none"),
            capture_output=True, text=True)
        if done.returncode not in (0, 127) or os.path.exists(tmp + "/none"):
            jobs.fail("%s: %s" % (what, done))


def has_package(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def python(tmp):
    if has_package("torch") or has_package("nvidia.nccl"):
        print("this python has torch or NCCL: not tested with others")
        return
    site = os.path.join(tmp, "site")
    os.makedirs(os.path.join(site, "torch", "lib"))
    torch = os.path.join(site, "torch")
    script = os.path.join(tmp, "train.py")
    with open(script, "w") as f:
        f.write("#!%s\nprint('ran')\n" % sys.executable)
    os.chmod(script, 0o755)
    env = {"PYTHONPATH": site}
    open(os.path.join(torch, "__init__.py"), "w").write(
        "raise SystemExit('imported')\n")
    verdict("python without torch", [sys.executable, script], "maybe",
            "python", "neither torch", env={"PYTHONPATH": "", })
    verdict("torch for CPUs", [script], "maybe", "python",
            "has no NCCL", env=env)
    cuda = build(tmp, "libtorch_cuda.so", "int x;", "-shared", "-fPIC",
                 "-L" + FABRIC, "-Wl,--no-as-needed", "-lnccl", "-lcudart")
    shutil.copy(cuda, os.path.join(torch, "lib"))
    got = verdict("torch", [script], "yes", "python", "uses " + FABRIC,
                  env=env)
    if got["nccl_version"] != 23203 or got["runtime"] != 13000:
        jobs.fail("torch: %s" % got)
    cuda = build(tmp, "libtorch_cuda.so", INSIDE, "-shared", "-fPIC")
    shutil.copy(cuda, os.path.join(torch, "lib"))
    verdict("torch with NCCL inside", [script], "no", "static", "torch's NCCL",
            env=env)
    shutil.rmtree(torch)
    os.makedirs(os.path.join(site, "nvidia", "nccl", "lib"))
    shutil.copy(os.path.join(FABRIC, "libnccl.so.2"),
                os.path.join(site, "nvidia", "nccl", "lib"))
    verdict("NCCL's wheel", [script], "yes", "python", "nvidia.nccl", env=env)


def environment(tmp):
    path = build(tmp, "linked", CALLS, "-L" + FABRIC, "-lnccl")
    with open(os.path.join(tmp, "nccl.conf"), "w") as conf:
        conf.write("NCCL_P2P_LEVEL=SYS\nNCCL_DEBUG=INFO\n"
                   "NCCL_PROFILER_PLUGIN=theirs\n")
    os.mkfifo(os.path.join(tmp, "pipe"))
    open(os.path.join(tmp, "log"), "w").close()
    os.symlink("log", os.path.join(tmp, "alias"))
    for env, words in (
            ({"COMMTRACE_TIMING": "al"}, "none of auto|all|off|sample:N"),
            ({"COMMTRACE_MAX_MB": "0"}, "not a number from 1"),
            ({"COMMTRACE_TIMNG": "all"}, "no option of the recorder"),
            ({"COMMTRACE_MAX_MB": "1048576"}, "may write 1 TiB"),
            ({"COMMTRACE_STACKS": "off"}, "callers: COMMTRACE_STACKS"),
            ({"COMMTRACE_TIMING": "off"}, "times: COMMTRACE_TIMING"),
            ({"NCCL_DEBUG": "INFO"}, "NCCL_DEBUG=INFO stays yours"),
            ({"NCCL_DEBUG": "INFO"}, "without NCCL_DEBUG_FILE"),
            ({"NCCL_DEBUG_FILE": "/tmp/x"}, "NCCL_DEBUG is not"),
            ({"NCCL_DEBUG_SUBSYS": "INIT,all"}, "have every call logged"),
            ({"NCCL_DEBUG_SUBSYS": "INIT"}, "is asked for"),
            ({"COMMTRACE_NCCL_LOG": "tuning"}, "predictions and choices"),
            ({"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/tmp/x.%p"},
             "/tmp/x.%p is read"),
            ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "/tmp/x.%p"},
             "/tmp/x.%p is read, and has what"),
            ({"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/tmp/x.%p"},
             "without connections: NCCL_DEBUG=WARN"),
            ({"NCCL_DEBUG": "VERSION", "NCCL_DEBUG_FILE": "/tmp/x.%p"},
             "not had: NCCL_DEBUG=VERSION"),
            ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "/dev/stderr"},
             "NCCL_DEBUG_FILE=/dev/stderr is set in the environment, which is"
             " no file"),
            ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": tmp + "/alias"},
             "no file of that name"),
            ({"NCCL_ENV_PLUGIN": "theirs"}, "NCCL_ENV_PLUGIN=theirs"),
            ({"NCCL_ENV_PLUGIN": "none"}, "is asked for"),
            ({"NCCL_CONF_FILE": tmp + "/pipe"},
             "not had: %s/pipe can be read but once" % tmp),
            ({"NCCL_CONF_FILE": tmp + "/pipe", "COMMTRACE_PROFILER": "coll"},
             "not had: %s/pipe can be read but once" % tmp),
            ({"NCCL_CONF_FILE": os.path.join(tmp, "nccl.conf")},
             "NCCL_DEBUG=INFO is set in " + tmp),
            ({"COMMTRACE_NCCL_LOG": "off"}, "makes them: COMMTRACE_NCCL_LOG"),
            ({"NCCL_PROFILER_PLUGIN": "x"}, "NCCL_PROFILER_PLUGIN=x stays"),
            ({"NCCL_PROFILER_PLUGIN": "x", "COMMTRACE_PROFILER": "coll"},
             "not had: NCCL_PROFILER_PLUGIN=x is set in the environment"),
            ({"NCCL_CONF_FILE": os.path.join(tmp, "nccl.conf"),
              "COMMTRACE_PROFILER": "kernel"},
             "NCCL_PROFILER_PLUGIN=theirs is set in " + tmp),
            ({"NCCL_PROFILER_PLUGIN": "static_plugin",
              "COMMTRACE_PROFILER": "kernel"}, "and when kernels run")):
        status, got = answer(path, env=env)
        if status or not any(words in f["text"] for f in got["facts"]):
            jobs.fail("%s: %d, %s" % (env, status, got["facts"]))
    if "LD_AUDIT is set" not in doctor("--", path, env={
            "LD_AUDIT": "/nowhere.so"})[1]:
        jobs.fail("LD_AUDIT is not told")
    for env, words in (({"COMMTRACE_DISABLE": "1"}, "COMMTRACE_DISABLE"),
                       ({"COMMTRACE_DIR": "/dev/null/x"}, "nowhere"),
                       ({"COMMTRACE_DIR": "/tmp/" + "x/" * 230}, "nowhere")):
        status, got = answer(path, env=env)
        if status != 1 or got["seen"] != "no" or words not in got["why"]:
            jobs.fail("%s: %d, %s" % (env, status, got["why"]))
    limited = subprocess.run(
        ["sh", "-c", "ulimit -f 100; ulimit -n 12; exec \"$@\"", "sh",
         jobs.COMMTRACE, "doctor", "--", path], env=ENV, capture_output=True,
        text=True)
    for words in ("ulimit -f", "ulimit -n"):
        if words not in limited.stdout or limited.returncode != 1:
            jobs.fail("%s is not told: %s" % (words, limited.stdout))


def usage(tmp):
    for words in (["no-such-command"], [tmp], ["/etc/passwd"]):
        status, out, err = doctor("--", *words)
        if status != 2 or out or len(err.splitlines()) != 1:
            jobs.fail("%s: %d, %r, %r" % (words, status, out, err))
    status, out, _ = doctor()
    if status != 0 or "recorded if there are any" not in out:
        jobs.fail("without a command: %d, %s" % (status, out))


def folder(tmp):
    for words, env in ((["--dir", tmp + "/a/b"], {}),
                       ([], {"COMMTRACE_DIR": tmp + "/a/b"}),
                       (["--dir", tmp + "/a/b"], {"COMMTRACE_DIR": "/none"})):
        status, out, _ = doctor("--json", *words, env=env)
        if status or json.loads(out)["dir"] != tmp + "/a/b":
            jobs.fail("%s, %s: %s" % (words, env, out))
    if os.listdir(tmp):
        jobs.fail("doctor made %s" % os.listdir(tmp))


def golden(tmp):
    """One screen: what differs between machines has a name instead."""
    path = build(tmp, "job", CALLS, "-L" + FABRIC, "-lnccl", "-lcudart",
                 "-lcuda", "-Wl,--no-as-needed", "-lcudart")
    status, out, _ = doctor("--", path, cwd=tmp)
    if status or len(out.splitlines()) > 24 or max(
            map(len, out.splitlines())) > 100:
        jobs.fail("one screen: %d\n%s" % (status, out))
    status, got = answer(path, cwd=tmp)
    free = ("traces", "ring", "environment", "seen")
    lines = ["%s (%s): %s" % (got["seen"], got["how"], got["why"])]
    lines += ["%s: %s: %s" % (f["what"], f["status"], f["text"])
              for f in got["facts"]
              if f["what"] not in free and "libunwind" not in f["text"]]
    text = "\n".join(lines).replace(tmp, "TMP").replace(
        os.path.realpath(jobs.BUILD), "BUILD") + "\n"
    if "--update" in sys.argv:
        open(GOLDEN, "w").write(text)
    want = open(GOLDEN).read()
    if text != want:
        jobs.fail("golden text:\n%s\nnot\n%s" % (text, want))


def main():
    for test in (linked, dlopened, no_nccl, static, nccl_inside,
                 nccl_inside_is_told, foreign, setuid, python, environment, usage, folder,
                 golden):
        with jobs.Scratch() as tmp:
            test(os.path.realpath(tmp))
    print("every verdict")


if __name__ == "__main__":
    main()
