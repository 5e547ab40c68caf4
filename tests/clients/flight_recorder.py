"""PyTorch's own Flight Recorder, turned into the NCCL calls that each of its
entries stands for. Where that is not one call of the same name, the reason is
given and counted: PyTorch composes, splits and coalesces."""
import glob
import os
import pickle
import re

from accounts import Op, process_of

TYPES = {"Char": 0, "Byte": 1, "Bool": 1, "Int": 2, "Long": 4, "Half": 6,
         "Float": 7, "Double": 8, "BFloat16": 9}
FLOAT = TYPES["Float"]
ANY = None


def numel(size):
    n = 1
    for s in size:
        n *= s
    return n


class Entry:
    """One entry of the recorder, seen by one rank of its group."""

    def __init__(self, raw, ranks, me):
        self.backend, self.name = raw["profiling_name"].split(":", 1)
        self.when = raw["time_created_ns"]
        self.inputs = [numel(s) for s in raw["input_sizes"]]
        self.outputs = [numel(s) for s in raw["output_sizes"]]
        types = raw["input_dtypes"] or raw["output_dtypes"]
        self.type = TYPES[types[0]] if types else ANY
        self.ranks, self.me, self.n = ranks, ranks.index(me), len(ranks)

    def __str__(self):
        return "%s:%s of %s, %s -> %s" % (self.backend, self.name, self.ranks,
                                          self.inputs, self.outputs)

    def op(self, function, count, peer=ANY):
        return Op("nccl" + function, count, self.type, ANY, peer, self.ranks)

    def others(self):
        return [i for i in range(self.n) if i != self.me]


# Each rule gives alternatives, (calls, why); "": the entry is one call. Which
# alternative it was the entry does not tell, but the calls do.

def one(function, side):
    return lambda e: [([e.op(function, getattr(e, side)[0])], "")]


def each(function):
    def rule(e):
        side = e.outputs if function == "ReduceScatter" else e.inputs
        return [([e.op(function, n) for n in side],
                 "tensors coalesced into one entry: a call each")]
    return rule


def all_gather(e):
    return [([e.op("AllGather", e.inputs[0])],
             "" if len(e.outputs) == 1 else
             "all_gather into a list, flattened: one all-gather"),
            ([e.op("Broadcast", n, i) for i, n in enumerate(e.outputs)],
             "all_gather into a list: a broadcast from each rank, in a group")]


def reduce_scatter(e):
    return [([e.op("ReduceScatter", e.outputs[0])],
             "" if len(e.inputs) == 1 else
             "reduce_scatter of a list, flattened: one reduce-scatter"),
            ([e.op("Reduce", n, i) for i, n in enumerate(e.inputs)],
             "reduce_scatter of a list: a reduction to each rank, in a group")]


def rooted(to_root, at_root, what):
    """gather, scatter: at the root a list holds a tensor for each rank."""
    def rule(e):
        count = max(e.inputs[:1] + e.outputs[:1])
        if max(len(e.inputs), len(e.outputs)) > 1:
            ops = [e.op(at_root, count, i) for i in e.others()]
        else:
            ops = [e.op(to_root, count)]
        return [(ops, what + ": a send from or to each rank but the root")]
    return rule


