#!/bin/sh
# test_cli_golden.sh COMMTRACE TRACEGEN SQL_FOLDER [--update]: the report of a
# generated job, byte for byte. A change of wording is made on purpose: run it
# with --update and read the difference.
set -eu
commtrace=$1 tracegen=$2
golden=$(cd "$(dirname "$0")" && pwd)/test_cli_golden.txt
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

"$tracegen" --tp 4 --pp 2 --dp 2 --order dp,pp,tp --hosts 2 --steps 12 \
    --out job >/dev/null
"$tracegen" --tp 2 --pp 1 --dp 1 --sweep --seed 2 --out sweep >/dev/null
{
    "$commtrace" report --reference sweep job
    echo
    "$commtrace" groups job
    echo
    "$commtrace" ops --rank 3 --step 2 --limit 8 job
} >report.txt
if [ "${4:-}" = --update ]; then
    cp report.txt "$golden"
fi
diff -u "$golden" report.txt
if awk 'length > 100 { print; bad = 1 } END { exit !bad }' report.txt; then
    echo "wider than 100 columns" >&2
    exit 1
fi
