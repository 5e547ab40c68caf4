#!/bin/sh
# nccl_log.sh DUMP LOGS DATA: small logs in the shapes of NCCL 2.4 ... 2.31
# against the facts that they hold, in pieces of several sizes, and against what
# grep counts in them; and so the logs of real jobs, if the folder DATA is there.
set -u
dump=$1 logs=$2 data=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() { echo "nccl_log: $*" >&2; failed=1; }

# Facts are the same however the bytes come.
pieces() {
    for piece in 1 7 100 65536; do
        "$dump" --piece $piece "$1" >"$tmp/$piece" || fail "$1: exit status"
        cmp -s "$tmp/$piece" "$2" || fail "$1 in pieces of $piece bytes:
$(diff "$2" "$tmp/$piece")"
    done
}

# Of one process: what all of it says of that, and nothing of others.
log=$logs/v2.24.3_broken_by_other_output
sed 's/w1:81:/w1:82:/g' "$log.log" >"$tmp/two.log"
"$dump" "$tmp/two.log" | grep '^w1:82:' >"$tmp/expected"
"$dump" --pid 82 "$tmp/two.log" | grep -v '^counts' >"$tmp/found"
[ -s "$tmp/expected" ] || fail "no facts of process 82"
cmp -s "$tmp/expected" "$tmp/found" || fail "process 82 alone:
$(diff "$tmp/expected" "$tmp/found")"

# Processes on two hosts may have one number.
log=$logs/v2.4.8_mpi_two_hosts_socket
grep '^node-b:' "$log.facts" >"$tmp/expected"
"$dump" --pid 21 --host node-b.example.org "$log.log" |
    grep -v '^counts\|message version' >"$tmp/found"
cmp -s "$tmp/expected" "$tmp/found" || fail "node-b alone:
$(diff "$tmp/expected" "$tmp/found")"

# same WHAT LOG EXPECTED FOUND
same() { [ "$3" -eq "$4" ] || fail "$2: $1: expected $3, found $4"; }
facts() { grep -Ec "$1" "$tmp/facts"; }
lines() { grep -Eac "$1" "$log"; }

# What grep counts in the log $log against its facts in $tmp/facts: who wrote
# those may have asked the parser.
counts() {
    same connections "$log" "$(lines ' via ')" "$(facts ' conn ')"
    same networks "$log" "$(lines ' via NET/')" "$(facts ' conn .* NET/')"
    same set-ups "$log" \
        "$(lines 'Init START|INFO comm 0x.* nvmlDev [0-9]+$')" \
        "$(facts 'comm start')"
    same set-ups "$log" "$(lines 'Init COMPLETE')" "$(facts 'comm complete')"
    same ends "$log" "$(lines '(Destroy|Abort) COMPLETE|INFO Destroyed comm')" \
        "$(facts 'comm end')"
    same warnings "$log" "$(lines 'NCCL WARN ')" "$(facts 'message warning')"
    same patterns "$log" "$(lines 'INFO Pattern ')" "$(facts ' graph ')"
    same variables "$log" "$(lines 'set by environment')" \
        "$(facts 'message environment.* set by environment')"
    same choices "$log" "$(lines 'Bytes -> ')" "$(facts ' choice ')"
    same trees "$log" "$(grep -ao '\[[0-9]*\] [-0-9/]*->[0-9]*->' "$log" |
        wc -l)" "$(facts ' tree ')"
    same predictions "$log" "$(grep -aoE '[0-9.]+/ +[0-9.]+ *\|' "$log" |
        wc -l)" "$(facts ' tuning ')"
    same lines "$log" "$(grep -aoE \
        'NCCL (INFO NCCL version|INFO|WARN|CALL|version) ' "$log" | wc -l)" \
        "$(sed -n 's/^counts.* nccl=\([0-9]*\).*/\1/p' "$tmp/facts")"
}

n=0
for log in "$logs"/*.log; do
    pieces "$log" "${log%.log}.facts"
    cp "${log%.log}.facts" "$tmp/facts"
    counts
    n=$((n + 1))
done
[ $n -ge 15 ] || fail "only $n logs in $logs"

real() {
    log=$1
    "$dump" "$log" >"$tmp/facts"
    pieces "$log" "$tmp/facts"
    counts
    grep -q '#[0-9]*? conn ' "$tmp/facts" && fail "$log: unsure connections"
    grep -q ' unknown=0 ' "$tmp/facts" || fail "$log: $(tail -n1 "$tmp/facts")"
    grep -q ' unnamed=0$' "$tmp/facts" || fail "$log: $(tail -n1 "$tmp/facts")"
}

if [ -d "$data" ]; then
    for log in "$data"/*.log; do
        real "$log"
    done
else
    echo "nccl_log: no logs of real jobs in $data" >&2
fi
exit $failed
