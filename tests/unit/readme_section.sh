#!/bin/sh
# readme_section.sh NAME GENERATOR README [--write]: README's section NAME,
# between its marks, is what the generator prints from the table; --write
# makes it so.
set -eu
name=$1 generator=$2 readme=$3
begin="<!-- $name: " end="<!-- /$name -->"
if ! grep -q "^$begin" "$readme" || ! grep -qx "$end" "$readme"; then
    echo "FAILED: $readme has no marks for $name"
    exit 1
fi
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
awk -v begin="$begin" -v end="$end" -v generator="$generator" '
    index($0, begin) == 1 { print; system(generator); skip = 1 }
    $0 == end { skip = 0 }
    !skip && index($0, begin) != 1' "$readme" >"$wanted"
if [ "${4:-}" = --write ]; then
    cat "$wanted" >"$readme"
elif ! diff -u "$readme" "$wanted"; then
    echo "FAILED: $readme lags behind its table; run"
    echo "  $0 $name $generator $readme --write"
    exit 1
fi
