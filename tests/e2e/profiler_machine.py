"""The fabric as each release of NCCL that has an interface to plugins."""
import os

import jobs

# release -> version of the interface
RELEASES = {"2.27": 4, "2.28": 5, "2.30": 6, "2.32": 7}
# What NCCL's model comes to for few bytes between two GPUs on NVLink.
ALGORITHM, PROTOCOL, CHANNELS, P2P_CHANNELS = "RING", "LL", 1, 2
TOOLS = os.path.join(jobs.BUILD, "profiler_tools")


def machine(tmp, release, base="fast"):
    path = os.path.join(tmp, "%s.%s.fabric" % (base, release))
    with open(os.path.join(jobs.MACHINES, base + ".fabric")) as known:
        text = known.read()
    with open(path, "w") as file:
        file.write(text + "\nnccl_version %s\n" % release)
    return path


def tool(oldest, newest):
    return os.path.join(TOOLS, "libnccl-profiler-tool%d%d.so" % (oldest, newest))
