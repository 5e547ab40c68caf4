#!/bin/sh
# shim_exports.sh LIBRARY CC INCLUDE...: the library exports exactly the calls
# that it wraps, keeps SQLite to itself, needs no newer glibc than it says, and
# is small in the static TLS block.
set -u
library=$1 cc=$2
shift 2
glibc_floor=2.34
tls_bytes=256
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0

complain() {
    echo "FAILED: $*"
    failed=1
}

cat >"$scratch/rows.c" <<'END'
#define OP(id_, name_, fn_, ...) wrapped fn_;
#define COMM(fn_, ...) wrapped fn_;
#include "commtrace/nccl_ops.def"
#define GRAPH_CALL(kind_, fn_, own_) wrapped fn_;
#include "graph_calls.def"
END
for folder; do set -- "$@" "-I$folder"; shift; done
"$cc" -E -P "$@" "$scratch/rows.c" | tr ';' '\n' |
    sed -n 's/.*wrapped \([A-Za-z0-9_]*\).*/\1/p' | sort >"$scratch/wrapped"
[ "$(wc -l <"$scratch/wrapped")" -ge 20 ] || complain "no rows found"
nm -D --defined-only "$library" | awk '{print $3}' | sort >"$scratch/exported"
diff "$scratch/wrapped" "$scratch/exported" || complain "exports differ"

if nm -D --undefined-only "$library" | grep ' cu' ||
    nm -D "$library" | grep -i -e sqlite3 -e _Unwind -e nvml; then
    complain "a library shows through"
fi

newest=$(nm -D --undefined-only "$library" |
    sed -n 's/.*GLIBC_\([0-9.]*\)$/\1/p' | sort -V | tail -n 1)
[ "$(printf '%s\n%s\n' "$newest" $glibc_floor | sort -V | tail -n 1)" = \
    $glibc_floor ] || complain "needs glibc $newest, not $glibc_floor"

tls=$(readelf -lW "$library" | awk '$1 == "TLS" {print $6}')
[ $((${tls:-0})) -le $tls_bytes ] || complain "thread-local storage: $tls bytes"
readelf -dW "$library" | grep -q STATIC_TLS ||
    complain "thread-local storage is not initial-exec"
exit $failed