def all_to_all(e):
    """How uneven splits are, the entry does not tell."""
    counts = (e.inputs, e.outputs) if len(e.inputs) == e.n > 1 else \
        ([ANY] * e.n,) * 2
    pairs = [op for i in range(e.n)
             for op in (e.op("Send", counts[0][i], i),
                        e.op("Recv", counts[1][i], i))]
    return [([e.op("AlltoAll", sum(e.inputs) // e.n)], ""),
            (pairs, "all_to_all: a send and a receive for each rank, in a "
                    "group")]


def barrier(e):
    e.type = FLOAT if e.type is ANY else e.type
    return [([e.op("AllReduce", 1)], "barrier: an all-reduce of one element")]


def pair(e):
    """send 0->1, recv 0<-1; perhaps over a communicator of the pair alone."""
    what, a, arrow, b = re.match(r"(send|recv) (\d+)(->|<-)(\d+)",
                                 e.name).groups()
    a, b = int(a), int(b)
    assert a == e.me, e.name
    call = "Send" if what == "send" else "Recv"
    count = (e.inputs if what == "send" else e.outputs)[0]
    both = sorted((a, b))
    alone = Op("nccl" + call, count, e.type, ANY, both.index(b),
               tuple(e.ranks[i] for i in both))
    return [([e.op(call, count, b)], ""),
            ([alone], "send or receive over a communicator of the pair")]


WHOLE_GROUP = "whole group"
RULES = {
    "all_reduce": one("AllReduce", "inputs"),
    "broadcast": one("Bcast", "inputs"),
    "_broadcast_oop": one("Broadcast", "outputs"),
    "reduce": one("Reduce", "inputs"),
    "_reduce_oop": one("Reduce", "inputs"),
    "_all_gather_base": one("AllGather", "inputs"),
    "_reduce_scatter_base": one("ReduceScatter", "outputs"),
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "gather": rooted("Send", "Recv", "gather"),
    "scatter": rooted("Recv", "Send", "scatter"),
    "all_to_all": all_to_all,
    "all_to_all_single": all_to_all,
    "allreduce_coalesced": each("AllReduce"),
    "all_gather_into_tensor_coalesced": each("AllGather"),
    "reduce_scatter_tensor_coalesced": each("ReduceScatter"),
    "send": pair,
    "recv": pair,
    "barrier": barrier,
    "all_reduce_barrier": barrier,
    # The old backend: an entry without sizes that closes a bracket whose calls
    # had entries of their own,
    "ALLGATHER_coalesced": lambda e: [([], "closes a bracket of calls")],
    "REDUCE_SCATTER_coalesced": lambda e: [([], "closes a bracket of calls")],
    # or, where they are collectives, had none.
    "coalesced": lambda e: [(WHOLE_GROUP, "collectives coalesced without "
                             "entries: compared with the witness alone"),
                            ([], "closes a bracket of calls")],
}


def entries_of(path):
    rank = process_of(path)[0]
    with open(path, "rb") as f:
        dump = pickle.load(f)
    groups = {name: tuple(int(r) for r in re.findall(r"\d+", config["ranks"]))
              for name, config in dump["pg_config"].items()}
    return [Entry(raw, groups[raw["process_group"][0]], rank)
            for raw in dump["entries"]]


def read(folder):
    """(rank, restart, pid) -> entries of all backends in order of issue."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*"))):
        found.setdefault(process_of(path), []).extend(entries_of(path))
    for entries in found.values():
        entries.sort(key=lambda e: e.when)
    return found


def fits(wanted, op):
    return all(w is ANY or w == o for w, o in zip(wanted, op))


class Matcher:
    """Walks through an account's ops along the recorder's entries."""

    def __init__(self, account):
        self.ops, self.groups, self.at, self.why = (account.ops, account.groups,
                                                    0, {})
        self.in_batch = False  # the last entries were of a bracket's calls

    def length(self, calls):
        """How many ops the calls take up here; None: they do not fit."""
        ops = self.ops[self.at:]
        if calls is not WHOLE_GROUP:
            there = len(ops) >= len(calls) and all(map(fits, calls, ops))
            return len(calls) if there else None
        group = self.groups[self.at] if ops else None
        if group is None or self.in_batch:
            return None
        return self.groups.count(group)

    def take(self, entry):
        for calls, why in RULES[entry.name.split(" ")[0]](entry):
            n = self.length(calls)
            if n is None:
                continue
            if why:
                self.why[why] = self.why.get(why, 0) + 1
            group = self.groups[self.at] if n else None
            self.in_batch = group is not None and self.groups.count(group) > 1 \
                and calls is not WHOLE_GROUP
            self.at += n
            return True
        return False


def differences(entries, account):
    """(None or the first difference, {why: how often})"""
    matcher = Matcher(account)
    for entry in entries:
        if not matcher.take(entry):
            return "%s: recorded %s" % (
                entry, account.ops[matcher.at:matcher.at + 2]), matcher.why
    if matcher.at != len(account.ops):
        return "no entry for %s" % (account.ops[matcher.at],), matcher.why
    return None, matcher.why
