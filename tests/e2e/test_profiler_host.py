"""The stand-in NCCL tells a profiler plugin what NCCL tells, in the words and
in the order of each release: what a plugin wrote down (profiler_tool.c) of a
job's calls (profiler_job.c) is exactly what NCCL's source says."""
import os

import jobs
from profiler_machine import (ALGORITHM, CHANNELS, PROTOCOL, RELEASES, machine,
                              tool)

GROUP, COLL, P2P, KERNEL = 1, 2, 4, 64
LAUNCH = 1 << 11
RANKS = 2


class Expected:
    """What one rank's plugin is told, host and kernels apart."""

    def __init__(self, version, mask, rank):
        self.version, self.mask, self.rank = version, mask, rank
        self.host, self.kernels = [], []
        self.calls = version >= 5

    def say(self, *lines):
        self.host += ["app " + line for line in lines]

    def call(self, op, captured, depth):
        if not self.calls:
            return
        func, count, kind = op[0], op[1], "p2p" if len(op) > 3 else "coll"
        if not self.open:
            self.say("group_api+ depth %d captured %d" % (depth, captured),
                     "group_api= 23")
        self.open = True
        self.say("%s_api+ %s %d ncclInt32 captured %d parent group_api" % (
            kind, func, count, captured), kind + "_api-")

    def task(self, op, who):
        parent = "_api" if self.calls else None
        if len(op) > 3:
            func, count, _, peer = op
            channels = 2
            self.host.append("%s p2p+ %s %d ncclInt32 peer %d channels 2 parent"
                             " %s" % (who, func, count, peer,
                                      "p2p" + parent if parent else "group"))
        else:
            func, count, root = op
            channels = CHANNELS
            as_bytes = func in ("AllGather", "Broadcast")
            self.host.append(
                "%s coll+ %s %d %s root %d channels %d %s %s parent %s" % (
                    who, func, count * 4 if as_bytes else count,
                    "ncclInt8" if as_bytes else "ncclInt32", root, channels,
                    ALGORITHM, PROTOCOL,
                    "coll" + parent if parent else "group"))
        return "p2p" if len(op) > 3 else "coll", channels

    def plan(self, ops, who="app"):
        """In the order in which NCCL launches; kernels run as called."""
        order = sorted(ops, key=lambda op: (len(op) > 3,
                                            len(op) <= 3 and -op[1]))
        self.host.append(who + " group+")
        kinds = {op: self.task(op, who) for op in order}
        self.host += ["%s %s-" % (who, kinds[op][0]) for op in order]
        self.host.append(who + " group-")
        if not self.mask & KERNEL:
            return
        for op in ops:
            size = 4 if op[0] in ("AllGather", "Broadcast") else 1
            for c in range(kinds[op][1]):
                self.kernels.append("kernel+ %s %d channel %d" % (
                    op[0], size * op[1], c))

    def issue(self, ops, captured=False, grouped=False):
        self.open = False
        for op in ops:
            self.call(op, captured, 2 if grouped else 1)
        if self.calls:
            self.say("group_api= 24")
        # Since 2.29.2 NCCL forgets to ask what is wanted of a broadcast.
        ops = [op for op in ops if op[0] != "Broadcast" or self.version < 6]
        if ops and self.calls and self.mask & LAUNCH:
            self.say("launch+ parent group_api", "launch-")
        if ops and not captured:
            self.plan(ops)
        if self.calls:
            self.say("group_api-")

    def replay(self, *plans):
        told = self.mask & KERNEL or self.version >= 7
        for ops in plans:
            if told:
                self.plan(ops, "other")

    def exchange(self, count):
        return [("Send", count, 0, 1 - self.rank),
                ("Recv", count, 0, 1 - self.rank)]


def reduce(count):
    return ("AllReduce", count, 0)


def plain(e):
    for op in (reduce(1000), ("AllGather", 100, 0), ("ReduceScatter", 100, 0),
               ("Broadcast", 100, 1), ("Reduce", 100, 0)):
        e.issue([op])
    e.issue(e.exchange(50), grouped=True)
    e.issue([reduce(10)])


def group(e):
    e.issue([reduce(10), reduce(1000), *e.exchange(60), reduce(500)],
            grouped=True)


def graph(e):
    graphs = []
    for i in range(2):
        first, second = [reduce(300 if i else 100)], e.exchange(40)
        e.issue(first, captured=True)
        e.issue(second, captured=True, grouped=True)
        graphs.append((first, second))
        e.issue([reduce(200)])
    e.replay(*graphs[0])
    e.issue([reduce(100)])
    e.replay(*graphs[1])
    e.replay(*graphs[0])
    e.issue(e.exchange(40), grouped=True)


