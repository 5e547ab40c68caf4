"""test_claims.py: traces and digests that say there is more in them than
there is. Each is taken for what it is or named and skipped, in little memory,
and what the other files of the job say is reported as without it."""
import glob
import os
import resource
import shutil
import sqlite3
import struct
import subprocess
import zlib

import jobs

MOST_MB = 1000
LEAVES = 400  # pages or blocks that say the same


def number(value):
    """LEB128."""
    text = bytearray()
    while value > 127:
        text.append(value & 127 | 128)
        value >>= 7
    return bytes(text + bytes((value,)))


def column(rows, how, step):
    """A column of a packed block: first value 1, then always step more, or less
    where how is 0: nothing foretells a value."""
    values = number(2) + number(2 * step) * (rows - 1)
    body = number(how) + number(1) + number(rows) + values
    return number(len(body)) + body


def dense_block(rows):
    """Ops in a few dozen bytes."""
    steps = [(1, 1), (0, 1), (1, 1), (0, 0), (1, 1), (0, 0), (0, 0), (0, 0), (0, 0)]
    raw = number(rows) + number(len(steps)) + b"".join(
        column(rows, *step) for step in steps)
    return zlib.compress(raw, 9)


def with_sql(path, *sql, **values):
    db = sqlite3.connect(path)
    with db:
        for line in sql:
            db.execute(line, values)
    db.close()


def header(path, at, layout):
    with open(path, "rb") as f:
        f.seek(at)
        return struct.unpack(layout, f.read(struct.calcsize(layout)))[0]


def say_pages(path, pages):
    """In the header; and as large as that, with nothing on disk."""
    size = header(path, 16, ">H")
    with open(path, "r+b") as f:
        f.seek(28)
        f.write(struct.pack(">I", pages))
        f.truncate(pages * size)


def root_of(path, table):
    """Its first page."""
    db = sqlite3.connect(path)
    root, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?",
                       (table,)).fetchone()
    db.close()
    return root


