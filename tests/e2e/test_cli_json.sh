#!/bin/sh
# test_cli_json.sh COMMTRACE TRACEGEN: --json is JSON for every command, agrees
# with itself between runs, and holds what the text says.
set -eu
commtrace=$1 tracegen=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

"$tracegen" --tp 2 --pp 2 --dp 2 --steps 8 --out good >/dev/null
"$tracegen" --tp 2 --pp 1 --dp 1 --steps 2 --seed 2 --out small >/dev/null
for arguments in "report good" "report good small" "ops good" \
    "ops --limit 0 good" "ops --in-flight good" "ops --role TP small" \
    "groups good" "stacks good" "stacks --rank 1 --limit 1 small" "model good" "model --reference small good" \
    "report --reference small good" "merge --db job.db good small"; do
    # shellcheck disable=SC2086
    "$commtrace" $arguments --json >first.json
    # shellcheck disable=SC2086
    "$commtrace" $arguments --json >second.json
    cmp first.json second.json
    python3 -m json.tool first.json >/dev/null
done

"$commtrace" doctor --json -- sh -c true | python3 -m json.tool >/dev/null
"$commtrace" report --json good >report.json
"$commtrace" ops --json good >ops.json
"$commtrace" groups --json good >groups.json
"$commtrace" stacks --json good >stacks.json
python3 - <<'PY'
import glob
import json
import sqlite3

report = json.load(open("report.json"))
ops = json.load(open("ops.json"))
groups = json.load(open("groups.json"))
stacks = json.load(open("stacks.json"))
assert report["command"] == "report" and len(report["jobs"]) == 1
job = report["jobs"][0]
assert list(job) == ["verdict", "job", "node_names", "per", "roles",
                     "roles_outside_steps", "predictions", "fits", "seed",
                     "findings", "quality"] or "node_names" in job["job"]
recorded = {}
for path in glob.glob("good/*.db"):
    db = sqlite3.connect(path)
    rank, = db.execute("SELECT rank FROM process").fetchone()
    recorded[rank] = [tuple(row) for row in db.execute(
        "SELECT k.name, c.count, c.peer, o.ordinal FROM op o "
        "JOIN op_class c ON c.id = o.class JOIN op_kind k ON k.id = c.kind "
        "ORDER BY o.id")]
assert job["job"]["processes"] == len(recorded) == 8
assert job["job"]["ops"] == sum(map(len, recorded.values()))
listed = {}
for op in ops["jobs"][0]["ops"]:
    listed.setdefault(op["rank"], []).append(
        (op["kind"], op["count"], op["peer"], op["ordinal"]))
assert listed == recorded
assert len(groups["jobs"][0]["groups"]) == job["job"]["communicators"]
callers = stacks["jobs"][0]["stacks"]
assert stacks["jobs"][0]["calls_without_stack"] == 0
assert sum(c["calls"] for c in callers) == job["job"]["ops"]
assert sorted(c["ops"] for c in callers) == sorted(
    {k for ops_ in recorded.values() for k, _, _, _ in ops_})
for caller in callers:
    assert [f["module"] for f in caller["frames"]] == [
        "/opt/job/layers.so", "/opt/job/train", None]
roles = {row["role"] for row in job["roles"]}
assert {"TP", "PP", "DP"} <= roles, roles
PY
