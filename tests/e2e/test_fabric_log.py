"""What the stand-in NCCL says in its log is what its machine and the variables
make of it: who is connected to whom by what, in the words of each release. The
log is read here by expressions of this test alone."""
import collections
import os
import re
import subprocess
import sys

import jobs
import profiler_machine

OLDEST = os.path.join(jobs.BUILD, "tests", "oldest")
HOST = os.uname().nodename.split(".")[0]
PREFIX = re.compile(r"%s:(\d+):(\d+) \[(\d+)\] NCCL INFO (.*)" %
                    re.escape(HOST))
VIA = re.compile(r"Channel (\d+)(?:/(\d+))? : (\d+)\[(\w+)\] -> (\d+)\[(\w+)\]"
                 r"(?: \[(send|receive)\])? via (.*)")
ORDER = re.compile(r"Channel (\d+)/(\d+) : ?([ \d]+)$")
RANKS = 8


def machine(tmp, name, release=None):
    """A machine of the folder, with links that take no time."""
    path = os.path.join(tmp, "%s.%s.fabric" % (name, release))
    with open(os.path.join(jobs.MACHINES, name + ".fabric")) as known:
        text = re.sub(r"alpha_us=\d+ bandwidth=\w+/s",
                      "alpha_us=1 bandwidth=100GB/s", known.read())
    with open(path, "w") as file:
        file.write(text)
        if release:
            file.write("\nnccl_version %s\n" % release)
    return path


def run(tmp, fabric, argv, env, ranks=RANKS):
    e = {k: v for k, v in os.environ.items() if not k.startswith("NCCL_")}
    e.update(env, FABRIC=fabric)
    done = subprocess.run(
        [os.path.join(jobs.BUILD, "samples", "launch"), "-n", str(ranks),
         "--", *argv], env=e, capture_output=True, text=True, timeout=120,
        cwd=tmp)
    if done.returncode:
        jobs.fail("%s: exit %d\n%s" % (argv, done.returncode, done.stderr))
    return done.stdout


def log(tmp, fabric, env, argv=(OLDEST,), subsystems="INIT,GRAPH,NET,ENV"):
    """Each rank's lines without their prefix, by rank, and stdout."""
    folder = os.path.join(tmp, "log")
    os.makedirs(folder)
    stdout = run(tmp, fabric, list(argv),
                 dict(env, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS=subsystems,
                      NCCL_DEBUG_FILE=os.path.join(folder, "%h.%p")))
    logs = {}
    for name in os.listdir(folder):
        host, pid = name.rsplit(".", 1)
        with open(os.path.join(folder, name)) as file:
            text = file.read()
        lines = []
        for line in text.splitlines():
            found = PREFIX.fullmatch(line)
            if not found or found[1] != pid or host != HOST:
                jobs.fail("%s: %r is no line of it" % (name, line))
            lines.append(found[4])
        rank = int(re.search(r"comm 0x\w+ rank (\d+) nranks 8", text)[1])
        logs[rank] = lines
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
    if sorted(logs) != list(range(RANKS)):
        jobs.fail("logs of ranks %s" % sorted(logs))
    return logs, stdout


def ways(logs, gpus=4):
    """(channel, connector, src, dst) -> {end: via}; an end once, and told by
    whom it is of."""
    found = collections.defaultdict(dict)
    for rank, lines in logs.items():
        for line in lines:
            m = VIA.match(line)
            if not m:
                continue
            src, dst, end = int(m[3]), int(m[5]), m[7]
            key = int(m[1]), int(m[2] or 0), src, dst
            assert rank == (dst if end == "receive" else src), line
            assert end not in found[key], line
            assert (int(m[4]), int(m[6])) == (src % gpus, dst % gpus), line
            found[key][end] = m[8]
    return found


def rings(logs):
    """Orders of ranks, by channel; every rank says its own place in them."""
    orders = {}
    for line in logs[0]:
        m = ORDER.match(line)
        if m:
            orders[int(m[1])] = [int(r) for r in m[3].split()]
            count = int(m[2])
    assert len(orders) == count, orders
    for channel, order in orders.items():
        assert sorted(order) == list(range(RANKS)), order
        for i, rank in enumerate(order):
            want = "Ring %02d : %d -> %d -> %d" % (
                channel, order[i - 1], rank, order[(i + 1) % RANKS])
            assert logs[rank].count(want) == 1, (want, logs[rank])
    assert orders[0] == list(range(RANKS)), orders[0]
    return orders


