#!/bin/sh
# run.sh [RESULT_FILE]: checks commtrace on a machine with one NVIDIA GPU, under
# the PyTorch that is installed there. Needs no network, takes at most 10
# minutes. Writes one line per check, "PASS|FAIL|SKIP name: figures or reason",
# and below them what each trace holds and its report, to RESULT_FILE (default
# gpu-result.txt). Exit status 0: nothing failed.
#
#   PYTHON=...  python3 with PyTorch (default: python3)
#   BUILD=...   a build of commtrace; without it build/ is built (needs cmake)
#   GPU_TEST_CHECKS="ddp events"   only these (tests/gpu/checks.py has the list)
#   GPU_TEST_SECONDS=560           for all checks together
#   KEEP=1      keeps the traces, in the folder that the last line names
#
# A machine that cannot build gets a build of another one, made there by
#
#   tests/gpu/run.sh --bundle build-gpu      (3 MB)
#
# and carried along with the sources:
#
#   BUILD=build-gpu tests/gpu/run.sh result.txt
#
# COMMTRACE_GPU_TEST_ON_FABRIC=1 exercises all of it without a GPU, in $VENV
# (default build/torch-venv) as samples/torch.sh makes it: checks that need the
# real driver are skipped, and so are verdicts on times.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
log=$(mktemp)
work=
trap 'rm -f "$log"; [ -z "$work" ] || [ -n "${KEEP:-}" ] || rm -rf "$work"' EXIT
quietly() { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 2; }; }

fabric=${COMMTRACE_GPU_TEST_ON_FABRIC:-}

build_all() { # FOLDER
    command -v cmake >/dev/null || {
        echo "run.sh: no cmake; make a bundle elsewhere (see its head)" >&2
        exit 2
    }
    [ -f "$1/CMakeCache.txt" ] ||
        quietly cmake -S "$root" -B "$1" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
            -DCOMMTRACE_TESTS=OFF
    [ "$fabric" = 1 ] && targets=all || targets="commtrace commtrace_so"
    # shellcheck disable=SC2086 # words
    quietly cmake --build "$1" -j "$(nproc)" --target $targets
}

programs() { # FOLDER
    mkdir -p "$1"
    folder=$1
    set -- -std=c11 -D_GNU_SOURCE -O2 -I "$root/include"
    quietly "${CC:-cc}" "$@" -o "$folder/op_cost" "$root/tests/gpu/op_cost.c" \
        -ldl
    quietly "${CC:-cc}" "$@" -fPIC -shared -o "$folder/libwitness.so" \
        "$root/tests/clients/witness.c" -ldl
}

case "${1:-}" in
-h | --help)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit
    ;;
--bundle)
    [ $# = 2 ] || { echo "usage: run.sh --bundle FOLDER" >&2; exit 2; }
    build_all "${BUILD:-$root/build}"
    mkdir -p "$2"
    cp "${BUILD:-$root/build}/libcommtrace.so" \
        "${BUILD:-$root/build}/commtrace" "$2"
    programs "$2"
    strip -S "$2/libcommtrace.so" "$2/commtrace"
    exit
    ;;
esac
result=${1:-gpu-result.txt}

if [ -z "${BUILD:-}" ]; then
    BUILD=$root/build
    build_all "$BUILD"
fi
BUILD=$(cd "$BUILD" && pwd)
for file in libcommtrace.so commtrace; do
    [ -f "$BUILD/$file" ] || {
        echo "run.sh: no $file in $BUILD" >&2
        exit 2
    }
done
work=$(mktemp -d)
bin=$BUILD
if command -v "${CC:-cc}" >/dev/null; then
    bin=$work/bin
    programs "$bin"
fi

python=${PYTHON:-python3}
if [ "$fabric" = 1 ]; then
    venv=${VENV:-$root/build/torch-venv}
    "$root/samples/torch/venv.sh" "$venv" "$BUILD"
    python=$venv/bin/python3
    FABRIC=$root/tests/fabric/machines/one_host.fabric
    export FABRIC FABRIC_CPUOPS=1
fi

WORK=$work OP_COST=$bin/op_cost WITNESS_LIBRARY=$bin/libwitness.so
export BUILD WORK OP_COST WITNESS_LIBRARY
status=0
"$python" -B "$root/tests/gpu/suite.py" "$result" || status=$?
[ -z "${KEEP:-}" ] || echo "traces: $work"
exit $status
