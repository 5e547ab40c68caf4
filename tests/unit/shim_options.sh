#!/bin/sh
# shim_options.sh GENERATOR README: README's table of options is the one that
# the program's own table prints.
set -u
grep -q '^<!-- options -->$' "$2" || { echo "README has no such section"; exit 77; }
shown=$(sed -n '/^<!-- options -->$/,/^<!-- end of options -->$/p' "$2" |
    sed '1d;$d')
[ "$shown" = "$("$1")" ] && exit 0
echo "FAILED: between <!-- options --> and <!-- end of options --> README needs:"
"$1"
exit 1
