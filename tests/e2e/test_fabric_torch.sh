#!/bin/sh
# An unmodified PyTorch on the fabric, by all three backends of 2.15 and with
# what is special about each. test_fabric_torch.sh BUILD. It needs a virtual
# environment with torch, BUILD/torch-venv or COMMTRACE_TORCH_VENV, over which it
# lays the fabric; without one it says so and is skipped.
set -eu
venv=${COMMTRACE_TORCH_VENV:-$1/torch-venv}
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -x "$venv/bin/torchrun" ]; then
    echo "skipped: there is no PyTorch in $venv"
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
"$here/../fabric/torch/overlay.sh" "$venv" "$1"
export FABRIC_CPUOPS=1 OMP_NUM_THREADS=1
export FABRIC="$here/../fabric/machines/fast.fabric"

# job NAME RANKS BACKEND [VARIABLE=VALUE...]
job() {
    name=$1 ranks=$2 backend=$3
    shift 3
    if ! env "$@" timeout 120 "$venv/bin/torchrun" --nproc-per-node "$ranks" \
        "$here/test_fabric_torch.py" "$backend" >"$scratch/out" 2>&1 ||
        [ "$(grep -c ' right$' "$scratch/out")" != "$ranks" ] ||
        grep 'is not implemented' "$scratch/out"; then
        echo "FAILED: $name"
        cat "$scratch/out"
        exit 1
    fi
    echo "$name: right"
}

job default 4 nccl
job legacy 2 nccl-legacy
job lazy 2 nccl-lazy
job non-blocking 2 nccl-legacy TORCH_NCCL_USE_COMM_NONBLOCKING=1
job expandable 2 nccl PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
    TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK=1
