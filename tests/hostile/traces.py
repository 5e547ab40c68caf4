"""Trace files and rings, read without the analyzer."""
import glob
import os
import sqlite3
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "e2e"))

HEADER_BYTES, SLOT_BYTES = 4096, 128
DB_PATH_AT, HEAD_AT, LOST_OPS_AT = 128, 2176, 2304
OPEN, LEFT = 1, 2
OP, LAUNCH, COMM, COMM_EVENT, LEAVE = range(5)
IN_CALL, RUNNING = 128, 256


def open_db(path):
    return sqlite3.connect("file:%s?mode=ro" % path, uri=True)


def databases(folder):
    return sorted(glob.glob(os.path.join(folder, "*.db")))


def one(db, sql):
    return db.execute(sql).fetchone()[0]


def rings(folder):
    """Rings on tmpfs whose traces belong into folder; other jobs may run."""
    found = []
    for path in glob.glob("/dev/shm/commtrace.%d.*" % os.getuid()):
        try:
            with open(path, "rb") as f:
                home = f.read(2048)[DB_PATH_AT:].split(b"\0")[0].decode()
        except FileNotFoundError:
            continue
        if home.startswith(folder + "/"):
            found.append(path)
    return found


def ring_path(db):
    return one(db, "SELECT value FROM meta WHERE key = 'ring_path'")


def ring_slots(path, tail):
    """(position, state, kind, op, comm, flags, result, call) from tail on."""
    with open(path, "rb") as f:
        raw = f.read()
    assert raw[:8] == b"ctring\n\0", path
    version, nslots = struct.unpack_from("<II", raw, 8)
    assert version in (1, 2)  # which differ in slots that are not read here
    head, = struct.unpack_from("<Q", raw, HEAD_AT)
    for position in range(tail, head):
        at = HEADER_BYTES + position % nslots * SLOT_BYTES
        (state, enter, leave, result, flags, comm, kind, op,
         grp) = struct.unpack_from("<QqqiIIHHQ", raw, at)
        if state >> 2 != position:
            continue
        call = struct.unpack_from("<QQQQiiii", raw, at + 48)
        yield position, state & 3, kind, op, comm, flags, result, call


def all_ops(path):
    """(op, count, peer, finished) of every op in order: the database, then what
    only the ring has."""
    db = open_db(path)
    tail = int(one(db, "SELECT value FROM meta WHERE key = 'ring_tail'"))
    ops = {}
    for row in db.execute("SELECT o.id - 1, kind, count, peer, flags FROM op o"
                          " JOIN op_class c ON c.id = o.class"):
        ops[row[0]] = [row[1], row[2], row[3], not row[4] & IN_CALL]
    ring = ring_path(db)
    if not os.path.exists(ring):
        ring = path + ".ring"
    for slot in ring_slots(ring, tail) if os.path.exists(ring) else ():
        position, state, kind, op, _, _, _, call = slot
        if kind == OP:
            peer = call[6] if call[6] >= 0 else None
            ops[position] = [op, call[1], peer, state == LEFT]
        elif kind == LEAVE:
            ops[call[0]][3] = True
    return [tuple(ops[p]) for p in sorted(ops)]


def lost_ops(path):
    """Counted in the database, or in the ring that it could not take in."""
    db = open_db(path)
    ring = ring_path(db)
    if not os.path.exists(ring):
        return one(db, "SELECT coalesce(sum(n), 0) FROM loss WHERE what ="
                       " 'op'")
    with open(ring, "rb") as f:
        f.seek(LOST_OPS_AT)
        return struct.unpack("<Q", f.read(8))[0]


def fail(text):
    sys.exit("FAILED: " + text)
