"""nccl_log_job.py [NAME=VALUE...]: settings made by the program itself before
its first call; then a communicator, and what a child sees of NCCL's."""
import ctypes
import os
import subprocess
import sys

for setting in sys.argv[1:]:
    name, value = setting.split("=", 1)
    os.environ[name] = value
nccl = ctypes.CDLL("libnccl.so.2")
assert ctypes.CDLL("libcudart.so.13").cudaSetDevice(0) == 0


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


unique, comm = Id(), ctypes.c_void_p()
assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p),
                                  ctypes.c_int, Id, ctypes.c_int]
assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0) == 0
# The first inherits what C has, the second what Python has.
os.system("env | grep -E '^NCCL_|PUBLISHED' | sort")
print(*sorted(line for line in subprocess.run(
    ["env"], env=os.environ, capture_output=True, text=True).stdout.split("\n")
    if line.startswith("NCCL_")), flush=True)
assert nccl.ncclCommDestroy(comm) == 0
print("done", os.getpid())