def share_leaves(path, table):
    """A table whose one page of rows stands in the tree again and again."""
    root = root_of(path, table)
    size, pages = header(path, 16, ">H"), header(path, 28, ">I")
    with open(path, "r+b") as f:
        def page(n):
            f.seek((n - 1) * size)
            return f.read(size)

        leaf = root
        while page(leaf)[0] == 5:  # "B-tree Pages": inner; its first child
            cell, = struct.unpack(">H", page(leaf)[12:14])
            leaf, = struct.unpack(">I", page(leaf)[cell:cell + 4])
        if leaf == root:
            copy = page(root)
            f.seek(pages * size)
            f.write(copy)
            pages += 1
            leaf = pages
        n = min(LEAVES, (size - 12) // 8)
        body = b"".join(struct.pack(">IBB", leaf, i // 128 + 128, i % 128)
                        for i in range(n))
        begin = size - len(body)
        places = b"".join(struct.pack(">H", begin + 6 * i) for i in range(n))
        inner = struct.pack(">BHHHBI", 5, 0, n, begin, 0, leaf) + places
        f.seek((root - 1) * size)
        f.write(inner.ljust(begin, b"\0") + body)
        f.seek(28)
        f.write(struct.pack(">I", pages))


def ops_everywhere(path):
    with_sql(path, "UPDATE op SET id = 1 << 62 WHERE id ="
             " (SELECT max(id) FROM op)")
    say_pages(path, 1 << 25)


def ordinals(path):
    with_sql(path, "UPDATE op SET ordinal = 4294967295 WHERE id % 2")


def far_apart(path):
    with_sql(path, "UPDATE op SET ordinal = min(ordinal * 1000, 1 << 31)")


def ranks(path):
    with_sql(path, "UPDATE comm SET nranks = 1 << 20")


def shared_rows(path):
    share_leaves(path, "op")


def shared_text(path):
    with_sql(path, "UPDATE meta SET value = printf('%60000s', 'x')")
    share_leaves(path, "meta")


def shared_blocks(path):
    with_sql(path, "UPDATE packed SET id = -1 WHERE id ="
             " (SELECT min(id) FROM packed WHERE name = 'op')")
    share_leaves(path, "packed")


def endless_blocks(path):
    """Pages that each hold the next one a hundred times, above the blocks:
    those of a table that is asked for may never come."""
    root = root_of(path, "packed")
    size, pages = header(path, 16, ">H"), header(path, 28, ">I")
    with open(path, "r+b") as f:
        f.seek((root - 1) * size)
        page = f.read(size)
        for _ in range(5):
            f.seek(pages * size)
            f.write(page)
            pages += 1
            cells = [size - 5 * (i + 1) for i in range(100)]
            page = struct.pack(">BHHHBI", 5, 0, 100, cells[-1], 0, pages)
            page += struct.pack(">100H", *cells)
            page = page.ljust(cells[-1], b"\0") + b"".join(
                struct.pack(">IB", pages, i + 1) for i in reversed(range(100)))
        f.seek((root - 1) * size)
        f.write(page)
        f.seek(28)
        f.write(struct.pack(">I", pages))


def dense(path):
    block = dense_block(4096)
    with_sql(path, "DELETE FROM packed WHERE name = 'op'")
    with_sql(path, "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1"
             " FROM n WHERE i < %d) INSERT INTO packed(name, data)"
             " SELECT 'op', :block FROM n" % LEAVES, block=block)
    print("%d rows of ops in %d bytes" % (4096 * LEAVES, len(block) * LEAVES))


# What is said of the file; None: it is read.
TRACES = ((ops_everywhere, None), (ordinals, None), (far_apart, None),
          (ranks, None), (shared_rows, "has no room for so many"),
          (shared_text, "has no room for so much text"))
DIGESTS = ((dense, "packed rows of table op are damaged: block "),
           (shared_blocks, "has no room for so many"),
           (endless_blocks, "goes on without end"))


def run(*words):
    done = subprocess.run([jobs.COMMTRACE, *words], capture_output=True,
                          text=True, timeout=120)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    if most > MOST_MB:
        jobs.fail("%s took %d MB" % (words, most))
    return done


def tell(kind, claim, saying):
    """One file of a job claims something."""
    name = claim.__name__ + "_" + kind
    shutil.copytree(kind, name)
    path = sorted(glob.glob(name + "/*"))[0]
    claim(path)
    for words in (["report"], ["merge", "--db", name + ".db"],
                  ["digest", "-o", name + ".d"]):
        if words[0] == "digest" and kind == "digests":
            continue
        done = run(*words, name)
        named = [line for line in done.stderr.splitlines() if path in line]
        if done.returncode or len(named) != (saying is not None):
            jobs.fail("%s %s: exit %d: %s" % (words, name, done.returncode,
                                              done.stderr))
        if saying and saying not in named[0]:
            jobs.fail("%s is not said to be '%s': %s" % (name, saying, named))
    if saying is not None:
        report = ["report", "--json"]
        with_it = run(*report, name)
        os.remove(path)
        with_it, without = (jobs.json.loads(done.stdout)["jobs"][0]
                            for done in (with_it, run(*report, name)))
        for part in "job", "roles", "findings":
            if with_it.get(part) != without.get(part):
                jobs.fail("%s: %s differs from that without it" % (name, part))
    shutil.rmtree(name)
    print("%s: %s" % (name, saying or "read"))


def main():
    with jobs.Scratch() as tmp:
        os.chdir(tmp)
        subprocess.run([os.path.join(jobs.BUILD, "tests", "tracegen", "tracegen"),
                        "--out", "traces", "--tp", "2", "--pp", "2", "--steps",
                        "12"], check=True, stdout=subprocess.DEVNULL)
        os.remove("traces/truth.json")
        run("digest", "-o", "digests", "traces")
        for claim, saying in TRACES:
            tell("traces", claim, saying)
        for claim, saying in DIGESTS:
            tell("digests", claim, saying)


if __name__ == "__main__":
    main()
