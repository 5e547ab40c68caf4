#!/bin/sh
# test_cli_sql.sh COMMTRACE TRACEGEN SQL_FOLDER: job.db holds what the rank files
# held and answers every question of samples/sql, none of them by reading all.
set -eu
commtrace=$1 tracegen=$2 questions=$3
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

"$tracegen" --tp 2 --pp 2 --dp 2 --steps 8 --out good >/dev/null
"$commtrace" merge --db job.db good
"$commtrace" report --db other.db good >/dev/null
cmp job.db other.db
"$commtrace" merge --db job.db good # replaces a job.db
cmp job.db other.db
[ "$(sqlite3 job.db 'PRAGMA integrity_check')" = ok ]

python3 -B "$here/sql_plans.py" job.db "$questions"

mkdir answers
for file in "$questions"/*.sql; do
    head -n 1 "$file" | grep -q '^-- ' || { echo "$file: no question"; exit 1; }
    name=$(basename "$file" .sql)
    sqlite3 -bail job.db <"$file" >"answers/$name" 2>err
    [ ! -s err ] || { cat "$file" err; exit 1; }
done
# The shell wraps what is wider than 60 characters.
cp job.db wide.db
sqlite3 wide.db 'UPDATE link SET detail = hex(zeroblob(80))'
[ "$(sqlite3 wide.db <"$questions"/links.sql | wc -l)" -eq "$((2 +
    $(sqlite3 job.db 'SELECT min(40, count(*)) FROM link')))" ]
[ "$(find answers -type f | wc -l)" -ge 8 ]
for name in time_by_role_and_step slowest_ops bytes_per_link communicators \
    wait_per_rank message_sizes observed_beside_predicted slow_edges; do
    [ -s answers/$name ] || { echo "$name: no answer"; exit 1; }
done

python3 - <<'PY'
import glob
import sqlite3

job = sqlite3.connect("job.db")

def one(sql):
    return job.execute(sql).fetchone()[0]

def rows(db, sql):
    return sorted(map(repr, db.execute(sql)))

# Every row of every rank file is there.
ops = bytes_ = launches = 0
for number, path in enumerate(sorted(glob.glob("good/*.db"))):
    rank = sqlite3.connect(path)
    process, = job.execute("SELECT process FROM process WHERE uuid = ?",
                           rank.execute("SELECT uuid FROM process").fetchone()
                           ).fetchone()
    for table in ("meta", "process", "library", "policy", "clock", "device",
                  "gpu_link", "comm", "comm_event", "loss", "module",
                  "stack", "frame"):
        columns = ", ".join(row[1] for row in rank.execute(
            "PRAGMA table_info(%s)" % table))
        assert rows(rank, "SELECT %s FROM %s" % (columns, table)) == rows(
            job, "SELECT %s FROM %s WHERE process = %d" %
            (columns, table, process)), (path, table)
    same = ("SELECT k.name, c.comm, c.type, c.redop, c.count, c.peer, "
            "c.stream, c.site, o.ordinal, o.grp, o.enter_ns, o.host_ns, o.gpu_off_ns, "
            "o.gpu_ns, o.flags FROM op o JOIN op_class c ON c.id = o.class %s "
            "JOIN op_kind k ON k.id = c.kind %s ORDER BY o.id")
    assert list(rank.execute(same % ("", ""))) == list(job.execute(
        same % ("AND c.process = o.process", "WHERE o.process = %d" %
                process))), path
    same = ("SELECT grp, comm, stream, ops, enter_ns, host_ns, gpu_off_ns, "
            "gpu_ns, flags FROM launch %s ORDER BY id")
    assert list(rank.execute(same % "")) == list(job.execute(
        same % ("WHERE process = %d" % process))), path
    ops += rank.execute("SELECT count(*) FROM op").fetchone()[0]
    launches += rank.execute("SELECT count(*) FROM launch").fetchone()[0]
    bytes_ += rank.execute(
        "SELECT sum(c.count * t.bytes) FROM op o JOIN op_class c "
        "ON c.id = o.class JOIN data_type t ON t.id = c.type "
        "JOIN op_kind k ON k.id = c.kind WHERE k.name = 'all_reduce'"
    ).fetchone()[0]
assert one("SELECT count(*) FROM op") == ops
assert one("SELECT count(*) FROM v_op") == ops
assert one("SELECT count(*) FROM op_match") == ops
assert one("SELECT count(*) FROM launch") == launches

# A collective is one instance, and has an op of each of its ranks.
assert one("SELECT sum(u.calls * u.bytes * c.nranks) FROM usage u "
           "JOIN v_comm c ON c.uid = u.uid JOIN op_kind k ON k.id = u.kind "
           "WHERE k.name = 'all_reduce'") == bytes_
assert one("SELECT count(*) FROM v_instance i JOIN v_comm c ON c.uid = i.uid "
           "WHERE i.op = 'all_reduce' AND i.ranks <> c.nranks") == 0
assert one("SELECT count(*) FROM instance i WHERE i.ranks <> (SELECT count(*) "
           "FROM op_match m WHERE m.instance = i.id)") == 0
assert one("SELECT count(*) FROM v_op WHERE role IS NULL OR link IS NULL") == 0
assert {r for r, in job.execute("SELECT DISTINCT role FROM role")} >= {
    "TP", "PP", "DP"}
steps = one("SELECT max(steps) FROM job")
assert steps > 0
assert one("SELECT count(DISTINCT step) FROM v_step_role "
           "WHERE role = 'TP'") >= steps
# The whole is the sum of its parts.
assert abs(one("SELECT sum(transfer_ms) FROM v_step_role") -
           one("SELECT sum(transfer_ns) / 1e6 FROM op_match")) < 1e-3
# What is summed is what was summed.
assert rows(job, "SELECT process, sum(ops), sum(runs), sum(timed), "
            "sum(transfer_ns), sum(wait_ns), max(longest_ns) FROM op_sum "
            "GROUP BY process, class, usage, step") == rows(
    job, "SELECT m.process, count(*), count(*), count(transfer_ns), "
    "sum(transfer_ns), sum(wait_ns), max(wait_ns) FROM op_match m JOIN op o "
    "ON o.process = m.process AND o.id = m.op "
    "GROUP BY m.process, o.class, m.usage, m.step")
assert one("SELECT sum(total_bytes) FROM v_op_sum") == one(
    "SELECT sum(bytes) FROM v_op")
assert one("SELECT count(*) FROM op_sum") < one("SELECT count(*) FROM op") / 4
# Who came last to a collective waited least; only it is charged.
assert one("SELECT sum(last) FROM op_sum") == one(
    "SELECT count(*) FROM instance WHERE last NOT NULL") > 0
assert one("SELECT sum(others_ns) FROM op_sum") == one(
    "SELECT sum(wait_ns) FROM instance WHERE last NOT NULL")
assert one("SELECT count(*) FROM instance i WHERE last <> (SELECT m.process "
           "FROM op_match m JOIN place p ON p.process = m.process "
           "WHERE m.instance = i.id ORDER BY m.wait_ns, p.rank)") == 0
assert one("SELECT count(*) FROM v_instance WHERE last_rank NOT NULL "
           "AND (op IN ('send', 'recv') OR wait_ns <= 0)") == 0
# Transfer and wait are all of what an op took; of a group, together.
assert one("SELECT count(*) FROM op_match WHERE wait_ns IS NOT NULL") == ops
assert one("SELECT count(*) FROM op_match m JOIN op o ON o.process = m.process "
           "AND o.id = m.op WHERE m.launch IS NULL AND "
           "m.transfer_ns + m.wait_ns <> o.gpu_ns") == 0
assert one("SELECT count(*) FROM (SELECT process, launch, "
           "sum(transfer_ns + wait_ns) AS ns FROM op_match "
           "WHERE launch IS NOT NULL GROUP BY process, launch) m "
           "JOIN launch l ON l.process = m.process AND l.id = m.launch "
           "WHERE abs(m.ns - l.gpu_ns) > l.ops") == 0
assert one("SELECT min(ns) FROM (SELECT sum(m.wait_ns) AS ns FROM op_match m "
           "GROUP BY m.instance)") >= 0
PY

# What NCCL chose, and how long its profiler saw it run.
"$tracegen" --tp 2 --pp 2 --dp 2 --steps 3 --nccl log --out log
"$tracegen" --tp 2 --pp 2 --dp 2 --steps 3 --nccl kernel --out kernel
"$commtrace" merge --db log.db log
"$commtrace" merge --db kernel.db kernel
python3 - <<'PY'
import sqlite3

log, kernel, none = map(sqlite3.connect, ("log.db", "kernel.db", "job.db"))

def one(db, sql):
    return db.execute(sql).fetchone()[0]

collective = "op NOT IN ('send', 'recv')"
for db in log, kernel:
    assert one(db, "SELECT count(*) FROM v_op WHERE algorithm IS NOT 'RING' "
                   "AND " + collective) == 0
    assert one(db, "SELECT count(*) FROM v_op WHERE algorithm NOT NULL "
                   "AND NOT " + collective) == 0
    assert one(db, "SELECT count(*) FROM v_op") == one(
        db, "SELECT count(*) FROM op")
    assert one(db, "SELECT count(*) FROM prediction p JOIN op_kind k "
                   "ON k.id = p.kind WHERE (k.name = 'send') <> "
                   "(nccl_us IS NULL)") == 0
    assert one(db, "SELECT count(*) FROM tuning") > 0
assert one(log, "SELECT count(*) FROM kernel") == 0
assert one(kernel, "SELECT count(*) FROM v_op WHERE kernel_ns IS NULL") == 0
assert one(kernel, "SELECT count(*) FROM v_op WHERE time_source = 'event' "
                   "AND gpu_ns - kernel_ns <> 1000") == 0
# Which choice it was.
assert one(kernel, "SELECT count(*) FROM v_op o JOIN op_match m ON "
                   "m.process = o.process AND m.op = o.id JOIN choice_class c "
                   "ON c.process = m.told AND c.id = m.choice "
                   "WHERE c.bytes <> o.bytes OR m.told <> o.process") == 0
assert one(log, "SELECT count(*) FROM op_match WHERE told <> process") > 0
assert one(none, "SELECT count(*) FROM v_op WHERE algorithm NOT NULL "
                 "OR kernel_ns NOT NULL") == 0
PY
