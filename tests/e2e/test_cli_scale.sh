#!/bin/sh
# test_cli_scale.sh COMMTRACE TRACEGEN: the same bytes with any number of
# threads, and thousands of files in spite of a low limit of open ones.
set -eu
commtrace=$1 tracegen=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

# A job with something of everything that can go wrong.
"$tracegen" --tp 2 --pp 4 --dp 4 --hosts 4 --layers 8 --steps 12 --seed 3 \
    --clock-us 200 --drift-ppm 2 --drop 0.01 --missing 5 --cut 9@300 \
    --slow-link 2-4,3 --lone-groups --out job >/dev/null
run=0
for threads in 1 2 7 2; do
    "$commtrace" report --threads $threads job >report.$run 2>said.$run
    "$commtrace" report --json --db job.$run.db --threads $threads job \
        >json.$run 2>/dev/null
    COMMTRACE_THREADS=$threads "$commtrace" ops --step 3 job >ops.$run \
        2>/dev/null
    for what in report said json ops; do
        cmp $what.0 $what.$run
    done
    cmp job.0.db job.$run.db
    run=$((run + 1))
done

if "$commtrace" report --threads many job 2>said; then
    echo "--threads many was taken for a number" >&2
    exit 1
fi
grep -q -e "--threads: 'many' is not a number" said

# 4096 files: 128 and their copies, the first of which are told by name, and all
# by --json.
"$tracegen" --tp 8 --pp 4 --dp 4 --hosts 16 --layers 4 --steps 3 \
    --micro-batches 4 --out few >/dev/null
mkdir many
(
    cd few
    for file in *.db; do
        ln "$file" "../many/$file"
        copy=1
        while [ $copy -lt 32 ]; do
            ln "$file" "../many/z$copy.$file"
            copy=$((copy + 1))
        done
    done
)
[ "$(find many -name '*.db' | wc -l)" = 4096 ]
"$commtrace" report few >report.few
(
    # shellcheck disable=SC3045 # dash has it
    ulimit -n 256
    "$commtrace" report --threads 64 many >report.many 2>said.many
)
for report in report.few report.many; do
    sed '/^  Data: /d; /^  not read  /d' $report >$report.alike
done
cmp report.few.alike report.many.alike
[ "$(grep -c "skipped many/z.*: same process as many/" said.many)" = 8 ]
grep -q "skipped 3960 copies more" said.many
[ "$(wc -l <said.many)" = 9 ]
"$commtrace" report --json many 2>said.many |
    python3 -c 'import json, sys
skipped = json.load(sys.stdin)["jobs"][0]["quality"]["skipped"]
assert len(skipped) == len(set(skipped)) == 3968
assert all("same process as many/" in line for line in skipped)'
