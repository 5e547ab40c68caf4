#!/bin/sh
# test_record_valgrind.sh: rank 0 of a job under valgrind, traced. No error in
# memory accesses, nothing lost by the recorder. BUILD is the build folder.
set -u
command -v valgrind >/dev/null || { echo "no valgrind here"; exit 77; }
here=$(dirname "$0")
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export FABRIC="$here/../fabric/machines/one_host.fabric"
export COMMTRACE_DIR="$scratch/trace"
# shellcheck disable=SC2016
"$BUILD/samples/launch" -n 2 -- sh -c '
    check=
    [ "$RANK" = 1 ] || check="valgrind -q --error-exitcode=99 --leak-check=full
        --errors-for-leak-kinds=definite --fair-sched=yes"
    # shellcheck disable=SC2086
    exec env LD_PRELOAD="$1" $check "$2" --tp 2 --steps 2' sh \
    "$BUILD/libcommtrace.so" "$BUILD/samples/train3d" \
    2>"$scratch/errors"
status=$?
cat "$scratch/errors"
[ $status = 0 ] || exit 1
[ "$(find "$COMMTRACE_DIR" -name '*.db' | wc -l)" = 2 ] || exit 1
