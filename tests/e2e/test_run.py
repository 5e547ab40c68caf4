"""`commtrace run`: the command runs as without it (output, exit status,
signals, an LD_PRELOAD of its own), and the trace is where it says."""
import os
import signal
import subprocess
import sys

import jobs


def run(*command, env=None, **options):
    return subprocess.run([jobs.COMMTRACE, "run", *command], text=True,
                          capture_output=True, timeout=60,
                          env=dict(os.environ, **(env or {})), **options)


def expect(what, got, want):
    if got != want:
        jobs.fail("%s: %r, not %r" % (what, got, want))


def statuses(tmp):
    for code in (0, 1, 7, 255):
        done = run("--", "sh", "-c", "echo out; exit %d" % code, cwd=tmp)
        expect("exit status", done.returncode, code)
        expect("stdout", done.stdout, "out\n")
        if "nothing recorded" not in done.stderr:
            jobs.fail("says nothing about an empty trace: %r" % done.stderr)
    done = run("--", "sh", "-c", "kill -KILL $$", cwd=tmp)
    expect("death of the command", done.returncode, -signal.SIGKILL)
    expect("unknown command", run("--", "no-such-command", cwd=tmp).returncode,
           127)
    expect("no command", run(cwd=tmp).returncode, 2)
    expect("what empty traces leave behind", os.listdir(tmp), [])


def passes_signals(tmp):
    command = "trap 'echo got; exit 3' TERM; echo ready; while :; do sleep .1; done"
    p = subprocess.Popen([jobs.COMMTRACE, "run", "--", "sh", "-c", command],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True, cwd=tmp)
    expect("start", p.stdout.readline(), "ready\n")
    p.terminate()
    expect("output after SIGTERM", p.stdout.read(), "got\n")
    expect("status after SIGTERM", p.wait(30), 3)


def keeps_preload(tmp):
    done = run("--", "sh", "-c", "echo $LD_PRELOAD", cwd=tmp,
               env={"LD_PRELOAD": "libSegFault-not-there.so"})
    expect("LD_PRELOAD", done.stdout,
           "%s:libSegFault-not-there.so\n" % os.path.realpath(jobs.SHIM))


def records(tmp):
    trace = os.path.join(tmp, "trace")
    env = {"FABRIC": os.path.join(jobs.MACHINES, "fast.fabric")}
    samples = os.path.join(jobs.BUILD, "samples")
    done = run("--dir", trace, "--", os.path.join(samples, "launch"), "-n", "4",
               "--", os.path.join(samples, "train3d"), "--tp", "2", "--dp", "2",
               env=env)
    expect("status of a job", done.returncode, 0)
    expect("traces", len(jobs.traces(trace)), 4)
    if "commtrace report %s" % trace not in done.stderr:
        jobs.fail("does not say what comes next: %r" % done.stderr)
    jobs.report(trace)


def main():
    for test in (statuses, passes_signals, keeps_preload, records):
        with jobs.Scratch() as tmp:
            test(tmp)
    print("exit status, signals, preload and traces as they should be")


if __name__ == "__main__":
    sys.exit(main())
