#!/bin/sh
# deps.sh [demo|torch|tests]: installs what is missing of the Debian/Ubuntu
# packages that the demo, torch.sh, or the whole test suite (default) needs.
# Does nothing, and needs neither root nor a network, when all of it is there.
set -eu

demo="gcc libc6-dev cmake ninja-build libsqlite3-dev sqlite3 zlib1g-dev"
# Call sites: libunwind takes the stacks, the others name their frames.
demo="$demo libunwind8 libdw-dev libelf-dev libbz2-dev libiberty-dev"
torch="$demo python3 python3-venv"
tests="$torch g++ clang libcmocka-dev valgrind strace util-linux procps git"
tests="$tests libjemalloc2 libtcmalloc-minimal4 mpich parallel faketime"
case "${1:-tests}" in
demo) wanted=$demo ;;
torch) wanted=$torch ;;
tests) wanted=$tests ;;
*)
    echo "usage: deps.sh [demo|torch|tests]" >&2
    exit 2
    ;;
esac

# What a package is for can also be there without the package.
have() {
    case "$1" in
    gcc | g++ | clang | cmake | sqlite3 | valgrind | strace | python3 | git)
        command -v "$1" >/dev/null ;;
    ninja-build) command -v ninja >/dev/null ;;
    python3-venv) python3 -c 'import ensurepip' 2>/dev/null ;;
    *) dpkg-query -W -f '${Status}' "$1" 2>/dev/null |
        grep -q 'install ok installed' ;;
    esac
}

missing=
for package in $wanted; do
    have "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "deps.sh: missing:$missing; no apt-get here, install them yourself" >&2
    exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
    as_root=sudo
    command -v sudo >/dev/null || {
        echo "deps.sh: missing:$missing; run as root: apt-get install$missing" >&2
        exit 1
    }
fi
echo "deps.sh: installing$missing" >&2
$as_root apt-get update -qq >&2
# shellcheck disable=SC2086 # one word per package
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends $missing >&2
