#!/bin/sh
# run.sh: every test with unmodified PyTorch, in build/ (or $BUILD): the
# witnesses of all jobs and options, faults, clocks, same output and overhead,
# the sample script, Megatron-core. Takes up to half an hour. Exit 77: PyTorch
# cannot be had, since the package registry is out of reach.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-$PWD/build}
VENV=${VENV:-$BUILD/torch-venv}
export BUILD VENV
start=$(date +%s)

./samples/deps.sh torch
[ -f "$BUILD/CMakeCache.txt" ] || cmake --preset default -B "$BUILD" >/dev/null
cmake --build "$BUILD" >/dev/null
./samples/torch/venv.sh "$VENV" "$BUILD"

failed=
for test in witness two_nccls sample graph faults same megatron; do
    printf '\n== %s\n' "$test"
    status=0
    python3 -B "tests/clients/test_$test.py" || status=$?
    [ $status -eq 0 ] || failed="$failed $test($status)"
done
printf '\n%d s; %s\n' $(($(date +%s) - start)) "${failed:+failed:$failed}"
[ -z "$failed" ]
