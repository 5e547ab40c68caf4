#!/bin/sh
# demo.sh [DIR]: builds commtrace and the GPU-less fabric, traces a training
# job on two virtual hosts, and prints the report. Leaves traces, job.db and
# the report in DIR (default build/demo).
set -eu
cd "$(dirname "$0")/.."

./samples/deps.sh demo
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }

# Without the tests, which would want a test library; a tree that has been
# configured already keeps what it was configured for.
echo "Building into build/ ..."
[ -f build/CMakeCache.txt ] ||
    quietly cmake --preset default -DCOMMTRACE_TESTS=OFF
quietly cmake --build build

dir=${1:-build/demo}
rm -rf "$dir"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
export FABRIC="$PWD/tests/fabric/machines/two_hosts.fabric"
traced() { # FOLDER RANKS PROGRAM ARGUMENT...
    folder=$1 ranks=$2 program=$3
    shift 3
    echo
    echo "\$ LD_PRELOAD=libcommtrace.so launch -n $ranks $program $*"
    COMMTRACE_DIR="$dir/$folder" build/samples/launch -n "$ranks" -- \
        env LD_PRELOAD="$PWD/build/libcommtrace.so" "build/samples/$program" "$@"
}

cat <<'TEXT'
Two virtual hosts with four GPUs each (tests/fabric/machines/two_hosts.fabric).
First a sweep of message sizes inside hosts and between them, so that
predictions rest on measurements; then a training job, TP=2 PP=2 DP=2, whose
layout puts each TP pair on two hosts.
TEXT
traced sweep 8 sweep --ranks 2,4 --place both --align
traced job 8 train3d --tp 2 --pp 2 --dp 2 --order pp-dp-tp \
    --layers 4 --micro-batches 4 --steps 5 --summary

echo
echo "\$ commtrace report --reference sweep job"
echo
build/commtrace report --reference "$dir/sweep" "$dir/job" | tee "$dir/report.txt"
build/commtrace merge --db "$dir/job.db" "$dir/job"
cat <<TEXT

Ask your own questions, for example
  sqlite3 ${dir#"$PWD"/}/job.db < samples/sql/tp_over_network.sql
TEXT
