"""nccl_log_job.py [NAME=VALUE...] [WAY]: settings made by the program itself
before its first call; then a communicator, and what a child sees of NCCL's.
Ways: nobody, a user without rights whose umask takes all; limit, files may not
grow any more once there is a communicator; huge, somebody makes the log so; much, NCCL
says what takes more memory than the log may, once it has been read; flood, more
comes at once than may wait to be read."""
import ctypes
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time

ways = [arg for arg in sys.argv[1:] if "=" not in arg]
for setting in sys.argv[1:]:
    if "=" in setting:
        name, value = setting.split("=", 1)
        os.environ[name] = value
if "nobody" in ways and os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
if "nobody" in ways:
    os.umask(0o777)
nccl = ctypes.CDLL("libnccl.so.2")
assert ctypes.CDLL("libcudart.so.13").cudaSetDevice(0) == 0


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


unique, comm = Id(), ctypes.c_void_p()
assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
os.system("ls -l /proc/self/fd | grep -c nccl")
nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p),
                                  ctypes.c_int, Id, ctypes.c_int]
assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0) == 0
# Children with the recorder would take it out of theirs: it must be gone here.
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
entries = []
while environ[len(entries)] is not None:
    entries.append(environ[len(entries)].decode())
print(*sorted(entry for entry in entries if entry.startswith("NCCL_") or
              "PUBLISHED" in entry), flush=True)
# The first inherits what C has, the second what Python has.
os.system("env | grep -E '^NCCL_|PUBLISHED' | sort")
print(*sorted(line for line in subprocess.run(
    ["env"], env=os.environ, capture_output=True, text=True).stdout.split("\n")
    if line.startswith("NCCL_")), flush=True)
if "huge" in ways:
    os.truncate(os.environ["NCCL_DEBUG_FILE"], 1 << 30)
if "limit" in ways:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    for _ in range(3):
        assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
        assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0) == 0
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def log_files():
    """NCCL's descriptors of the recorder's file."""
    for fd in os.listdir("/proc/self/fd"):
        link = "/proc/self/fd/" + fd
        if os.path.islink(link) and ".nccl" in os.readlink(link) and \
                fcntl.fcntl(int(fd), fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
            yield int(fd)


if "much" in ways:
    for fd in log_files():
        os.write(fd, (b"x" * 1023 + b"\n") * 2048)
        while os.fstat(fd).st_blocks * 512 > 1 << 20:
            time.sleep(.01)
        print("read", file=sys.stderr)
if "flood" in ways:
    for fd in log_files():
        os.ftruncate(fd, 9 << 20)
        while os.readlink("/proc/self/fd/%d" % fd) != "/dev/null":
            time.sleep(.01)
        print("cut", file=sys.stderr)
    assert nccl.ncclCommDestroy(comm) == 0
    assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0) == 0
assert nccl.ncclCommDestroy(comm) == 0
print("done", os.getpid())
