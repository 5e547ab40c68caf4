"""A rank that ends 0, 1, 5, 20 ms after its first operation, by a signal, by
_exit or by exec: whatever its trace holds by then, all its operations are
found, also where the trace's folder never came to be."""
import ctypes
import os
import signal
import subprocess
import sys
import time

import jobs

OPS = 4


def rank(way, ms):
    nccl = ctypes.CDLL("libnccl.so.2")
    cuda = ctypes.CDLL("libcudart.so.13")
    comm, buffer = ctypes.c_void_p(), ctypes.c_void_p()
    void, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    nccl.ncclAllReduce.argtypes = [void, void, size, number, number, void,
                                   void]
    cuda.cudaMalloc(ctypes.byref(buffer), size(1 << 16))
    if nccl.ncclCommInitAll(ctypes.byref(comm), 1, None):
        sys.exit("no communicator")
    for i in range(OPS):
        nccl.ncclAllReduce(buffer, buffer, 100 + i, 7, 0, comm, None)
    time.sleep(int(ms) / 1000)
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "exec":
        os.execv("/bin/true", ["true"])
    os._exit(0)


def expect_ops(folder, what):
    got = jobs.commtrace("ops", folder).count(" all_reduce ")
    if got != OPS:
        jobs.fail("%s: %d ops" % (what, got))


def main():
    ways = [(way, ms) for way in ("kill", "_exit", "exec")
            for ms in (0, 1, 5, 20)]
    env = dict(os.environ, LD_PRELOAD=jobs.SHIM,
               LD_LIBRARY_PATH=os.path.join(jobs.BUILD, "fabric"),
               FABRIC=os.path.join(jobs.MACHINES, "one_host.fabric"))
    with jobs.Scratch() as tmp:
        for way, ms in ways:
            what = "%s after %d ms" % (way, ms)
            trace = os.path.join(tmp, "%s%d" % (way, ms))
            subprocess.run([sys.executable, "-B", __file__, way, str(ms)],
                           env=dict(env, COMMTRACE_DIR=trace), check=False)
            expect_ops(trace, what)
            died = [f["code"] for f in
                    jobs.report(trace)["jobs"][0]["findings"]]
            if "PROCESS_DIED" not in died:
                jobs.fail("%s: found %s" % (what, died))
    print("early: %d ops of each of %d ranks that ended early" %
          (OPS, len(ways)))


if __name__ == "__main__":
    rank(*sys.argv[1:]) if len(sys.argv) == 3 else main()
