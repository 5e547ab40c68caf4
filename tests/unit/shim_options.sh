#!/bin/sh
# shim_options.sh GENERATOR README: README's table of options is the one that
# config.def prints.
set -u
shown=$(sed -n '/^<!-- options: /,/^<!-- \/options -->$/p' "$2" | sed '1d;$d')
[ -n "$shown" ] || { echo "README shows no options yet"; exit 77; }
[ "$shown" = "$("$1")" ] && exit 0
echo "FAILED: between the marks of its options README needs:"
"$1"
exit 1
