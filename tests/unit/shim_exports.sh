#!/bin/sh
# shim_exports.sh LIBRARY CC INCLUDE...: the library exports exactly the calls
# that it hooks, keeps SQLite to itself, needs no newer glibc than it says, and
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
#define HOOKED(family_, fn_, ...) wrapped fn_;
#define HOOKED_BARE HOOKED
#include "hooked.def"
END
for folder; do set -- "$@" "-I$folder"; shift; done
"$cc" -E -P "$@" "$scratch/rows.c" | tr ';' '\n' |
    sed -n 's/.*wrapped \([A-Za-z0-9_]*\).*/\1/p' | sort >"$scratch/hooked"
[ "$(wc -l <"$scratch/hooked")" -ge 20 ] || complain "no rows found"
nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' |
    sort >"$scratch/exported"
grep '[^@]@COMMTRACE$' "$scratch/exported" | sed 's/@.*//' |
    diff "$scratch/hooked" - || complain "exports differ"
# NCCL looks these up.
[ "$(grep '^ncclProfiler_v[4-7]@@COMMTRACE$' "$scratch/exported" | wc -l)" -eq 4 ] ||
    complain "the plugin is not there in each version"
grep '^cuda' "$scratch/exported" | sed 's/@.*//' | uniq -c |
    awk '$1 != 4 {print; bad = 1} END {exit bad}' ||
    complain "not there for each version of cudart"
# A default version would be seen by a program that probes for the name.
grep -v -e '^[a-zA-Z0-9_]*@COMMTRACE$' -e '@libcudart.so.1[123.0]*$' \
    -e '^dlsym@GLIBC_2.[0-9.]*$' "$scratch/exported" | grep -v -e '^dlsym@@GLIBC_2.34$' \
    -e '^ncclProfiler_v[4-7]@@COMMTRACE$' &&
    complain "exported in a way of its own"
[ "$(grep -c '^dlsym@' "$scratch/exported")" -eq 2 ] ||
    complain "dlsym is not in both versions of the C library"

# References without a version bind to version 2, whatever its name.
readelf -VW "$library" | grep -q 'Index: 2 .*Name: COMMTRACE' ||
    complain "COMMTRACE is not the first version"

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