def comms(e):
    e.say("init 1 nodes 1 ranks 1 rank 0")
    for i in range(3):
        e.say("init %d nodes 1 ranks 2 rank %d" % (i + 2, e.rank))
        e.issue([reduce(100 + i)])
        e.issue([reduce(20)])
        e.say("finalize")
    e.say("finalize")


def read(log, rank):
    """Lines of the host, in their order, and those of kernels."""
    host, kernels = [], []
    with open("%s.%d" % (log, rank)) as file:
        for line in file.read().splitlines():
            who, what = line.split(" ", 1)
            if what.startswith("kernel"):
                if who == "app":
                    jobs.fail("the launching thread tells of kernels")
                kernels.append(what)
            else:
                host.append(line)
    return host, kernels


def whole(what, lines):
    """Kernels' channels, each with a beginning, a time and an end in this
    order: others may come between."""
    found = {}
    for line in lines:
        verb, rest = line.split(" ", 1)
        name, number = rest.split(" #")
        found.setdefault(int(number.split()[0]), []).append(
            " ".join([verb, name] + number.split()[1:]))
    for channel in found.values():
        name = channel[0].split(" ", 1)[1]
        differ(what, channel, ["kernel+ " + name, "kernel= %s later" % name,
                               "kernel- " + name])
    return sorted(channel[0] for channel in found.values())


def by_thread(lines):
    """The driver's thread runs beside the program's."""
    return {who: [line for line in lines if line.startswith(who)]
            for who in ("app", "other")}


def differ(what, found, wanted):
    for i, (f, w) in enumerate(zip(found + ["(end)"], wanted + ["(end)"])):
        if f != w:
            jobs.fail("%s, line %d:\n  found  %s\n  wanted %s\n  after  %s" % (
                what, i, f, w, found[max(0, i - 3):i]))


def check(tmp, release, case, mask, plugin, version, extra=()):
    log = os.path.join(tmp, "log%d" % len(os.listdir(tmp)))
    env = {"FABRIC": machine(tmp, release), "NCCL_PROFILER_PLUGIN": plugin,
           "JOB_PLUGIN": plugin, "TOOL_LOG": log, "TOOL_MASK": str(mask)}
    jobs.job("fast", RANKS, ["profiler_job", case.__name__],
             env=dict(env, **dict(extra)))
    for rank in range(RANKS):
        e = Expected(version, mask, rank)
        e.say("init 0 nodes 1 ranks 2 rank %d" % rank)
        case(e)
        e.say("finalize")
        host, kernels = read(log, rank)
        what = "%s, %s, mask %x, rank %d" % (release, case.__name__, mask, rank)
        found, wanted = by_thread(host), by_thread(e.host)
        for who in found:
            differ(what + ", " + who, found[who], wanted[who])
        differ(what + ", kernels", whole(what, kernels), sorted(e.kernels))


def silent(tmp):
    """Nobody is told anything where there is no plugin, or none that the
    release knows."""
    log = os.path.join(tmp, "silent")
    for release, plugin in (("2.23", tool(4, 7)), ("2.27", tool(5, 5)),
                            ("2.32", "none"), ("2.32", "/nowhere.so")):
        jobs.job("fast", RANKS, ["profiler_job", "plain"],
                 env={"FABRIC": machine(tmp, release), "TOOL_LOG": log,
                      "NCCL_PROFILER_PLUGIN": plugin, "TOOL_MASK": "7"})
        if os.path.exists(log + ".0"):
            jobs.fail("%s told %s" % (release, plugin))


def main():
    with jobs.Scratch() as tmp:
        usual = COLL | P2P | KERNEL
        for release, version in RELEASES.items():
            for case in (plain, group, graph, comms):
                check(tmp, release, case, usual, tool(4, 7), version)
            check(tmp, release, graph, COLL | P2P, tool(4, 7), version)
        check(tmp, "2.32", plain, usual | GROUP | LAUNCH | 7 << 8, tool(4, 7), 7)
        # Old plugins under new releases; by a short name; in the program.
        check(tmp, "2.32", group, usual, tool(4, 4), 4)
        check(tmp, "2.30", group, usual, "tool55", 5,
              {"LD_LIBRARY_PATH": os.path.dirname(tool(5, 5))}.items())
        check(tmp, "2.28", group, usual, "STATIC_PLUGIN", 5,
              {"LD_PRELOAD": tool(4, 7)}.items())
        # What a plugin answers changes nothing.
        jobs.job("fast", RANKS, ["profiler_job", "all"],
                 env={"FABRIC": machine(tmp, "2.32"), "TOOL_ERRORS": "1",
                      "NCCL_PROFILER_PLUGIN": tool(4, 7),
                      "JOB_PLUGIN": tool(4, 7), "TOOL_MASK": str(usual)})
        silent(tmp)
    print("events of", ", ".join(RELEASES), "are NCCL's")


if __name__ == "__main__":
    main()
