"""mutate.py SEED COUNT: damages trace files and rings at random and demands
that every command answers with exit 0, or with exit 2 and one line, and never
dies. Prints the seed of each round, so that a failure can be repeated."""
import glob
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
import jobs  # noqa: E402

COMMANDS = (["report"], ["report", "--json"], ["ops"], ["groups"], ["model"])
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
    """Wrong values in a well-formed database."""
    import sqlite3
    db = sqlite3.connect(path)
    tables = [r[0] for r in db.execute(
        "SELECT name FROM sqlite_schema WHERE type='table'")]
    table = rng.choice(tables)
    columns = [r[1] for r in db.execute("PRAGMA table_info(%s)" % table)]
    value = rng.choice((-1, 0, 1, 2**31, 2**32, 2**63 - 1, -2**63, None,
                        "x" * 300, b"\xff\xfe", 1e300))
    try:
        db.execute("UPDATE %s SET %s = ? WHERE rowid IN (SELECT rowid FROM %s "
                   "ORDER BY random() LIMIT %d)" %
                   (table, rng.choice(columns), table, rng.choice((1, 5, 10000))),
                   (value,))
        db.commit()
    except (sqlite3.Error, OverflowError):
        pass
    db.close()


def one(rng, tmp, clean, seed):
    work = os.path.join(tmp, "work")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(clean, work)
    victim = rng.choice(sorted(glob.glob(os.path.join(work, "*"))))
    if victim.endswith(".db") and rng.random() < 0.5:
        sql_damage(rng, victim)
    else:
        with open(victim, "rb") as f:
            data = damage(rng, f.read())
        with open(victim, "wb") as f:
            f.write(data)
    for command in COMMANDS:
        done = subprocess.run([jobs.COMMTRACE, *command, work],
                              capture_output=True, timeout=60)
        if done.returncode not in (0, 2) or (
                done.returncode == 2 and done.stderr.count(b"\n") != 1):
            shutil.copytree(work, "/tmp/commtrace-fuzz-%d" % seed,
                            dirs_exist_ok=True)
            jobs.fail("seed %d: %s on damaged %s: exit %d, stderr %r; kept in "
                      "/tmp/commtrace-fuzz-%d" %
                      (seed, command, os.path.basename(victim),
                       done.returncode, done.stderr[:400], seed))


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    with jobs.Scratch() as tmp:
        clean = os.path.join(tmp, "clean")
        subprocess.run([os.path.join(jobs.BUILD, "tests", "tracegen", "tracegen"), "--tp",
                        "2", "--pp", "2", "--dp", "1", "--steps", "4",
                        "--out", clean], check=True, capture_output=True)
        for path in glob.glob(os.path.join(clean, "*.json")):
            os.remove(path)
        for s in range(seed, seed + count):
            one(random.Random(s), tmp, clean, s)
    print("seeds %d..%d: %d damaged traces, no command died" %
          (seed, seed + count - 1, count))


if __name__ == "__main__":
    main()
