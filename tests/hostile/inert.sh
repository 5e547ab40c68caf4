#!/bin/sh
# inert.sh LIBRARY: programs that never call NCCL do not notice the library: same
# output, same status, no file, no thread, no complaint about a variable.
set -u
library=$1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/work" "$scratch/trace"
cd "$scratch/work" || exit 1
failed=0

both() {
    "$@" >"$scratch/bare" 2>&1
    echo "status $?" >>"$scratch/bare"
    COMMTRACE_DIR=$scratch/trace COMMTRACE_FLUSH_MS=nonsense \
        LD_PRELOAD=$library "$@" >"$scratch/traced" 2>&1
    echo "status $?" >>"$scratch/traced"
    left=$(find "$scratch/work" "$scratch/trace" -mindepth 1)
    if ! cmp -s "$scratch/bare" "$scratch/traced"; then
        echo "FAILED: output of: $*"
        diff "$scratch/bare" "$scratch/traced"
        failed=1
    fi
    # Rings of other jobs may be there; ours would name our folder.
    left=$left$(grep -l "$scratch" /dev/shm/commtrace.* 2>/dev/null)
    if [ -n "$left" ]; then
        echo "FAILED: $* left files: $left"
        failed=1
    fi
}

both true
both false
both ls /
both bash -c 'echo a | cat; exit 3'
both python3 -c 1
both python3 -c 'import threading, sqlite3; print(sqlite3.connect(":memory:")
    .execute("select 1").fetchall(), threading.active_count())'
# Data loaders: children that serve a parent by pipes, however they are made.
for how in fork spawn forkserver; do
    cat >"$scratch/loader.py" <<END
import multiprocessing, os
def load(n):
    return n * n, len(os.listdir("/proc/self/task"))
if __name__ == "__main__":
    with multiprocessing.get_context("$how").Pool(2) as pool:
        print(pool.map(load, range(8)))
END
    both python3 -B "$scratch/loader.py"
done
both sh -c 'exec ls /proc/self/task | wc -l'
exit $failed
