#!/bin/sh
# run.sh [--quick]: builds and runs every test that needs no GPU. --quick
# leaves out the sanitised trees, clang and the benchmarks.
set -eu
cd "$(dirname "$0")/.."
quick=no
[ "${1:-}" != --quick ] || quick=yes
jobs=$(nproc)
say() { printf '\n== %s\n' "$*"; }
# Machines are shared, and end-to-end tests measure milliseconds: one of those
# that fails is run once more, and ctest says so. All others have one try.
again="--repeat until-pass:2"

./samples/deps.sh tests

say "gcc, warnings are errors"
cmake --preset default -DCOMMTRACE_TESTS=ON \
    -DCOMMTRACE_WERROR=ON >/dev/null
cmake --build --preset default

say "demo"
./samples/demo.sh build/demo >build/demo.log || { cat build/demo.log; exit 1; }
grep -m1 'TP_CROSSES_NODES, ranks' build/demo.log

say "tests"
ctest --preset default -LE 'e2e|clients' -j "$jobs"
# shellcheck disable=SC2086 # two words
ctest --preset default -L 'e2e|clients' -j "$jobs" $again
[ $quick = no ] || exit 0

say "clang, warnings are errors"
cmake -S . -B build-clang -G Ninja -DCMAKE_C_COMPILER=clang \
    -DCOMMTRACE_WERROR=ON >/dev/null
cmake --build build-clang

say "address and undefined-behaviour sanitizers: unit tests, e2e programs"
cmake --preset asan >/dev/null
cmake --build --preset asan
ctest --preset asan -L unit -j "$jobs"
# shellcheck disable=SC2086
ctest --preset asan -L e2e -j "$jobs" $again

say "thread sanitizer: ring, communicator table, writer, loading, soak"
cmake --preset tsan >/dev/null
cmake --build --preset tsan
ctest --preset tsan -L unit -R 'ring|comm|writer|trace|soak|told' -j "$jobs"

say "benchmarks, each against a floor of the same run"
./tests/bench/run.sh
