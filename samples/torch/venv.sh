#!/bin/sh
# venv.sh VENV BUILD: makes a virtual environment with PyTorch, unless it is
# there. On a machine without a GPU PyTorch comes without NVIDIA's libraries,
# and the fabric of BUILD takes their place. Exit 77: the package registry
# cannot be reached.
set -eu
venv=$1
build=$2
torch=2.15.0
needs="numpy filelock typing_extensions sympy networkx jinja2 fsspec"
here=$(cd "$(dirname "$0")" && pwd)

if [ -e /dev/nvidia0 ] || nvidia-smi -L >/dev/null 2>&1; then
    what="all of PyTorch's needs (3 GB to download)" torch_options=
else
    what="no NVIDIA library (560 MB to download)" torch_options=--no-deps
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
unreachable='Could not find a version|No matching distribution|Max retries'
unreachable="$unreachable|Failed to establish|Temporary failure|timed out"
unreachable="$unreachable|ConnectionError|ProxyError|Network is unreachable"
install() {
    "$venv/bin/python3" -m pip install --disable-pip-version-check --no-input \
        --progress-bar off --retries 2 "$@" >>"$log" 2>&1 && return
    tail -n 5 "$log" >&2
    if grep -Eq "$unreachable" "$log"; then
        echo "SKIPPED: the package registry cannot be reached," \
            "so there is no PyTorch" >&2
        exit 77
    fi
    exit 1
}

if [ ! -f "$venv/torch-$torch" ]; then
    echo "Installing PyTorch $torch with $what into $venv ..."
    start=$(date +%s)
    python3 -m venv --clear "$venv"
    # shellcheck disable=SC2086 # words
    install $torch_options torch==$torch
    # shellcheck disable=SC2086 # words
    install $needs
    # The sizes that pip prints, of files and not of their descriptions.
    grep -E '^ *(Downloading|Using cached) .*\((.*) (kB|MB|GB)\)' "$log" |
        grep -v '\.metadata ' | sed 's/.*(\(.*\))/\1/' |
        awk -v s=$(($(date +%s) - start)) '
            { mb += $1 * ($2 == "kB" ? 0.001 : $2 == "GB" ? 1000 : 1) }
            END { printf "%.0f MB to download, installed in %d s\n", mb, s }' \
            >"$venv/torch-$torch"
    cat "$venv/torch-$torch"
fi
[ -z "$torch_options" ] ||
    "$here/../../tests/fabric/torch/overlay.sh" "$venv" "$build" >>"$log" 2>&1 ||
    { cat "$log" >&2; exit 1; }
