"""Two accounts of the same calls, the trace and the preloaded witness, turned
into the same rows."""
import collections
import glob
import os
import sqlite3

# A call as all accounts can tell it; members: global ranks of the communicator
# in its order; peer: a rank of the communicator.
Op = collections.namedtuple("Op", "function count type redop peer members")


def process_of(path):
    """(rank, restart, pid) of <rank>.<restart>.<pid>[.more]"""
    return tuple(int(x) for x in os.path.basename(path).split(".")[:3])


class Account:
    """Of one process: its ops in order; which ops share a group bracket (a
    number each, None: alone); streams; communicators held."""

    def __init__(self):
        self.ops, self.groups, self.streams, self.comms = [], [], [], 0


def finish(raw, members):
    """Replaces communicator keys by members."""
    for account in raw.values():
        account.ops = [op._replace(members=tuple(members[op.members]))
                       for op in account.ops]
    return raw


def read_traces(folder):
    """(rank, restart, pid) -> Account, by nothing but SQL."""
    raw, members = {}, collections.defaultdict(dict)
    for path in sorted(glob.glob(os.path.join(folder, "*.db"))):
        db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        who = db.execute("SELECT rank, coalesce(restart, 0), pid"
                         " FROM process").fetchone()
        lost = db.execute("SELECT cause, what, n FROM loss").fetchall()
        if lost:
            raise SystemExit("FAILED: rank %d lost %s" % (who[0], lost))
        account = raw[who] = Account()
        for uid, place, n in db.execute("SELECT uid, rank, nranks FROM comm"):
            members[uid].setdefault("n", n)
            members[uid][place] = who[0]
            account.comms += 1
        for function, count, kind, redop, peer, uid, grp, stream in db.execute(
                "SELECT k.function, c.count, c.type, c.redop, c.peer, m.uid,"
                " o.grp, c.stream FROM op o JOIN op_class c ON c.id = o.class"
                " JOIN op_kind k ON k.id = c.kind JOIN comm m ON m.id = c.comm"
                " ORDER BY o.id"):
            account.ops.append(Op(function, count, kind, redop, peer, uid))
            account.groups.append(grp)
            account.streams.append(stream)
    return finish(raw, {uid: [m.get(i) for i in range(m["n"])]
                        for uid, m in members.items()})


def number(text):
    return None if text == "-1" else int(text)


def pointer(text):
    return 0 if text == "(nil)" else int(text, 16)


class WitnessReader:
    def __init__(self):
        self.members = collections.defaultdict(dict)

    def born(self, comm, key, nranks, place, rank):
        self.keys[comm] = key
        self.children[key] = 0
        self.members[key]["n"] = int(nranks)
        self.members[key][int(place)] = rank
        self.account.comms += 1

    def read(self, path):
        rank, self.keys, self.children = process_of(path)[0], {}, {}
        self.account = Account()
        with open(path) as f:
            for line in f:
                what, *w = line.split()
                if what == "init":
                    self.born(w[0], w[1], w[2], w[3], rank)
                elif what == "split":
                    parent = self.keys[w[0]]
                    self.children[parent] += 1
                    if w[1] != "-1":
                        self.born(w[2], (parent, self.children[parent], w[1]),
                                  w[3], w[4], rank)
                elif what == "op":
                    self.account.ops.append(
                        Op(w[0], int(w[1]), number(w[2]), number(w[3]),
                           number(w[4]), self.keys[w[5]]))
                    self.account.groups.append(int(w[6]) or None)
                    self.account.streams.append(pointer(w[7]))
        return self.account


def read_witness(folder):
    reader = WitnessReader()
    raw = {process_of(path): reader.read(path)
           for path in sorted(glob.glob(os.path.join(folder, "*")))}
    return finish(raw, {key: [m.get(i) for i in range(m["n"])]
                        for key, m in reader.members.items()})