class Case:
    """nic: GPUs of a port; pxn: rings leave by the port where they came in."""

    def __init__(self, name, net, inside, nic=1, pxn=False, one_host=False,
                 far=None, **env):
        self.name, self.net, self.inside = name, net, inside
        self.nic, self.pxn, self.one_host, self.env = nic, pxn, one_host, env
        self.far = far  # between ranks of a host beyond the switch

    def way(self, order, src, dst):
        """{end: via} of a step of the ring."""
        if self.one_host or src // 4 == dst // 4:
            near = self.far is None or src // 4 == dst // 4
            inside = self.inside if near else self.far
            if not inside.startswith("NET"):
                return {None: inside}
        first = next(r for r in order if r // 4 == src // 4)
        own, entry = src % 4 // self.nic, first % 4 // self.nic
        proxy = ""
        if self.pxn and own != entry:
            by = src // 4 * 4 + entry * self.nic
            own, proxy = entry, "(%d)" % by
        return {"send": self.net % ("%d%s" % (own, proxy)),
                "receive": self.net % (dst % 4 // self.nic)}


IB = "NET/IB/%s/GDRDMA"
SOCKET = "NET/Socket/%s"
CUMEM = "P2P/CUMEM"
SHM = "SHM/direct"
CASES = [
    Case("two_hosts", IB, CUMEM, pxn=True),
    Case("dgx_h100", IB, CUMEM, pxn=True),
    Case("dgx_h100", IB, CUMEM, NCCL_PXN_DISABLE="1"),
    Case("dgx_h100", IB, SHM, NCCL_P2P_DISABLE="1"),
    Case("dgx_h100", IB, "P2P/IPC", pxn=True, NCCL_CUMEM_ENABLE="0"),
    Case("dgx_h100", SOCKET, CUMEM, nic=4, NCCL_IB_DISABLE="1"),
    Case("dgx_h100", SOCKET, CUMEM, nic=4, NCCL_NET="Socket"),
    Case("dgx_h100", SOCKET, CUMEM, nic=4, NCCL_IB_HCA="mthca"),
    Case("dgx_h100", "NET/IB/%s", CUMEM, NCCL_NET_GDR_LEVEL="LOC"),
    Case("roce", IB, "P2P/CUMEM/read", nic=2, pxn=True),
    Case("slingshot", "NET/AWS Libfabric/%s/GDRDMA", "P2P/CUMEM/read",
         pxn=True),
    Case("slingshot", SOCKET, "P2P/CUMEM/read", nic=4, NCCL_NET_PLUGIN="none"),
    Case("gb200_nvl72", None, "P2P/MNNVL", one_host=True),
    Case("gb200_nvl72", IB, CUMEM, pxn=True, NCCL_MNNVL_ENABLE="0"),
    Case("ib", "NET/IB/%s", SHM, nic=4),
    Case("ib", "NET/IB/%s", CUMEM, nic=4, NCCL_P2P_LEVEL="SYS"),
    Case("tcp", SOCKET, SHM, nic=4),
    Case("tcp", SOCKET, SOCKET, nic=4, NCCL_SHM_DISABLE="1"),
    Case("pcie_box", None, CUMEM, one_host=True, far=SHM),
    Case("rtx4090_box", None, SHM, one_host=True),
]


def check_case(tmp, case):
    one_box = case.name in ("pcie_box", "rtx4090_box")
    logs, _ = log(tmp, machine(tmp, case.name), dict(case.env,
                                                     NCCL_ALGO="Ring"))
    orders = rings(logs)
    want = {}
    for channel, order in orders.items():
        for i, src in enumerate(order):
            dst = order[(i + 1) % RANKS]
            want[channel, 0, src, dst] = case.way(order, src, dst)
    got = ways(logs, 8 if one_box else 4)
    if case.env.get("NCCL_CUMEM_ENABLE") == "0":  # connects trees at once, too
        got = {key: got[key] for key in want}
    for key in sorted(set(want) | set(got)):
        if want.get(key) != got.get(key):
            jobs.fail("%s %s: channel, connector, from, to %s: %s instead of %s"
                      % (case.name, case.env, key, got.get(key),
                         want.get(key)))
    for lines in logs.values():
        assert sum(l.startswith("Connected all rings") for l in lines) == 1
        for name, value in case.env.items():
            said = [l for l in lines if l.startswith(name + " set ")]
            if name == "NCCL_NET":  # which NCCL says nothing of
                continue
            assert len(said) == 1 and value in said[0], (name, said)
    network = case.net or (SOCKET if one_box else IB)
    said = "Using network " + network.split("/")[1]
    assert all(said in lines for lines in logs.values()), said
    return len(got)


def machines():
    for case in CASES:
        with jobs.Scratch() as tmp:
            n = check_case(tmp, case)
        print("%s %s: %d connections" % (case.name, case.env or "", n))


# What each release says of one communicator of eight ranks on two hosts.
START = r"comm (0x\w+) rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 10000 commId "
RELEASES = {
    "2.4": [r"Channel 00 :    0   1   2   3   4   5   6   7",
            r"Ring 00 : 7 -> 0 \[receive\] via NET/IB/0/GDRDMA",
            r"Ring 00 : 0\[0\] -> 1\[1\] via P2P/IPC",
            r"comm (0x\w+) rank 0 nranks 8 cudaDev 0 nvmlDev 0 - "
            r"Init COMPLETE"],
    "2.12": [r"Pattern 4, crossNic 0, nChannels 4, speed 48.0+/48.0+, type "
             r"NVL/PIX, sameChannels 1",
             r"Channel 00 : 0\[10000\] -> 1\[11000\] via P2P/IPC",
             r"Channel 01/0 : 0\[10000\] -> 5\[11000\] \[send\] via "
             r"NET/IB/1\(1\)/GDRDMA",
             r"8 coll channels, 8 p2p channels, 1 p2p channels per peer",
             r"comm (0x\w+) rank 0 nranks 8 cudaDev 0 busId 10000 - "
             r"Init COMPLETE",
             r"comm (0x\w+) rank 0 nranks 8 cudaDev 0 busId 10000 - "
             r"Destroy COMPLETE"],
    "2.19": [START + r"0x\w+ - Init START",
             r"Channel 00/0 : 0\[0\] -> 1\[1\] via P2P/CUMEM",
             r"Connected all rings", r"Connected all trees",
             r"8 coll channels, 16 nvls channels, 8 p2p channels, 1 p2p "
             r"channels per peer", START + r"0x\w+ - Init COMPLETE"],
    "2.23": [r"ncclCommInitRank " + START + r"0x\w+ - Init START",
             r"comm (0x\w+) rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 "
             r"MNNVL 0", r"Connected all rings"],
    "2.27": [r"ncclCommInitRank " + START + r"0x\w+ - Init START",
             r"Connected all rings, use ring PXN 1 GDR 1"],
    "2.30": [r"\[Rank 0\] ncclCommInitRank " + START + r"0x\w+ - Init START",
             r"ncclCommInitRank " + START + r"0x\w+ - Init COMPLETE"],
    "2.32": [r"\[Rank 0\] ncclCommInitRank " + START + r"0x\w+ - Init START",
             r"8 coll channels, 8 collnet channels, 16 nvls channels, 8 p2p "
             r"channels, 1 p2p channels per peer"],
}


def releases():
    for release, shapes in RELEASES.items():
        with jobs.Scratch() as tmp:
            logs, stdout = log(tmp, machine(tmp, "dgx_h100", release),
                               {"NCCL_ALGO": "Ring"})
        comms = set()
        for shape in shapes:
            found = [m for m in (re.fullmatch(shape, line) for line in logs[0])
                     if m]
            if len(found) != 1:
                jobs.fail("%s: %d lines like %r in\n%s" % (
                    release, len(found), shape, "\n".join(logs[0])))
            comms.update(found[0].groups())
        assert len(comms) <= 1, comms
        version = re.compile(r"NCCL version %s\.\d+\+cuda\d+\.\d" % release)
        assert sum(bool(version.fullmatch(l)) for l in logs[0]) == 1
        # Before 2.22 it is on stdout, too, wherever the log goes.
        old = tuple(map(int, release.split("."))) < (2, 22)
        if bool(re.search(r"^NCCL version", stdout, re.M)) != old:
            jobs.fail("%s: stdout\n%s" % (release, stdout))
        print("%s: %d shapes" % (release, len(shapes)))


def sends():
    """A send or receive connects at its first use, on a connector of its own."""
    with jobs.Scratch() as tmp:
        logs, _ = log(tmp, machine(tmp, "dgx_h100"), {}, [
            os.path.join(jobs.BUILD, "samples", "sweep"), "--ops", "sendrecv",
            "--min", "4K", "--max", "4K", "--iters", "2", "--warmup", "0"])
    pairs = collections.Counter()
    for (_, connector, src, dst), ends in ways(logs).items():
        if not connector:  # the job's own collectives
            continue
        assert dst == (src + 1) % RANKS, (src, dst)
        pairs[src, dst] += 1
        if src % 4 == 3:  # by the NIC that is the receiver's on its own host
            assert ends == {
                "send": "NET/IB/0(%d)/GDRDMA/Shared" % (src - 3),
                "receive": "NET/IB/0/GDRDMA/Shared"}, ends
        else:
            assert ends == {None: CUMEM}, ends
    assert len(pairs) == RANKS and set(pairs.values()) == {1}, pairs
    print("sends: %d connections" % sum(pairs.values()))


def nvls():
    """Switches add within a host; its ranks exchange with their like in the
    other one, and no line tells of the way to the switches."""
    with jobs.Scratch() as tmp:
        logs, _ = log(tmp, machine(tmp, "dgx_h100"),
                      {"NCCL_ALGO": "NVLSTree"},
                      [os.path.join(jobs.BUILD, "samples", "sweep"), "--ops",
                       "all_reduce", "--min", "4K", "--max", "4K", "--iters",
                       "1", "--warmup", "0"])
    found = collections.Counter()
    for (channel, _, src, dst), ends in ways(logs).items():
        assert abs(src - dst) == 4 and src % 4 == channel % 4, (src, dst)
        assert ends == {end: IB % (src % 4) for end in ("send", "receive")}
        found[src, dst] += 1
    assert len(found) == 8 and set(found.values()) == {4}, found
    print("NVLS: %d connections" % sum(found.values()))


def cells(lines):
    """(op, algorithm, protocol) -> latency, bandwidth"""
    table, names = {}, []
    for line in lines:
        part = [p.strip() for p in line.split("|")[:-1]]
        if line.startswith("  Algorithm"):
            names = part[1:]
        elif part and part[0] in ("Broadcast", "Reduce", "AllGather",
                                  "ReduceScatter", "AllReduce"):
            for i, cell in enumerate(part[1:]):
                lat, bw = map(float, cell.split("/"))
                table[part[0], names[i // 3].upper(),
                      ("LL", "LL128", "SIMPLE")[i % 3]] = lat, bw
    assert len(table) == 5 * 7 * 3, len(table)
    return table


CHOSEN = re.compile(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) "
                    r"channel{Lo..Hi}={0..(\d+)}")
REDUCE = [os.path.join(jobs.BUILD, "samples", "sweep"), "--ops", "all_reduce",
          "--min", "1K", "--max", "16M", "--factor", "4", "--iters", "1",
          "--warmup", "0"]


def choices():
    """Rank 0 tells of each collective what its table says is fastest."""
    seen = set()
    with jobs.Scratch() as tmp:
        logs, _ = log(tmp, machine(tmp, "one_host"), {}, REDUCE, "INIT,TUNING")
    for rank in range(1, RANKS):
        assert not any("|" in l or "->" in l and "Bytes" in l
                       for l in logs[rank] if "threadThr" not in l)
    first = next(i for i, l in enumerate(logs[0]) if "Init COMPLETE" in l)
    table = cells(logs[0][:first])
    for line in logs[0]:
        m = CHOSEN.fullmatch(line)
        if not m:
            continue
        times = {(a, p): lat + int(m[2]) / bw / 1e3
                 for (op, a, p), (lat, bw) in table.items()
                 if op == m[1] and bw > 0 and a != "TREE"}
        best = min(times.values())
        if m[3] != "TREE" and times[m[3], m[4]] > 1.02 * best:
            jobs.fail("%s, but %s" % (line, times))
        seen.add((m[3], m[4]))
    assert ("RING", "LL") in seen and ("NVLS", "SIMPLE") in seen, seen
    with jobs.Scratch() as tmp:
        logs, _ = log(tmp, machine(tmp, "one_host"),
                      {"NCCL_ALGO": "ring;allreduce:tree",
                       "NCCL_PROTO": "^LL,LL128"}, REDUCE, "TUNING,INIT")
    told = [CHOSEN.fullmatch(l) for l in logs[0]]
    told = {m.group(1, 3, 4) for m in told if m}
    assert told == {("AllReduce", "TREE", "SIMPLE")}, told
    print("choices:", sorted(seen))


def plugins():
    """A profiler plugin is told of each collective what the log says."""
    for release in profiler_machine.RELEASES:
        with jobs.Scratch() as tmp:
            logs, _ = log(tmp, machine(tmp, "one_host", release), {
                "NCCL_PROFILER_PLUGIN": profiler_machine.tool(4, 7),
                "TOOL_LOG": os.path.join(tmp, "told"), "TOOL_MASK": "2"},
                          REDUCE, "INIT,TUNING")
            with open(os.path.join(tmp, "told.0")) as file:
                told = re.findall(
                    r"coll\+ (\w+) (\d+) ncclFloat32 root 0 channels (\d+) "
                    r"(\w+) (\w+)", file.read())
        said = [m.groups() for m in map(CHOSEN.fullmatch, logs[0]) if m]
        said = [(func, int(size) // 4, int(last) + 1, algorithm, protocol)
                for func, size, algorithm, protocol, last in said]
        told = [(func, int(count), int(channels), algorithm, protocol)
                for func, count, channels, algorithm, protocol in told]
        assert len({count for _, count, *_ in said}) == 9, said
        if said != told:
            jobs.fail("%s: plugin %s, log %s" % (release, told, said))
        print("%s: plugin and log agree on %d" % (release, len(said)))


def library(release=None):
    folder = os.path.join(jobs.BUILD, "fabric")
    return os.path.join(folder, "nccl-" + release if release else "",
                        "libnccl.so.2")


ALONE = """
import ctypes, os, sys
nccl = ctypes.CDLL(%r)
def comm():
    uid, comm = (ctypes.c_char * 128)(), ctypes.c_void_p()
    assert not nccl.ncclGetUniqueId(ctypes.byref(uid))
    class Id(ctypes.Structure):
        _fields_ = [("internal", ctypes.c_char * 128)]
    assert not nccl.ncclCommInitRank(ctypes.byref(comm), 1,
                                     Id.from_buffer(uid), 0)
    assert not nccl.ncclCommDestroy(comm)
"""


def alone(text, env, release=None):
    """stdout of one process with one rank."""
    e = {k: v for k, v in os.environ.items()
         if not k.startswith("NCCL_") and k not in ("RANK", "FABRIC")}
    e.update(env)
    done = subprocess.run([sys.executable, "-c",
                           ALONE % library(release) + text],
                          env=e, capture_output=True, text=True, timeout=60)
    if done.returncode or done.stderr:
        jobs.fail("exit %d\n%s" % (done.returncode, done.stderr))
    return done.stdout


def settings():
    assert alone("comm()", {}) == ""
    version = alone("comm()", {"NCCL_DEBUG": "version"})
    assert re.fullmatch(r"NCCL version 2.32.\d+\+cuda\d+\.\d\n", version)
    info = alone("comm()", {"NCCL_DEBUG": "INFO"})
    assert "Init COMPLETE" in info and "Bootstrap" in info
    assert "Using network" in info and "Ring 00" not in info
    only = alone("comm()", {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "net"})
    assert "NET/" in only and "Init COMPLETE" not in only
    assert "Bootstrap" not in only
    others = alone("comm()", {"NCCL_DEBUG": "INFO",
                              "NCCL_DEBUG_SUBSYS": "^INIT,BOOTSTRAP"})
    assert "Bootstrap" not in others and "Init COMPLETE" not in others
    assert "NET/" in others
    warn = alone("comm(); nccl.ncclCommInitRank(None, 1, (ctypes.c_char * 128)"
                 "(), 0)", {"NCCL_DEBUG": "WARN"})
    assert re.search(r"\n\[[-\d: ]+\] %s:\d+:\d+ \[0\] \S+ NCCL WARN " %
                     re.escape(HOST), warn), warn
    with jobs.Scratch() as tmp:
        conf = os.path.join(tmp, "nccl.conf")
        with open(conf, "w") as file:
            file.write("# of the user's\nNCCL_DEBUG=INFO\n"
                       "NCCL_DEBUG_SUBSYS=NET\n"
                       "NCCL_DEBUG_FILE=%s/log.%%h.%%p.%%%%\n" % tmp)
        pid = "print(os.getpid())"
        out = alone("comm(); " + pid, {"NCCL_CONF_FILE": conf})
        path = "%s/log.%s.%d.%%" % (tmp, HOST, int(out))
        with open(path) as file:
            assert "NET/" in file.read()
        # The environment comes first; releases before 2.23 know no such file.
        out = alone("comm(); " + pid, {"NCCL_CONF_FILE": conf,
                                       "NCCL_DEBUG": "VERSION"})
        assert out.startswith("NCCL version"), out
        assert alone("comm()", {"NCCL_CONF_FILE": conf}, "2.19") == ""
        # The level is read anew after a reset, and the file is let go.
        out = alone(
            "comm(); os.environ['NCCL_DEBUG_FILE'] = %r; "
            "nccl.ncclResetDebugInit(); comm(); "
            "os.environ['NCCL_DEBUG'] = ''; nccl.ncclResetDebugInit(); comm()"
            % (tmp + "/second"),
            {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": tmp + "/first"})
        assert out == "", out
        for name in ("first", "second"):
            with open(os.path.join(tmp, name)) as file:
                assert file.read().count("Init COMPLETE") == 1, name
    print("settings")


def main():
    for part in (settings, releases, sends, nvls, choices, plugins,
                 machines):
        part()


if __name__ == "__main__":
    main()
