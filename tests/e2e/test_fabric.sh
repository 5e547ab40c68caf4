#!/bin/sh
# The fabric and the jobs as programs: test_fabric.sh CASE SAMPLES MACHINES
# where SAMPLES is the folder of train3d, sweep and launch, and MACHINES that
# of the *.fabric files.
set -eu
case=$1 samples=$2 machines=$3
PATH=$samples:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "error: $*" >&2
    exit 1
}

# Segments of the fabric that nobody uses: the key's first byte says whose.
segments() {
    ipcs -m | awk '$1 ~ /^0xfa/ && $6 == 0 { n++ } END { print n + 0 }'
}

# expect_error REASON LINE... : the machine of these lines is refused.
expect_error() {
    want=$1
    shift
    printf '%s\n' "$@" >"$scratch/bad.fabric"
    rc=0
    out=$(FABRIC=$scratch/bad.fabric train3d 2>&1) || rc=$?
    [ $rc = 2 ] || fail "status $rc for: $*"
    [ "$out" = "$scratch/bad.fabric:$want" ] || fail "got '$out' for: $*"
}

case_config() {
    expect_error "1: 'host' is no key" \
        'host 2'
    expect_error "2: 'hosts' is given twice" \
        'hosts 2' 'hosts 3'
    expect_error "3: 'x' is not a whole number in range" \
        '# a comment' '' 'hosts x'
    expect_error "1: 'hosts' takes exactly one value" \
        'hosts 1 2'
    expect_error "1: 'outer' is neither intra nor inter" \
        'link outer alpha_us=1'
    expect_error "1: 'beta' is no key of link" \
        'link intra beta=1'
    expect_error "1: '5' is not a bandwidth in MB/s or GB/s" \
        'link intra bandwidth=5'
    expect_error "1: '0MB/s' is not a bandwidth in MB/s or GB/s" \
        'link intra bandwidth=0MB/s'
    expect_error "1: '-1' is not a number of microseconds" \
        'link intra alpha_us=-1'
    expect_error "1: 'alpha_us' is not of the form KEY=VALUE" \
        'link intra alpha_us'
    expect_error "1: 'straggler' needs rank= and compute=" \
        'straggler rank=1'
    expect_error "1: 'explode' is none of die, stop, error, async" \
        'fault rank=1 op=1 action=explode'
    expect_error "1: 'maybe' is none of yes, no, switch, direct" \
        'nvlink maybe'
    expect_error "1: 'maybe' is neither yes nor no" \
        'p2p maybe'
    expect_error "1: 'fddi' is none of ib, roce, tcp, plugin:NAME" \
        'network fddi'
    expect_error "1: 'plugin:' names no plugin" \
        'network plugin:'
    expect_error "1: '400' is not a rate like 400G" \
        'nic_rate 400'
    expect_error "1: '3.0.0' is not an NCCL version like 2.28.9" \
        'nccl_version 3.0.0'
    rc=0
    out=$(FABRIC=$scratch/none train3d 2>&1) || rc=$?
    [ "$rc $out" = "2 $scratch/none:0: No such file or directory" ] ||
        fail "a file that is not there: $out"
    for machine in "$machines"/*.fabric; do
        FABRIC=$machine train3d --steps 1 --compute-us 0 >/dev/null ||
            fail "$machine"
    done
}

# Data of every layout is checked by the job itself.
case_layouts() {
    export FABRIC="$machines/fast.fabric"
    for layout in '--tp 2 --pp 2 --dp 2' '--tp 2 --pp 2 --dp 2 --order dp-pp-tp' \
        '--tp 2 --pp 2 --dp 2 --order pp-dp-tp --dtype bf16' \
        '--tp 4 --pp 2 --dtype fp16' '--tp 2 --pp 4 --micro-batches 8' \
        '--tp 8' '--pp 8 --layers 8' '--pp 4 --dp 2 --micro-batches 1' \
        '--dp 8 --seq 100 --hidden 64'; do
        # shellcheck disable=SC2086
        launch -n 8 -- train3d $layout --steps 2 --compute-us 0 >"$scratch/out" ||
            fail "train3d $layout"
        grep -q 'data right$' "$scratch/out" || fail "train3d $layout is silent"
    done
}

# The log is the sequence that theory demands.
case_log() {
    export FABRIC="$machines/fast.fabric"
    launch -n 8 -- train3d --tp 2 --pp 2 --dp 2 --layers 4 --micro-batches 4 \
        --steps 3 --compute-us 0 --log "$scratch" >/dev/null
    for rank in 0 1 2 3 4 5 6 7; do
        log=$scratch/rank$rank.log
        # 2 layers * 4 micro-batches * 4 all-reduces of b*s*h, 3 steps
        n=$(grep -c "^AllReduce 32768 float32 - " "$log") || true
        [ "$n" = 96 ] || fail "rank $rank: $n tensor-parallel all-reduces"
        n=$(grep -Ec "^(Send|Recv) 32768 float32 [01] " "$log") || true
        [ "$n" = 24 ] || fail "rank $rank: $n sends and receives"
        n=$(grep -c "^AllReduce 1 float32 - " "$log") || true
        [ "$n" = 3 ] || fail "rank $rank: $n gradient norms"
        [ "$(wc -l <"$log")" = $((96 + 24 + 3 + 3 * 4 + 1)) ] ||
            fail "rank $rank: other calls"
        head -1 "$log" | grep -q "^Bcast 786432 float32 0 " ||
            fail "rank $rank: first call"
    done
    grep -q "^AllReduce 32768 float32 - 0,1$" "$scratch/rank0.log" ||
        fail "members"
}

# A slower link inside the group makes the step longer by what the model says.
case_crossing() {
    for machine in one_host two_hosts; do
        FABRIC=$machines/$machine.fabric launch -n 2 --hosts \
            "$([ $machine = one_host ] && echo 1 || echo 2)" -- \
            train3d --tp 2 --summary --layers 2 --steps 5 |
            sed -n 's/^step_ms_median=//p' >"$scratch/$machine"
    done
    # 2 layers * 4 micro-batches * 4 all-reduces of 128 KiB on two ranks:
    # 2 * 3 ms of alpha, and the bytes at 60 instead of 400 MB/s
    awk -v a="$(cat "$scratch/one_host")" -v b="$(cat "$scratch/two_hosts")" \
        'BEGIN { want = 32 * (2 * 3 + 131.072 / 60 - 131.072 / 400)
                 off = (b - a) / want - 1
                 printf "difference %.2f ms, model %.2f ms\n", b - a, want
                 exit off < -0.15 || off > 0.15 }' || fail "difference"
}

# Jobs that end, and jobs that are killed, leave nothing that hurts.
case_leftovers() {
    export FABRIC="$machines/fast.fabric"
    before=$(segments)
    launch -n 4 -- train3d --tp 2 --dp 2 --steps 1 --compute-us 0 >/dev/null
    [ "$(segments)" = "$before" ] || fail "segments after a normal end"
    for delay in 0.005 0.02 0.1; do
        launch -n 4 -- train3d --tp 2 --dp 2 --steps 1000 >/dev/null 2>&1 &
        sleep $delay
        kill -KILL $!
        wait $! || true
    done
    sleep 0.2
    launch -n 4 -- train3d --tp 2 --dp 2 --steps 1 --compute-us 0 >/dev/null ||
        fail "a job after killed ones"
    after=$(segments)
    # What a job leaves that is killed while it sets up is removed by a later
    # job, a minute after.
    [ "$after" -le $((before + 3)) ] || fail "$after segments, $before before"
}

# shellcheck disable=SC2016 # the ranks' shells expand these
case_launch() {
    unset FABRIC NCCL_HOSTID
    out=$(launch -n 3 -- sh -c 'echo $RANK $LOCAL_RANK $WORLD_SIZE \
        $LOCAL_WORLD_SIZE $MASTER_ADDR ${NCCL_HOSTID-none}' | sort)
    [ "$out" = "$(printf '%s\n' '0 0 3 3 127.0.0.1 none' \
        '1 1 3 3 127.0.0.1 none' '2 2 3 3 127.0.0.1 none')" ] || fail "$out"
    out=$(launch -n 3 --hosts 2 -- sh -c 'echo $RANK $LOCAL_RANK \
        $LOCAL_WORLD_SIZE $NCCL_HOSTID' | sort)
    [ "$out" = "$(printf '%s\n' '0 0 2 host0' '1 1 2 host0' \
        '2 0 1 host1')" ] || fail "$out"
    out=$(FABRIC=$machines/four_hosts.fabric launch -n 2 -- \
        sh -c 'echo $RANK $NCCL_HOSTID' | sort)
    [ "$out" = "$(printf '%s\n' '0 host0' '1 host1')" ] || fail "$out"
    rc=0
    launch -n 3 -- sh -c '[ $RANK != 1 ] || exit 7; exec sleep 60' 2>/dev/null ||
        rc=$?
    [ $rc = 7 ] || fail "status $rc instead of 7"
    rc=0
    launch -n 2 -- sh -c '[ $RANK != 1 ] || kill -KILL $$; sleep 60' \
        2>/dev/null || rc=$?
    [ $rc = 137 ] || fail "status $rc instead of 137"
    launch -n 2 -- sh -c 'trap "echo hello; exit 0" USR1; touch '"$scratch"'/$RANK
        while :; do sleep 0.05; done' >"$scratch/out" &
    until [ -e "$scratch/0" ] && [ -e "$scratch/1" ]; do sleep 0.05; done
    kill -USR1 $!
    wait $! || fail "a signal that is passed on"
    [ "$(grep -c hello "$scratch/out")" = 2 ] || fail "signals"
}

# Each rank has the files of its host, as long as launch lives.
case_trees() {
    export FABRIC="$machines/roce.fabric"
    [ "$(COMMTRACE_SYSFS=/mine launch -n 1 -- sh -c 'echo $COMMTRACE_SYSFS')" = \
        /mine ] || fail "a COMMTRACE_SYSFS that was chosen"
    launch -n 8 -- sh -c 'cd $COMMTRACE_SYSFS
        echo $RANK $(cat class/infiniband/mlx5_1/node_guid) \
            $(cat bus/pci/devices/0000:13:00.0/numa_node) \
            $(basename $(readlink -f class/net/rdma1/device)) \
            $(basename $(readlink -f class/net/eth0/device/driver))
        pwd >&2' 2>"$scratch/pwd" |
        sort >"$scratch/out"
    for rank in 0 1 2 3 4 5 6 7; do
        echo $rank a088:c201:000$((rank / 4)):0001 1 0000:61:00.0 ice
    done | diff - "$scratch/out" || fail "files of the hosts"
    [ "$(sort -u "$scratch/pwd" | wc -l)" = 2 ] || fail "one folder per host"
    for folder in $(cat "$scratch/pwd"); do
        [ ! -e "$folder" ] || fail "$folder is still there"
    done
    launch -n 1 -- sh -c 'echo $COMMTRACE_SYSFS >'"$scratch/at"'
        exec sleep 60' 2>/dev/null &
    until [ -s "$scratch/at" ]; do sleep 0.05; done
    kill -KILL $!
    wait $! || true
    while [ -e "$(cat "$scratch/at")" ]; do sleep 0.05; done
}

# Noise is that of the seed: the same in every run, another with another seed.
sweep_with_seed() {
    sed "s/^link.*/& jitter=0.2/" "$machines/two_hosts.fabric" \
        >"$scratch/m.fabric"
    echo "seed $1" >>"$scratch/m.fabric"
    FABRIC=$scratch/m.fabric launch -n 2 -- sweep --ops all_reduce --min 64K \
        --max 64K --iters 10 | awk '/all_reduce/ { print $7 }'
}

