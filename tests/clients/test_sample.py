"""test_sample.py [ORDER...]: samples/torch.sh parallel3d ends with the report;
roles are right, and TP_CROSSES_NODES is found exactly when the layout crosses.
Orders name neighbouring ranks first; a node has four ranks."""
import json
import os
import re
import subprocess
import sys

import clients
import jobs

# order: do tensor-parallel groups cross nodes?
ORDERS = {"tp-dp-pp": False, "pp-dp-tp": True, "pp-tp-dp": False}


def run(order):
    done = subprocess.run(
        [os.path.join(clients.ROOT, "samples", "torch.sh"), "parallel3d", "--",
         "--order", order],
        capture_output=True, text=True, timeout=280,
        env=dict(os.environ, BUILD=jobs.BUILD, VENV=clients.VENV))
    if done.returncode != 0:
        jobs.fail("torch.sh: exit %d\n%s%s" % (done.returncode, done.stdout,
                                               done.stderr))
    for wanted in ("process on the CPU: .*fine", "commtrace report: job 1 of 1",
                   "MB to download", r"The job took \d+ s"):
        if not re.search(wanted, done.stdout):
            jobs.fail("no '%s' in\n%s" % (wanted, done.stdout))
    job, = jobs.report(os.path.join(jobs.BUILD, "torch", "parallel3d"))["jobs"]
    layout = [job["job"][name] for name in ("tp", "pp", "dp", "nodes")]
    if layout != [2, 2, 2, 2]:
        jobs.fail("%s: layout and nodes %s\n%s" % (order, layout, done.stdout))
    found = "TP_CROSSES_NODES" in json.dumps(job["findings"])
    if found != ORDERS[order]:
        jobs.fail("%s: TP_CROSSES_NODES is %sfound\n%s" %
                  (order, "" if found else "not ", done.stdout))
    for row in job["roles"]:
        if row["role"] == "unknown":
            jobs.fail("%s: a role is unknown\n%s" % (order, done.stdout))
    print("%s: TP, PP, DP are right; TP %s nodes; %s" % (
        order, "crosses" if found else "stays inside",
        done.stdout.splitlines()[-1]))


def main():
    clients.need_venv()
    for order in sys.argv[1:] or ORDERS:
        run(order)


if __name__ == "__main__":
    main()
