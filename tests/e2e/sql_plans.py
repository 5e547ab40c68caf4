"""sql_plans.py JOBDB SQL_FOLDER [--time]: no question of the folder reads a
table that grows with the calls of the job from end to end, nor an index of it.
SQLite plans without statistics here, so the plans are those of a job of any
size.

EXPLAIN QUERY PLAN names aliases, and an automatic index is a scan that it does
not show; so the program is looked at: which b-tree does a loop begin to read at
its start? --time runs the questions, too, and prints their CPU time.
"""
import glob
import os
import sqlite3
import sys
import time

# As many rows as the job has calls, or a fixed share of that.
GROWING = {"op", "op_match", "op_sum", "step_role", "instance", "launch",
           "kernel", "choice", "graph_launch", "graph_run"}
# Of which a question may read an index from end to end.
SUMS = {"step_role"}
LOOPS = {"Rewind", "Last"}

# What is asked of single calls begins with the few that it is about.
NARROW = (
    "SELECT * FROM v_op WHERE rank = 5 AND step = 3",
    "SELECT * FROM v_op WHERE step = 3 AND role = 'TP'",
    "SELECT * FROM v_op WHERE step = 3",
    "SELECT * FROM v_op WHERE role = 'control'",
    "SELECT * FROM v_op WHERE instance = 77",
    "SELECT * FROM v_instance WHERE step = 3",
    "SELECT * FROM v_instance WHERE uid = 1 AND ordinal = 5",
    "SELECT * FROM v_instance WHERE role = 'TP' AND network = 1",
    "SELECT * FROM v_instance ORDER BY transfer_ns DESC LIMIT 10",
    "SELECT * FROM v_op_sum WHERE rank = 5 AND step = 3",
    "SELECT * FROM v_op_sum WHERE role = 'TP' AND network = 1",
    "SELECT step, max(total_ms) AS worst_rank_ms FROM v_step_role "
    "WHERE role = 'TP' AND network = 1 "
    "GROUP BY job, step ORDER BY worst_rank_ms DESC",
)


def statements(path):
    """The SQL of a file, without the shell's own commands."""
    text = "".join(line for line in open(path) if not line.startswith("."))
    part = ""
    for piece in text.split(";")[:-1]:
        part += piece + ";"
        if sqlite3.complete_statement(part):
            yield part
            part = ""
    assert not part.strip(" \n;"), path


def trees(db, indexes=False):
    """root page -> table, of those whose rows, or indexed columns of all rows,
    lie in that b-tree."""
    roots = {}
    for kind, name, table, root, sql in db.execute(
            "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema"):
        if kind == "table" or name.startswith("sqlite_autoindex_") or (
                indexes and kind == "index" and table not in SUMS
                and " WHERE " not in sql):
            roots[root] = table
    return roots


def scanned(db, sql):
    """Tables of GROWING that sql reads from their first row on."""
    # With a limit the end of an index is not all of it.
    roots = trees(db, "LIMIT" not in sql)
    cursors, found = {}, set()
    for _, op, p1, p2, *_ in db.execute("EXPLAIN " + sql):
        if op == "OpenRead":
            cursors[p1] = roots.get(p2)
        elif op in LOOPS and cursors.get(p1) in GROWING:
            found.add(cursors[p1])
    return found


def main():
    path, folder = sys.argv[1:3]
    db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    assert GROWING <= set(trees(db).values()), GROWING
    for table in sorted(GROWING):  # a scan is seen as one
        assert scanned(db, "SELECT * FROM %s LIMIT 1" % table) == {table}, table
    assert scanned(db, "SELECT count(instance) FROM op_match") == {"op_match"}
    for sql in NARROW:
        assert not scanned(db, sql), sql
    files = sorted(glob.glob(os.path.join(folder, "*.sql")))
    bad = 0
    for file in files:
        begin, rows = time.process_time(), 0
        for sql in statements(file):
            found = scanned(db, sql)
            bad += bool(found)
            if found:
                print("%s reads all of %s:" % (file, ", ".join(sorted(found))))
                for *_, line in db.execute("EXPLAIN QUERY PLAN " + sql):
                    print("    " + line)
            if "--time" in sys.argv[3:]:
                rows += len(db.execute(sql).fetchall())
        if "--time" in sys.argv[3:]:
            print("%-32s %8.3f s %8d rows" % (
                os.path.basename(file), time.process_time() - begin, rows))
    assert files and not bad
    print("%d questions, no scan" % len(files))


if __name__ == "__main__":
    main()