case_jitter() {
    first=$(sweep_with_seed 1)
    again=$(sweep_with_seed 1)
    other=$(sweep_with_seed 2)
    echo "$first us, again $again us, another seed $other us"
    awk -v a="$first" -v b="$again" -v c="$other" 'BEGIN {
        exit !(a / b < 1.005 && b / a < 1.005 &&
            (a / c > 1.005 || c / a > 1.005) &&
            a > 2164 * 0.8 && a < 2164 * 1.2) }' || fail "noise"
}

# A busy machine only ever adds.
step_ms() {
    launch -n 2 -- train3d --tp 2 --layers 2 --micro-batches 2 --steps 8 \
        --compute-us 8000 --summary | sed -n 's/^step_ms_least=//p'
}

# Faults and stragglers of the FABRIC file.
case_faults() {
    cp "$machines/fast.fabric" "$scratch/m.fabric"
    export FABRIC="$scratch/m.fabric"
    echo 'fault rank=1 op=20 action=die' >>"$FABRIC"
    rc=0
    launch -n 2 -- train3d --tp 2 --compute-us 0 --log "$scratch" \
        2>/dev/null || rc=$?
    [ $rc = 137 ] || fail "status $rc when a rank dies"
    [ "$(wc -l <"$scratch/rank1.log")" = 20 ] || fail "it died at another op"
    sed -i 's/action=die/action=error/' "$FABRIC"
    rc=0
    launch -n 2 -- train3d --tp 2 --compute-us 0 2>"$scratch/err" || rc=$?
    [ $rc = 1 ] || fail "status $rc when an op fails"
    grep -q 'ncclAllReduce: unhandled system error' "$scratch/err" ||
        fail "an op that fails"
    sed -i 's/action=error/action=stop/' "$FABRIC"
    rc=0
    timeout 1 launch -n 2 -- train3d --tp 2 --compute-us 0 2>/dev/null || rc=$?
    [ $rc != 0 ] || fail "a stopped rank does not stop the job"
    cp "$machines/fast.fabric" "$FABRIC"
    even=$(step_ms)
    echo 'straggler rank=1 compute=2' >>"$FABRIC"
    awk -v even="$even" -v slow="$(step_ms)" 'BEGIN {
        printf "%.1f ms, with a straggler %.1f ms\n", even, slow
        exit slow / even < 1.8 || slow / even > 2.2 }' ||
        fail "a straggler's factor"
}

