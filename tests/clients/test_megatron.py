"""Megatron-core, unmodified, TP=2 PP=2 DP=2 on eight ranks, without and with
sequence parallelism: losses of one rank, recorded as both witnesses saw it,
and its traffic labelled from the traffic alone. Megatron's own names of its
groups are the truth; only this test reads them."""
import glob
import json
import os
import re
import sqlite3
import subprocess
import sys

import clients
import compare
import jobs

# What pip installs, without dependencies, for a Python older than the key.
PACKAGES = {(3, 12): ["megatron-core==0.16.1", "packaging", "einops"],
            (9, 0): ["megatron-core==0.19.2", "packaging", "triton"]}
PYTHON = os.path.join(clients.VENV, "bin", "python3")
UNREACHABLE = re.compile("Could not find a version|No matching distribution|"
                         "Max retries|Failed to establish|timed out|"
                         "Temporary failure|ProxyError")

# Which label is right for traffic of more than SMALL elements, and for less.
# What a scalar is for no label tells but control.
SMALL = 16
RIGHT = {
    "TENSOR_MODEL_PARALLEL_GROUP": ("TP", {"TP", "control"}),
    "PIPELINE_MODEL_PARALLEL_GROUP": ("PP", {"PP"}),
    "DATA_PARALLEL_GROUP_WITH_CP": ("DP", {"DP", "control"}),
    "DATA_PARALLEL_GROUP": ("DP", {"DP", "control"}),
    "INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP": (None, {"control"}),
    "MODEL_PARALLEL_GROUP": (None, {"control"}),
    "EMBEDDING_GROUP": (None, set()),
    "POSITION_EMBEDDING_GROUP": (None, set()),
    "default_pg": ("control", {"control"}),
}
MAIN = {"TENSOR_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP",
        "DATA_PARALLEL_GROUP_WITH_CP"}


def install():
    there = subprocess.run([PYTHON, "-c", "import megatron.core"],
                           capture_output=True)
    if there.returncode == 0:
        return
    out = subprocess.run([PYTHON, "-c", "import sys; print(sys.version_info[:2])"],
                         capture_output=True, text=True, check=True).stdout
    version = tuple(int(n) for n in re.findall(r"\d+", out))
    wanted = next(p for below, p in sorted(PACKAGES.items()) if version < below)
    pip = subprocess.run(
        [PYTHON, "-m", "pip", "install", "--disable-pip-version-check",
         "--no-input", "--retries", "2", "--no-deps", *wanted],
        capture_output=True, text=True)
    if pip.returncode == 0:
        return
    if UNREACHABLE.search(pip.stderr + pip.stdout):
        print("SKIPPED: the package registry cannot be reached, so there is no "
              "Megatron-core")
        sys.exit(clients.SKIP)
    sys.exit(pip.stderr)


def losses(done):
    return re.findall(r"loss [0-9.]+", done.stdout)


def usages(tmp, watch):
    """Rows of (group's name in Megatron, op, elements, label, bytes)."""
    names = {}
    for path in glob.glob(os.path.join(tmp, "groups", "*.json")):
        with open(path) as f:
            names.update(json.load(f))
    path = os.path.join(tmp, "job.db")
    jobs.commtrace("merge", "--db", path, watch.trace)
    for name, *row in sqlite3.connect(path).execute(
            "SELECT (SELECT name FROM comm c WHERE c.uid = u.uid LIMIT 1),"
            " k.name, u.count, u.role, u.bytes * u.calls"
            "  FROM usage u JOIN op_kind k ON k.id = u.kind"):
        yield (names[name], *row)


def labels(tmp, watch):
    """Right or unknown, everywhere; right for the main traffic."""
    seen, wrong = {}, []
    for group, op, count, role, size in usages(tmp, watch):
        large, small = RIGHT[group]
        right = {large} if count > SMALL else small
        if role != "unknown" and role not in right:
            wrong.append("%s of %d elements in %s is called %s" % (op, count,
                                                                   group, role))
        if count > SMALL:
            good, total = seen.get(group, (0, 0))
            seen[group] = good + (role == large) * size, total + size
    if wrong:
        jobs.fail("; ".join(sorted(set(wrong))))
    for group in MAIN:
        good, total = seen.get(group, (0, 0))
        if not total or good < 0.99 * total:
            jobs.fail("%s: %d of %d bytes labelled" % (group, good, total))
        print("    %s: all of %d bytes labelled %s" % (group, total,
                                                       RIGHT[group][0]))


def run(alone, *options):
    with jobs.Scratch() as tmp:
        watch = clients.Watch(tmp)
        os.mkdir(os.path.join(tmp, "groups"))
        done = clients.torchrun(
            "megatron_gpt.py", [2, 2, *options], 4, 2, watch,
            {"GROUPS": os.path.join(tmp, "groups"), "TORCHDYNAMO_DISABLE": "1"})
        if losses(done) != alone:
            jobs.fail("losses %s, of one rank %s" % (losses(done), alone))
        compare.all_accounts(" ".join(["megatron", *options]), watch)
        labels(tmp, watch)


def main():
    clients.need_venv()
    install()
    alone = losses(clients.torchrun("megatron_gpt.py", [1, 1], 1,
                                    env={"TORCHDYNAMO_DISABLE": "1"}))
    if len(alone) != 3:
        jobs.fail("one rank printed %s" % alone)
    run(alone)
    run(alone, "sp")


if __name__ == "__main__":
    main()
