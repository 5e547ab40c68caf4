#!/bin/sh
# torch.sh [JOB] [TORCHRUN OPTION...] [-- JOB OPTION...]: traces a PyTorch job
# of samples/torch (default parallel3d) that torchrun starts, and prints the
# report. What is missing is built or installed: PyTorch goes into a virtual
# environment of its own, $VENV (default build/torch-venv).
#
# On a machine without a GPU the job runs on the fabric, and --nnodes N (default
# 2 for parallel3d) starts N torchrun agents here, each a node of its own. For
# example, with each tensor-parallel pair on two nodes:
#   ./samples/torch.sh parallel3d -- --order pp-dp-tp
# Exit 77: PyTorch cannot be had, since the package registry is out of reach.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
venv=${VENV:-$build/torch-venv}
start=$(date +%s)

job=parallel3d nodes='' per_node='' options=''
case "${1:-}" in
-h | --help)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
-* | "") ;;
*)
    job=$1
    shift
    ;;
esac
if [ ! -f "samples/torch/$job.py" ]; then
    echo "torch.sh: no job '$job'; there are ddp, fsdp, tensor_parallel," \
        "pipeline and parallel3d" >&2
    exit 2
fi
while [ $# -gt 0 ]; do
    case "$1" in
    --) shift && break ;;
    --nnodes=*) nodes=${1#*=} ;;
    --nproc-per-node=* | --nproc_per_node=*) per_node=${1#*=} ;;
    --nnodes) nodes=${2?} && shift ;;
    --nproc-per-node | --nproc_per_node) per_node=${2?} && shift ;;
    *) options="$options $1" ;;
    esac
    shift
done

./samples/deps.sh torch
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }
echo "Building into $build/ ..."
[ -f "$build/CMakeCache.txt" ] ||
    quietly cmake --preset default -B "$build" -DCOMMTRACE_TESTS=OFF
quietly cmake --build "$build"
./samples/torch/venv.sh "$venv" "$build"

gpu=no
if [ -e /dev/nvidia0 ] || nvidia-smi -L >/dev/null 2>&1; then
    gpu=yes nodes=${nodes:-1} per_node=${per_node:-gpu}
elif [ "$job" = parallel3d ]; then
    nodes=${nodes:-2} per_node=${per_node:-4}
else
    nodes=${nodes:-1} per_node=${per_node:-2}
fi
if [ $gpu = no ]; then
    machine=one_host
    [ "$nodes" = 1 ] || machine=two_hosts
    export FABRIC_CPUOPS=1
    export FABRIC="${FABRIC:-$PWD/tests/fabric/machines/$machine.fabric}"
fi

dir=$build/torch/$job
rm -rf "$dir"
mkdir -p "$dir"
COMMTRACE_DIR=$(cd "$dir" && pwd)
export COMMTRACE_DIR OMP_NUM_THREADS=1
library=$(cd "$build" && pwd)/libcommtrace.so
agent() { # WORD...: torchrun with what is common to all agents
    # shellcheck disable=SC2086 # words
    LD_PRELOAD=$library "$venv/bin/torchrun" --nnodes "$nodes" \
        --nproc-per-node "$per_node" $options "$@"
}

echo
echo "\$ LD_PRELOAD=libcommtrace.so torchrun --nnodes $nodes" \
    "--nproc-per-node $per_node$options $job.py --verify $*"
began=$(date +%s)
status=0
if [ "$nodes" = 1 ]; then
    agent --standalone "samples/torch/$job.py" --verify "$@" || status=$?
elif [ $gpu = yes ]; then
    agent "samples/torch/$job.py" --verify "$@" || status=$?
else
    port=$(python3 -c 'import socket; s = socket.socket()
s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    agents=
    for node in $(seq 0 $((nodes - 1))); do
        NCCL_HOSTID=host$node agent --node-rank "$node" \
            --master-addr 127.0.0.1 --master-port "$port" \
            "samples/torch/$job.py" --verify "$@" &
        agents="$agents $!"
    done
    for pid in $agents; do
        wait "$pid" || status=$?
    done
fi
ended=$(date +%s)

echo
echo "\$ commtrace report ${dir#"$PWD"/}"
echo
"$build/commtrace" report "$dir"
cat <<TEXT

PyTorch: $(cat "$venv"/torch-*).
The job took $((ended - began)) s, everything $(($(date +%s) - start)) s.
TEXT
exit $status
