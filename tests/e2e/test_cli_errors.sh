#!/bin/sh
# test_cli_errors.sh COMMTRACE TRACEGEN: bad usage and bad input end with one
# line on stderr that names what is wrong (where an option is unknown, another
# says where all are), nothing on stdout, and exit 2.
set -eu
commtrace=$1 tracegen=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
failures=0

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# refused WORDS ARGUMENT...: the one line contains WORDS.
refused() {
    words=$1
    shift
    rc=0
    "$commtrace" "$@" >out 2>err || rc=$?
    [ $rc -eq 2 ] || fail "commtrace $*: exit $rc, not 2"
    [ ! -s out ] || fail "commtrace $*: wrote to stdout"
    [ "$(grep -vc "^Try 'commtrace" err)" -eq 1 ] ||
        fail "commtrace $*: stderr: $(cat err)"
    grep -qF -- "$words" err || fail "commtrace $*: no '$words' in: $(cat err)"
}

"$tracegen" --tp 2 --pp 2 --dp 1 --steps 4 --out good >/dev/null
one=$(find good -name "*.db" | sort | head -n 1)

"$tracegen" --tp 2 --steps 4 --drop 1 --out lost >/dev/null
n=0
for file in lost/*.db; do
    n=$((n + $(sqlite3 "$file" "SELECT sum(n) FROM loss WHERE what = 'op'")))
done
refused "no operation was recorded: all $n, of 2 processes, were lost, most by\
 ring_full; raise COMMTRACE_RING_SLOTS" report lost

refused "no command"
refused "unknown command 'bogus'" bogus
refused "--bogus" --bogus
grep -qx "Try 'commtrace --help'." err || fail "--bogus: $(cat err)"
refused "unknown command 'bogus'" help bogus
refused "--bogus" report --bogus good
grep -qx "Try 'commtrace report --help'." err || fail "--bogus: $(cat err)"
refused "no folder or file" report
refused "requires an argument" ops good --limit
refused "'x' is not a number" ops --rank x good
refused "'0' is not a number from 1 on" report --threads 0 good
refused "'-1' is not a number" ops --limit=-1 good
refused "no operation is called 'foo'" ops --kind foo good
refused "there are all_reduce, " ops --kind allreduce good
refused "scatter, put_signal, signal, wait_signal" ops --kind allreduce good
refused "no role is called 'XP'" ops --role XP good
refused "there are unknown, TP, PP, DP, control" ops --role EP good
refused "rank 4 has no trace" ops --rank 4 good
refused "rank 4 has no trace" ops --rank 4 --step 0 good
refused "rank 99999 has no trace" ops --ranks 99999 good
refused "there are steps 0..3" ops --step 4 good
refused "there are steps 0..3" ops --rank 2 --step 9999 good
refused "'0-2' is not a number" ops --ranks 0-2 good
# Evaluations between steps have no number.
"$tracegen" --dp 2 --steps 6 --eval-every 2 --out evaluated >/dev/null
refused "there are steps 0..5" ops --step 6 evaluated
refused "no communicator" ops --comm ffffffffffffff good
refused "--db FILE is missing" merge good
refused "no-such: No such file" doctor -- no-such
refused "--bogus" doctor --bogus
mkfifo pipe
refused "pipe: exists and is not a job.db" merge --db pipe good

# Two generated jobs do not mix.
rc=0
"$tracegen" --tp 2 --out good >out 2>err || rc=$?
[ $rc -eq 2 ] && grep -q "good: has traces already" err ||
    fail "tracegen into good: exit $rc: $(cat err)"

# What differs in writing alone is the same.
same() { # ONE OTHER, each the arguments of ops
    # shellcheck disable=SC2086 # words
    "$commtrace" ops $1 good >out && "$commtrace" ops $2 good >other &&
        cmp -s out other && [ "$(wc -l <out)" -gt 3 ] ||
        fail "ops $1 and ops $2 differ: $(head -n 5 out other)"
}
same "--role TP --limit 5" "--role tp --limit 5"
same "--rank 3 --limit 5" "--ranks 3 --limit 5"
same "--step 2 --limit 5" "--steps 2 --limit 5"

mkdir empty
: >zero.db
echo "this is not a database, and long enough to have a header of one" >text.db
head -c 6000 "$one" >truncated.db
cp "$one" newer.db
sqlite3 newer.db "PRAGMA user_version = 99"
cp "$one" no_ops.db
sqlite3 no_ops.db "DELETE FROM op"
mkfifo pipe.db
sqlite3 foreign.db "CREATE TABLE t(x)"

for command in report ops groups model; do
    refused "not_there: No such file" $command not_there
    refused "empty: " $command empty
    refused "zero.db: " $command zero.db
    refused "pipe.db: not a regular file" $command pipe.db
    refused "/dev/zero: not a regular file" $command /dev/zero
    refused "text.db: " $command text.db
    refused "truncated.db: " $command truncated.db
    refused "newer.db: " $command newer.db
    refused "no_ops.db: " $command no_ops.db
    refused "foreign.db: " $command foreign.db
done
# Nothing in a file is computed while it is read.
cp "$one" virtual.db
if sqlite3 virtual.db "DROP TABLE loss; CREATE VIRTUAL TABLE loss
    USING fts5(cause, what, comm, n, first_ns, last_ns)" 2>/dev/null; then
    refused "virtual.db: table loss: no such module" report virtual.db
else
    echo "skipped: a virtual table in a trace: the sqlite3 here has no fts5"
fi
refused "empty: " report --reference empty good
refused "newer.db: " merge --db job.db newer.db
[ ! -e job.db ] || fail "job.db was made of nothing"

# A digest needs a folder, and a trace.
refused "zero.db: Not a directory" digest -o zero.db good
"$commtrace" digest -o digests good >/dev/null
"$commtrace" digest -o again digests >out 2>err || fail "of digests: exit $?"
grep -q ": 4 files: digests already" err || fail "of digests: $(cat err)"
[ -z "$(ls again)" ] || fail "of digests: made $(ls again)"
"$commtrace" digest -o again digests good >out 2>err || fail "of both: exit $?"
grep -q "^4 digests" out && [ ! -s err ] || fail "of both: $(cat out err)"

# What is not a job.db is never overwritten, and nothing is left behind.
before=$(cksum <"$one")
refused "$one: " merge --db "$one" good
refused "text.db: " report --db text.db good
refused "empty: " merge --db empty good
refused "nowhere/job.db: " merge --db nowhere/job.db good
[ "$before" = "$(cksum <"$one")" ] || fail "$one was changed"
[ -z "$(find . -name '*.part')" ] || fail "left behind: $(find . -name '*.part')"

# A bad file beside good ones is skipped, and said.
cp -r good mixed
cp text.db mixed/
"$commtrace" report mixed >out 2>err || fail "mixed: exit $?"
grep -q "skipped mixed/text.db: " err || fail "mixed: $(cat err)"
grep -q "mixed/text.db" out || fail "mixed: the report does not say it"

# A process may hold both ends of a send: then no message leaves it.
"$tracegen" --pp 2 --steps 4 --out both >/dev/null
rm "$(find both -name "*.db" | sort | tail -n 1)"
sqlite3 "$(find both -name "*.db")" "CREATE TEMP TABLE other AS
    SELECT * FROM comm; UPDATE other SET id = id + 100, rank = 1 - rank;
    INSERT INTO comm SELECT * FROM other"
"$commtrace" report both >out 2>err || fail "both: exit $?: $(cat err)"
grep -q "2 traced of 2 in 1 process" out || fail "both: $(cat out)"

# A full disk is no success.
rc=0
"$commtrace" report good >/dev/full 2>err || rc=$?
[ $rc -eq 2 ] || fail "/dev/full: exit $rc"
grep -q "standard output: " err || fail "/dev/full: $(cat err)"

[ $failures -eq 0 ]
