"""mutate.py SEED COUNT: damages trace files, rings and digests at random and
demands that every command answers with exit 0, or with exit 2 and one line, and
never dies; and that digests of damaged traces say what those say. Prints the
seed of each round, so that a failure can be repeated."""
import glob
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
import jobs  # noqa: E402

# OUT: a job.db to write, CLEAN: the undamaged traces.
COMMANDS = (["report"], ["report", "--json"], ["ops"], ["groups"], ["model"],
            ["ops", "--json"], ["groups", "--json"], ["merge", "--db", "OUT"],
            ["report", "--reference", "CLEAN"], ["ops", "--rank", "1"],
            ["merge", "--db", "OUT", "--steps", "0..3", "--from", "1ms"],
            ["report", "--ranks", "0-1", "--to", "80ms"],
            ["stacks"], ["stacks", "--json"])
SAME = (["report", "--json"], ["ops", "--json"], ["stacks"], ["groups"])
INTERESTING = (b"\x00" * 8, b"\xff" * 8, b"\x7f" + b"\xff" * 7,
               b"\x80" + b"\x00" * 7, b"\xff" * 4, b"\x01")


def damage(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if not data:
            break
        how, at = rng.randrange(5), rng.randrange(len(data))
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[at] = rng.randrange(256)
        elif how == 2:
            value = rng.choice(INTERESTING)
            data[at:at + len(value)] = value
        elif how == 3 and rng.random() < 0.2:
            del data[at:]
        else:
            other = rng.randrange(len(data))
            n = rng.randrange(1, 64)
            data[at:at + n] = data[other:other + n]
    return bytes(data)


def sql_damage(rng, path):
    """Wrong values in a well-formed database, or one that was."""
    db = sqlite3.connect(path)
    try:
        tables = [r[0] for r in db.execute(
            "SELECT name FROM sqlite_schema WHERE type='table'")]
        table = rng.choice(tables)
        columns = [r[1] for r in db.execute("PRAGMA table_info(%s)" % table)]
        value = rng.choice((-1, 0, 1, 2**31, 2**32, 2**63 - 1, -2**63, None,
                            "x" * 300, b"\xff\xfe", 1e300))
        rows = [r[0] for r in db.execute("SELECT rowid FROM %s" % table)]
        rows = rng.sample(rows, min(len(rows), rng.choice((1, 5, 10000))))
        column = rng.choice(columns)
        for row in rows:
            db.execute("UPDATE OR IGNORE %s SET %s = ? WHERE rowid = ?" %
                       (table, column), (value, row))
        db.commit()
    except (sqlite3.Error, OverflowError, UnicodeError):
        pass
    db.close()


def packed_damage(rng, path):
    """Wrong bytes in what is packed, which zlib takes for whole."""
    db = sqlite3.connect(path)
    try:
        table, column = rng.choice((("packed", "data"), ("packed", "data"),
                                    ("digest", "ring")))
        row, blob = rng.choice(db.execute("SELECT rowid, %s FROM %s" %
                                          (column, table)).fetchall())
        blob = zlib.compress(damage(rng, zlib.decompress(blob)))
        db.execute("UPDATE %s SET %s = ? WHERE rowid = ?" % (table, column),
                   (blob, row))
        db.commit()
    except (sqlite3.Error, TypeError, zlib.error):
        pass  # a digest without a ring, or one that was damaged before
    db.close()


def add_ring(path):
    """Opens the trace's end, and leaves a ring of calls beside it."""
    with sqlite3.connect(path) as db:
        db.execute("UPDATE process SET end_ns = NULL")
        uuid, = db.execute("SELECT uuid FROM process").fetchone()
        comm, = db.execute("SELECT min(id) FROM comm").fetchone()
        first, = db.execute("SELECT max(id) FROM op").fetchone()
        db.execute("INSERT OR REPLACE INTO meta VALUES ('ring_tail', ?)",
                   (str(first),))
    kinds, n = (0, 0, 1, 2, 3, 5, 6, 0, 4, 0), 16
    ring = struct.pack("<8sIIQIiqq40s40s2048sQ56xQI", b"ctring\n\0", 2, n, 1, 1,
                       -1, 0, 0, b"boot", uuid.encode(), b"/nowhere",
                       first + len(kinds), first, 0).ljust(4096, b"\0")
    slots = [b""] * n
    for position, kind in enumerate(kinds, first):
        slots[position % n] = struct.pack(
            "<QqqiIIHHQQQQQiiiiqI", position << 2 | 2, 10**9, 10**9 + 5000, 0, 9,
            comm, kind, 0, 0, position if kind != 4 else first, 1000, 1, 1, 7, 0,
            -1, 0, 0, 0)
    with open(path + ".ring", "wb") as f:
        f.write(ring + b"".join(s.ljust(128, b"\0") for s in slots))


def is_answer(command, done):
    if done.returncode == 2:
        lines = [line for line in done.stderr.splitlines()
                 if b": skipped " not in line]
        return len(lines) == 1
    if "--json" in command and done.returncode == 0:
        json.loads(done.stdout)
    return done.returncode == 0


def say_same(command, work, tmp):
    """None, or how digests of the traces in work differ from those."""
    digests = os.path.join(tmp, "digests")
    shutil.rmtree(digests, ignore_errors=True)
    made = subprocess.run([jobs.COMMTRACE, "digest", "-o", digests, work],
                          capture_output=True, timeout=60)
    if made.returncode not in (0, 2) or any(
            not line.startswith(b"commtrace digest: ")
            for line in made.stderr.splitlines()):
        return made
    of_traces, of_digests = (
        subprocess.run([jobs.COMMTRACE, *command, folder], capture_output=True,
                       timeout=60) for folder in (work, digests))
    return None if (of_digests.returncode, of_digests.stdout,
                    of_digests.stderr) == (
        of_traces.returncode, of_traces.stdout, of_traces.stderr) else of_digests


def one(rng, tmp, clean, seed):
    work = os.path.join(tmp, "work")
    shutil.rmtree(work, ignore_errors=True)
    of_digests = rng.random() < 0.4
    shutil.copytree(clean + ".digests" if of_digests else clean, work)
    victims, torn = [], False
    for _ in range(rng.choice((1, 1, 3))):
        victim = rng.choice(sorted(glob.glob(os.path.join(work, "*"))))
        victims.append(os.path.basename(victim))
        if of_digests and rng.random() < 0.6:
            packed_damage(rng, victim)
            continue
        if not victim.endswith(".ring") and rng.random() < 0.6:
            sql_damage(rng, victim)
            continue
        with open(victim, "rb") as f:
            data = damage(rng, f.read())
        torn |= victim.endswith(".db")
        with open(victim, "wb") as f:
            f.write(data)
    names = {"OUT": os.path.join(tmp, "job.db"), "CLEAN": clean}
    for command in rng.sample(COMMANDS, 4):
        done = subprocess.run([jobs.COMMTRACE,
                               *(names.get(a, a) for a in command), work],
                              capture_output=True, timeout=60)
        if not is_answer(command, done):
            shutil.copytree(work, "/tmp/commtrace-fuzz-%d" % seed,
                            dirs_exist_ok=True)
            jobs.fail("seed %d: %s on damaged %s: exit %d, stderr %r; kept in "
                      "/tmp/commtrace-fuzz-%d" %
                      (seed, command, " ".join(victims), done.returncode,
                       done.stderr[:400], seed))
    # Pages that are damaged and still read may hold a row twice.
    other = None if of_digests else say_same(rng.choice(SAME), work, tmp)
    if other and not (torn and is_answer([], other)):
        shutil.copytree(work, "/tmp/commtrace-fuzz-%d" % seed,
                        dirs_exist_ok=True)
        jobs.fail("seed %d: digests of damaged %s: exit %d, stderr %r; traces "
                  "kept in /tmp/commtrace-fuzz-%d" %
                  (seed, " ".join(victims), other.returncode,
                   other.stderr[:400], seed))


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    with jobs.Scratch() as tmp:
        clean = os.path.join(tmp, "clean")
        subprocess.run([os.path.join(jobs.BUILD, "tests", "tracegen", "tracegen"), "--tp",
                        "2", "--pp", "2", "--dp", "1", "--steps", "4",
                        "--nccl", "kernel",
                        "--out", clean], check=True, capture_output=True)
        for path in glob.glob(os.path.join(clean, "*.json")):
            os.remove(path)
        add_ring(sorted(glob.glob(os.path.join(clean, "*.db")))[1])
        subprocess.run([jobs.COMMTRACE, "digest", "-o", clean + ".digests",
                        clean], check=True, capture_output=True)
        for s in range(seed, seed + count):
            one(random.Random(s), tmp, clean, s)
    print("seeds %d..%d: %d damaged traces, no command died" %
          (seed, seed + count - 1, count))


if __name__ == "__main__":
    main()
