"""Whatever way a program takes to NCCL's functions, it gets with the recorder
what it gets without: the same copy, the same NULL, the same words of dlerror().
Run as test_ways.py FOLDER."""
import os
import subprocess
import sys

import jobs


def run(program, case, folder, preload, env=None):
    e = dict(os.environ, **(env or {}))
    if preload:
        e["LD_PRELOAD"] = ":".join(preload)
    done = subprocess.run([os.path.join(folder, program), case, folder], env=e,
                          capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def same(name, program, case, folder, others=(), orders=(("shim",),), env=None):
    """With the recorder at each place among other preloaded libraries."""
    paths = {o: os.path.join(folder, "lib%s.so" % o) for o in others}
    bare = run(program, case, folder, [paths[o] for o in others], env)
    if bare[0] != 0 or not bare[1]:
        jobs.fail("%s: %s" % (name, bare))
    for order in orders:
        with jobs.Scratch() as tmp:
            preload = [paths.get(o, jobs.SHIM) for o in order]
            got = run(program, case, folder, preload,
                      dict(env or {}, COMMTRACE_DIR=os.path.join(tmp, "trace")))
        for g, b in zip(got[1].splitlines(), bare[1].splitlines()):
            if g != b:
                jobs.fail("%s, %s: %r instead of %r" % (name, order, g, b))
        if got != bare:
            jobs.fail("%s, %s: %s instead of %s" % (name, order, got, bare))
    print("%s: %d lines" % (name, bare[1].count("\n")))
    return bare[1]


def main():
    folder, = sys.argv[1:]
    both = (("shim", "ways_tool"), ("ways_tool", "shim"))
    text = same("program", "ways_main", "program", folder)
    if "first handle ncclGroupStart: 101" not in text or "NULL" not in text:
        jobs.fail("the program does not see what it is to see:\n" + text)
    text = same("modules", "ways_main", "modules", folder)
    for line in ("one linked: 101", "two linked: 102", "dependency linked: 103",
                 "constructor linked: 101", "one again linked: 101"):
        if line not in text:
            jobs.fail("modules: no line %r in\n%s" % (line, text))
    same("five copies", "ways_main", "many", folder)
    for _ in range(10):
        same("16 threads", "ways_main", "threads", folder)
    same("linked", "ways_linked", "linked", folder)
    same("lazy binding", "ways_linked", "linked", folder,
         env={"LD_BIND_NOT": "1"})
    text = same("with a tool", "ways_linked", "linked", folder, ["ways_tool"],
                both)
    if "linked: 1101" not in text:
        jobs.fail("the tool does nothing:\n" + text)
    both = (("shim", "ways_malloc"), ("ways_malloc", "shim"))
    for case in ("program", "modules", "threads"):
        same("malloc that looks up, " + case, "ways_main", case, folder,
             ["ways_malloc"], both)
    both = (("shim", "ways_constructor"), ("ways_constructor", "shim"))
    same("preloaded constructor", "ways_main", "program", folder,
         ["ways_constructor"], both)


if __name__ == "__main__":
    main()
