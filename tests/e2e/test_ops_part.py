"""test_ops_part.py COMMTRACE TRACEGEN: `ops` of a rank or a communicator reads
a part of the job's ops, and says what it says of them when it reads all."""

import json
import os
import subprocess
import sys
import tempfile

COMMTRACE, TRACEGEN = sys.argv[1:3]

# Ranks of several clocks, lost ops, a missing rank, kinds of groups, kernels.
JOBS = [
    "--tp 2 --pp 2 --dp 2 --hosts 2 --steps 12",
    "--tp 2 --pp 4 --dp 2 --hosts 4 --steps 12 --drop 0.01 --missing 5"
    " --lone-groups",
    "--tp 2 --pp 2 --dp 2 --hosts 4 --steps 12 --clock-us 200 --end-us 3",
    "--dp 8 --hosts 2 --steps 12 --zero 3 --overlap",
    "--tp 2 --dp 4 --ep 4 --hosts 2 --steps 10",
    "--tp 2 --cp 2 --dp 2 --hosts 2 --steps 12 --eval-every 4 --nccl kernel",
    "--tp 2 --pp 2 --hosts 2 --mismatch 1,30,count --slow-link 1-3,3",
    "--tp 4 --serve --steps 20",
]
FILTERS = [
    {"rank": 1},
    {"rank": 3},
    {"comm": 0},
    {"comm": 1},
    {"rank": 0, "comm": 1},
]
failures = 0


def ops(folder, filters):
    command = [COMMTRACE, "ops", "--json"]
    for name, value in filters.items():
        command += ["--" + name, str(value)]
    done = subprocess.run(command + [folder], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)["jobs"][0]["ops"]


def clock_error_us(folder):
    """Clocks are tied by the ops that are read, and otherwise by others, but
    not by more than they may be off."""
    report = subprocess.run([COMMTRACE, "report", "--json", folder],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            check=True)
    clocks = json.loads(report.stdout)["jobs"][0]["quality"]["clocks"]
    return max([clock["error_us"] or 0 for clock in clocks], default=0)


def is_wanted(row, filters):
    return all(row[name] == value for name, value in filters.items())


def without_times(row):
    return {k: v for k, v in row.items()
            if k not in ("transfer_us", "wait_us")}


def is_same(a, b, error_us):
    if a == b:
        return True
    return (a["peer"] is not None
            and without_times(a) == without_times(b)
            and abs(a["transfer_us"] - b["transfer_us"]) <= error_us
            and abs(a["wait_us"] - b["wait_us"]) <= error_us)


def compare(options, filters, whole, part, error_us):
    global failures
    wanted = [row for row in whole if is_wanted(row, filters)]
    differ = [ab for ab in zip(wanted, part) if not is_same(*ab, error_us)]
    if wanted and len(wanted) == len(part) and not differ:
        return
    failures += 1
    print(f"{options}\n  {filters}: {len(part)} rows of {len(wanted)}")
    for a, b in differ[:3]:
        print("  ", a["kind"], {k: (a[k], b[k]) for k in a if a[k] != b[k]})


with tempfile.TemporaryDirectory() as folder:
    for number, options in enumerate(JOBS):
        out = os.path.join(folder, str(number))
        subprocess.run([TRACEGEN] + options.split() + ["--out", out],
                       stdout=subprocess.DEVNULL, check=True)
        whole = ops(out, {})
        error_us = clock_error_us(out)
        for filters in FILTERS:
            compare(options, filters, whole, ops(out, filters), error_us)
sys.exit(failures > 0)
