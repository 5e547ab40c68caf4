#!/bin/sh
# overlay.sh VENV BUILD [--undo]: puts the stand-ins where the torch of a
# throw-away virtual environment looks for NVIDIA's libraries (its RPATH beats
# LD_LIBRARY_PATH), and loud stubs for all others that it links. BUILD is the
# build tree of this project. Works with and without NVIDIA's wheels; what they
# brought is kept as NAME.real, and --undo puts it back.
set -eu

die() {
    echo "overlay.sh: $*" >&2
    exit 2
}

[ $# -ge 2 ] || die "usage: overlay.sh VENV BUILD [--undo]"
here=$(cd "$(dirname "$0")" && pwd)
fabric=$(cd "$2" && pwd)/fabric
for site in "$1"/lib/python3*/site-packages; do
    [ -d "$site/torch/lib" ] && break
done
[ -d "$site/torch/lib" ] || die "no torch in $1"
site=$(cd "$site" && pwd)
# Environments may share a build: each has libraries of its own. They are made
# aside and then put in place, so that jobs which run now do not notice.
final=$fabric/torch/$(printf %s "$site" | cksum | cut -d ' ' -f 1)
out=$final.new
nvidia=$site/nvidia
modules="fabric_cpuops.py fabric_hook.py"

undo() {
    rm -rf "$final"
    [ -d "$nvidia" ] || return 0
    find "$nvidia" -type l -name 'lib*.so*' | while read -r link; do
        rm "$link"
        [ ! -e "$link.real" ] || mv "$link.real" "$link"
    done
    find "$nvidia" -type d -empty -delete
    for module in fabric_hook.pth $modules; do
        rm -f "$site/$module"
    done
}

if [ "${3:-}" = --undo ]; then
    undo
    exit
fi

# compile SONAME SOURCE MAP FLAGS...: a shared library in $out
# shellcheck disable=SC2016  # the loader expands $ORIGIN
compile() {
    soname=$1 source=$2 map=$3
    shift 3
    "${CC:-cc}" -O1 -g -fPIC -shared -w -Wl,-soname,"$soname" \
        -Wl,--version-script="$map" -Wl,-rpath,'$ORIGIN' -o "$out/$soname" \
        "$source" "$@"
}

# stand_in SONAME MAP FLAGS...: the built library; where torch needs more of it
# than there is, a new one of its objects and of loud stubs.
stand_in() {
    soname=$1 map=$2
    shift 2
    built=$fabric/$soname
    [ -e "$built" ] || die "$built is not built"
    if [ -e "$out/$soname.imports" ]; then
        python3 "$here/stubs.py" "$soname" "$out/$soname.imports" "$built" \
            >"$out/$soname.c"
        if grep -q '^long ' "$out/$soname.c"; then
            compile "$soname" "$out/$soname.c" "$here/../$map" \
                -Wl,--whole-archive "$fabric/archive/${soname%%.so*}.a" \
                -Wl,--no-whole-archive "$fabric/archive/libfabric_common.a" \
                -L"$fabric" "$@" -lpthread -ldl
            return
        fi
    fi
    ln -s "$built" "$out/$soname"
}

# stub SONAME: a library without any body, with the versions that torch names
stub() {
    python3 "$here/stubs.py" "$1" "$out/$1.imports" >"$out/$1.c"
    version=$(awk 'NF > 1 { print $2; exit }' "$out/$1.imports")
    echo "$version { global: *; };" >"$out/$1.map"
    compile "$1" "$out/$1.c" "$out/$1.map"
}

# The real library that the environment has, or nothing. The real CUPTI does
# not survive a stand-in driver.
real() {
    [ "$1" = "${1#libcupti}" ] || return 0
    [ ! -d "$nvidia" ] || find "$nvidia" -name "$1" -type f | head -n 1
}

# place SONAME FOLDER: links to it from a folder of the environment
place() {
    mkdir -p "$2"
    [ ! -e "$2/$1" ] || [ -L "$2/$1" ] || mv "$2/$1" "$2/$1.real"
    ln -sf "$final/$1" "$2/$1"
}

rm -rf "$out"
mkdir -p "$out"
python3 "$here/imports.py" "$site" "$out"

stand_in libcuda.so.1 exports.map
stand_in libcudart.so.13 cudart/exports.map -l:libcuda.so.1
stand_in libnccl.so.2 exports.map -l:libcuda.so.1 -lm
stand_in libcublas.so.13 blas/cublas.map -l:libcuda.so.1
stand_in libcublasLt.so.13 blas/cublaslt.map -l:libcuda.so.1
stand_in libnvidia-ml.so.1 exports.map
for imports in "$out"/*.imports; do
    soname=$(basename "$imports" .imports)
    [ -e "$out/$soname" ] || [ -n "$(real "$soname")" ] || stub "$soname"
done

rm -rf "$final.old"
[ ! -e "$final" ] || mv "$final" "$final.old"
mv "$out" "$final"
rm -rf "$final.old"
for library in "$final"/lib*.so.*[0-9]; do
    soname=$(basename "$library")
    found=$(find "$nvidia" -name "$soname" 2>/dev/null | head -n 1)
    place "$soname" "$(dirname "${found:-$nvidia/cu13/lib/$soname}")"
done
# libnccl comes from a folder of its own, and asks for libcuda from there.
place libnccl.so.2 "$nvidia/nccl/lib"
place libcuda.so.1 "$nvidia/nccl/lib"

for module in $modules; do
    ln -sf "$here/$module" "$site/$module"
done
echo 'import os; os.environ.get("FABRIC_CPUOPS") == "1" and __import__("fabric_hook")' \
    >"$site/fabric_hook.pth"