# release NAME CODE FUNCTIONS: the counts are those of NCCL's own headers at
# v2.4.8, v2.12.12, v2.19.4, v2.23.4, v2.27.7 and v2.28.9.
release() {
    library=$samples/../fabric/nccl-$1/libnccl.so.2
    n=$(nm -D --defined-only "$library" | grep -c ' nccl')
    [ "$n" = "$3" ] || fail "$1 exports $n functions, not $3"
    n=$(nm -D --defined-only "$library" | grep -c ' pnccl') || true
    [ "$n" = $(($2 < 21602 ? 0 : $3)) ] || fail "$1 exports $n of pncclX"
    inner=$(readelf -rW "$library" | sed -n 's/.* \(nccl[A-Za-z]*\) .*/\1/p' |
        sort | tr '\n' ' ')
    [ "$inner" = "ncclBroadcast ncclCommGetAsyncError ncclGetUniqueId \
ncclGroupEnd ncclGroupStart " ] || fail "$1 calls of itself $inner"
    (cat "$machines/fast.fabric" && echo "nccl_version $1") >"$scratch/m.fabric"
    # shellcheck disable=SC2016 # the rank's shell expands it
    first=$(FABRIC=$scratch/m.fabric launch -n 1 -- \
        sh -c 'echo ${LD_LIBRARY_PATH%%:*}')
    [ "$(cd "$first" && pwd)" = "$(cd "${library%/*}" && pwd)" ] ||
        fail "$1 is looked for in $first"
}

case_releases() {
    release 2.4 2408 19
    release 2.12 21212 23
    release 2.19 21904 31
    release 2.23 22304 33
    release 2.27 22707 37
    release 2.28 22809 52
    for job in 2.19 2.23 2.27 2.28 2.30 2.32; do
        (cat "$machines/fast.fabric" && echo "nccl_version $job") \
            >"$scratch/m.fabric"
        FABRIC=$scratch/m.fabric launch -n 4 -- train3d --tp 2 --pp 2 \
            --steps 1 --compute-us 0 | grep -q 'data right$' || fail "$job"
    done
    echo 'nccl_version 2.26.5' >"$scratch/m.fabric"
    # shellcheck disable=SC2016 # the rank's shell expands it
    [ -z "$(FABRIC=$scratch/m.fabric LD_LIBRARY_PATH='' launch -n 1 -- \
        sh -c 'echo $LD_LIBRARY_PATH')" ] || fail "2.26.5 has no folder"
}

mpi_rank() {
    PMIX_NAMESPACE=$$ OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK="$1" \
        OMPI_COMM_WORLD_LOCAL_RANK="$1" \
        train3d --tp 2 --steps 1 --compute-us 0
}

# A launcher that listens on MASTER_PORT itself, as torchrun's agent does; one
# that tells the rank in mpirun's words.
case_launchers() {
    export FABRIC="$machines/fast.fabric"
    TORCHELASTIC_USE_AGENT_STORE=True launch -n 2 -- train3d --tp 2 --steps 1 \
        --compute-us 0 >/dev/null || fail "under torchrun"
    mpi_rank 1 &
    mpi_rank 0 | grep -q 'data right' || fail "rank 0 under mpirun"
    wait $! || fail "rank 1 under mpirun"
}

"case_$case"
