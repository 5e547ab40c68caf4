#!/bin/sh
# nccl_names_check.sh NCCL_H ROWS: nccl_ops.def and nccl.h list the same
# functions. ROWS has a line "FUNCTION SINCE" per row. Every function that
# nccl.h declares has a row, and every row as old as nccl.h is declared in it
# or in the device headers beside it.
set -eu
header=$1 rows=$2
[ "$(grep -c . "$rows")" -gt 50 ] || { echo "no rows in $rows"; exit 1; }
version=$(sed -n 's/^#define NCCL_VERSION_CODE *//p' "$header")
bad=0
# shellcheck disable=SC2013 # names, without blanks
for fn in $(sed -n 's/^ *\(ncclResult_t\|const char\*\|void\) *\(nccl[A-Z][A-Za-z0-9]*\)(.*/\2/p' "$header" | sort -u); do
    grep -q "^$fn " "$rows" || { echo "no row for $fn"; bad=1; }
done
while read -r fn since; do
    [ "$since" -le "$version" ] || continue
    grep -rqw "$fn" "$header" "$(dirname "$header")"/nccl_device* ||
        { echo "$fn: row since $since, not in NCCL $version"; bad=1; }
done <"$rows"
exit $bad
