#!/bin/sh
# test_cli_help.sh COMMTRACE: every command explains itself with an example, on
# stdout, within 80 columns.
set -eu
commtrace=$1
failures=0

check() {
    text=$("$commtrace" "$@") || { echo "commtrace $*: exit $?" >&2; exit 1; }
    printf '%s\n' "$text" | grep -q '^Example:' || {
        echo "commtrace $*: no example" >&2
        failures=1
    }
    printf '%s\n' "$text" | awk 'length > 80 { print; bad = 1 }
                                 END { exit bad }' || failures=1
}

check --help
[ "$("$commtrace" help)" = "$text" ]
commands=$("$commtrace" --help | sed -n 's/^  \([a-z]*\)  *[A-Z].*\.$/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 5 ]
for command in $commands; do
    check "$command" --help
    [ "$("$commtrace" help "$command")" = "$text" ] || {
        echo "commtrace help $command: other than $command --help" >&2
        failures=1
    }
done
"$commtrace" --version | grep -q '^commtrace [0-9]'
exit $failures
