#!/bin/sh
# run.sh [NAME...]: runs the benchmarks (all without NAME). Each prints lines
# "bench NAME VALUE UNIT ratio=R floor=F": what was measured, and its ratio to
# a floor measured in the same run. Fails when a ratio breaks its bound.
# Machines are noisy: a benchmark that misses its bound is run twice more, and
# fails only when it misses it each time.
set -u
build=${BUILD:-$(dirname "$0")/../../build}
cd "$build/bench" || { echo "run.sh: no benchmarks in $build" >&2; exit 2; }
[ $# -gt 0 ] || set -- bench_*
failed=0
for name in "$@"; do
    name=${name#bench_}
    [ -x "bench_$name" ] || { echo "run.sh: no benchmark $name" >&2; exit 2; }
    "./bench_$name" || "./bench_$name" || "./bench_$name" || {
        echo "bench $name: bound missed three times" >&2
        failed=1
    }
done
exit $failed
