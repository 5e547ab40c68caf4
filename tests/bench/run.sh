#!/bin/sh
# run.sh [NAME...]: runs the benchmarks (all without NAME). Each prints lines
# "bench NAME VALUE UNIT ratio=R floor=F": what was measured, and its ratio to
# a floor measured in the same run. Fails when a ratio breaks its bound.
# Machines are noisy, for seconds at a time: a benchmark that misses its bound is
# run up to four times more, and fails only when it misses it each time.
set -u
build=${BUILD:-$(dirname "$0")/../../build}
cd "$build/bench" || { echo "run.sh: no benchmarks in $build" >&2; exit 2; }
[ $# -gt 0 ] || set -- bench_*
failed=0
meets_bound() {
    for try in 1 2 3 4 5; do
        [ $try = 1 ] || sleep 3
        "./bench_$1" && return
    done
    return 1
}
for name in "$@"; do
    name=${name#bench_}
    [ -x "bench_$name" ] || { echo "run.sh: no benchmark $name" >&2; exit 2; }
    meets_bound "$name" || {
        echo "bench $name: bound missed five times" >&2
        failed=1
    }
done
exit $failed
