"""Acceptance: on each machine of the fabric every op's link class, speed and
evidence are those of the machine's description, as it is and with NCCL told to
use no P2P, no shared memory, no InfiniBand; and hosts of one NVLink domain are
no network. What NCCL was told is found, with the line of its log."""
import json
import os
import sqlite3

import jobs

SOCKETS_MBPS = 25000  # of eth0, beside the ports of an RDMA or plugin network
LINKS = ("P2P_DISABLED", "SHM_DISABLED", "IB_FELL_BACK_TO_TCP",
         "NIC_FAR_FROM_GPU", "GDR_OFF", "ONE_NIC_USED", "NIC_DOWN",
         "SLOW_PORT")
NO_P2P = {"NCCL_P2P_DISABLE": "1"}
NO_SHM = {"NCCL_SHM_DISABLE": "1"}
NO_IB = {"NCCL_IB_DISABLE": "1"}
NO_SHARP = {"NCCL_NVLS_ENABLE": "0"}
SMALL = ["--layers", 2, "--micro-batches", 2, "--hidden", 32, "--compute-us",
         100]
INSIDE = ["--tp", 2, "--pp", 2, "--dp", 2, "--steps", 2]
ACROSS = ["--tp", 4, "--dp", 2, "--order", "dp-tp-pp", "--steps", 4]
WORST = ["NVLink", "NVSwitch", "multi-node NVLink", "PCIe", "shared memory",
         "InfiniBand", "RoCE", "network plugin", "TCP"]  # as in links.def

# machine, what NCCL is told, TP across hosts or inside, findings about links
RUNS = [
    ("dgx_h100", {}, INSIDE, {}),
    ("dgx_h100", NO_P2P, INSIDE, {"P2P_DISABLED": "NCCL_P2P_DISABLE"}),
    ("dgx_h100", {**NO_P2P, **NO_SHARP}, INSIDE,
     {"P2P_DISABLED": "NCCL_P2P_DISABLE"}),
    ("dgx_h100", {**NO_P2P, **NO_SHM, **NO_SHARP}, INSIDE,
     {"P2P_DISABLED": "NCCL_P2P_DISABLE", "SHM_DISABLED": "NCCL_SHM_DISABLE"}),
    ("dgx_h100", NO_SHM, INSIDE, {}),
    ("dgx_h100", NO_IB, INSIDE, {"IB_FELL_BACK_TO_TCP": "NCCL_IB_DISABLE"}),
    ("dgx_h100", {}, ACROSS, {}),
    ("dgx_h100", {"NCCL_IB_HCA": "mlx5_0"}, INSIDE,
     {"NIC_FAR_FROM_GPU": "NCCL_IB_HCA", "ONE_NIC_USED": "NCCL_IB_HCA"}),
    ("dgx_h100", {"NCCL_NET_GDR_LEVEL": "LOC"}, INSIDE,
     {"GDR_OFF": "NCCL_NET_GDR_LEVEL"}),
    ("pcie_box", {}, INSIDE, {}),
    ("pcie_box", NO_P2P, INSIDE, {"P2P_DISABLED": "NCCL_P2P_DISABLE"}),
    ("pcie_box", NO_SHM, INSIDE, {"SHM_DISABLED": "NCCL_SHM_DISABLE"}),
    ("rtx4090_box", {}, INSIDE, {}),
    ("rtx4090_box", NO_P2P, INSIDE, {}),
    ("rtx4090_box", NO_SHM, INSIDE, {"SHM_DISABLED": "NCCL_SHM_DISABLE"}),
    ("gb200_nvl72", {}, INSIDE, {}),
    ("gb200_nvl72", {}, ACROSS, {}),
    ("gb200_nvl72", NO_P2P, INSIDE, {"P2P_DISABLED": "NCCL_P2P_DISABLE"}),
    ("gb200_nvl72", {"NCCL_MNNVL_ENABLE": "0"}, ACROSS,
     {"P2P_DISABLED": "NCCL_MNNVL_ENABLE"}),
    ("roce", {}, INSIDE, {}),
    ("roce", NO_IB, INSIDE, {"IB_FELL_BACK_TO_TCP": "NCCL_IB_DISABLE"}),
    ("tcp", {}, INSIDE, {}),
    ("tcp", NO_SHM, INSIDE, {"SHM_DISABLED": "NCCL_SHM_DISABLE"}),
    ("ib", {}, INSIDE, {}),
    ("ib", NO_IB, INSIDE, {"IB_FELL_BACK_TO_TCP": "NCCL_IB_DISABLE"}),
    ("slingshot", {}, INSIDE, {}),
    ("slingshot", NO_P2P, INSIDE, {"P2P_DISABLED": "NCCL_P2P_DISABLE"}),
]


class Machine:
    """What a machine file says, and what NCCL makes of it."""

    def __init__(self, name, told):
        self.told = told
        self.keys = {}
        path = os.path.join(jobs.MACHINES, name + ".fabric")
        with open(path) as lines:
            for line in lines:
                words = line.split("#")[0].split(None, 1)
                if len(words) == 2 and words[0] != "link":
                    self.keys[words[0]] = words[1].strip()
        self.per_host = int(self.keys["ranks_per_host"])

    def host(self, rank):
        return rank // self.per_host

    def p2p(self, a, b):
        """Link class of P2P between two ranks of a host; None: there is
        none. Over the CPU NCCL uses it only where it is told to."""
        if "NCCL_P2P_DISABLE" in self.told or self.keys.get("p2p") == "no":
            return None
        nvlink = self.keys.get("nvlink", "no")
        if nvlink != "no":
            return ("NVLink" if nvlink == "direct" else "NVSwitch",
                    int(self.keys["nvlink_version"]))
        switch = int(self.keys["pcie_switch"])
        if switch and a % self.per_host // switch == b % self.per_host // switch:
            return ("PCIe", None)
        return None

    def network(self):
        kind = self.keys["network"]
        mbps = int(self.keys["nic_rate"][:-1]) * 1000
        if kind == "tcp":
            return ("TCP", mbps)
        if kind.startswith("plugin:"):
            return ("network plugin", None)
        if "NCCL_IB_DISABLE" in self.told:
            return ("TCP", SOCKETS_MBPS)
        return ({"ib": "InfiniBand", "roce": "RoCE"}[kind], mbps)

    def pair(self, a, b):
        if self.host(a) == self.host(b):
            direct = self.p2p(a, b)
            if direct:
                return direct
            if "NCCL_SHM_DISABLE" not in self.told:
                return ("shared memory", None)
        elif ("nvlink_domain" in self.keys and not
              {"NCCL_P2P_DISABLE", "NCCL_MNNVL_ENABLE"} & set(self.told)):
            return ("multi-node NVLink", int(self.keys["nvlink_version"]))
        return self.network()

    def sharp(self, ranks):
        """NVLink SHARP does without P2P, and is what GPUs of a host reduce
        with since NVLink 4."""
        return (len({self.host(rank) for rank in ranks}) == 1 and
                "NCCL_NVLS_ENABLE" not in self.told and
                self.keys.get("nvlink") == "switch" and
                int(self.keys["nvlink_version"]) >= 4)

    def worst(self, ranks):
        if self.sharp(ranks):
            return ("NVSwitch", int(self.keys["nvlink_version"]))
        hops = [self.pair(a, b) for a, b in zip(ranks, ranks[1:] + ranks[:1])]
        return max(hops, key=lambda hop: WORST.index(hop[0]))


def check_ops(what, machine, path):
    """v_op of job.db: every op that more than one rank takes part in."""
    db = sqlite3.connect(path)
    members = {}
    for uid, rank in db.execute(
            "SELECT uid, global_rank FROM member ORDER BY uid, rank"):
        members.setdefault(uid, []).append(rank)
    seen = 0
    for uid, op, rank, peer, link, speed, evidence, n in db.execute(
            "SELECT uid, op, comm_rank, CASE WHEN op IN ('send', 'recv') THEN"
            " peer END, link, link_speed, evidence, count(*) FROM v_op"
            " WHERE nranks > 1 GROUP BY 1, 2, 3, 4, 5, 6, 7"):
        ranks = members[uid]
        want = (machine.worst(ranks) if peer is None else
                machine.pair(ranks[rank], ranks[peer]))
        if (link, speed) != want or evidence != "conn":
            jobs.fail("%s: %s of rank %d in %s: %s %s by %s, not %s %s" %
                      (what, op, ranks[rank], ranks, link, speed, evidence,
                       *want))
        seen += n
    if seen < 100:
        jobs.fail("%s: %d ops" % (what, seen))
    for uid, rank, peer, link, speed in db.execute(
            "SELECT uid, rank, peer, l.name, speed FROM link"
            " JOIN link_class l ON l.id = class"
            " WHERE peer IS NOT NULL AND evidence = 'conn'"):
        want = machine.pair(members[uid][rank], members[uid][peer])
        if (link, speed) != want:
            jobs.fail("%s: link %d-%d of %s: %s %s, not %s %s" %
                      (what, rank, peer, members[uid], link, speed, *want))
    db.close()
    return seen


def check_alone(what, machine, folder):
    """v_op.link of the ranks' own files is that of the pair, too. Of a send
    whose connection no line of this rank's names it may say nothing."""
    dbs = jobs.traces(folder)
    members = jobs.members(dbs)
    said = 0
    for rank, db in dbs.items():
        for uid, op, link in db.execute("SELECT DISTINCT uid, op, link FROM"
                                        " v_op WHERE nranks = 2"):
            sends = op in ("send", "recv")
            want, _ = (machine.pair(*members[uid]) if sends else
                       machine.worst(members[uid]))
            if link != want and not (sends and link is None):
                jobs.fail("%s: rank %d's own %s: %s, not %s" %
                          (what, rank, op, link, want))
            said += link is not None
        db.close()
    if not said:
        jobs.fail("%s: no link in the ranks' own files" % what)


def check_findings(what, report, findings, crosses):
    found = {f["code"]: f for f in report["findings"]}
    got = sorted(set(found) & set(LINKS))
    if got != sorted(findings):
        jobs.fail("%s: found %s, not %s" % (what, got, sorted(findings)))
    for code, reason in findings.items():
        if 'NCCL\'s log: "%s set ' % reason not in found[code]["text"]:
            jobs.fail("%s: no reason in: %s" % (what, found[code]["text"]))
    if crosses != ("TP_CROSSES_NODES" in found):
        jobs.fail("%s: TP crosses domains: %s" % (what, crosses))


def check(name, told, layout, findings):
    machine = Machine(name, told)
    what = " ".join([name] + ["%s=%s" % pair for pair in told.items()])
    with jobs.Scratch() as tmp:
        trace, path = os.path.join(tmp, "trace"), os.path.join(tmp, "job.db")
        jobs.job(name, 8, ["train3d"] + layout + SMALL, trace, told)
        report = json.loads(jobs.commtrace("report", "--json", "--db", path,
                                           trace))["jobs"][0]
        seen = check_ops(what, machine, path)
        check_alone(what, machine, trace)
        domains = (1 if "nvlink_domain" in machine.keys else
                   8 // machine.per_host)
        card = report["job"]
        if (card["nodes"], card["domains"]) != (8 // machine.per_host, domains):
            jobs.fail("%s: %s nodes, %s domains" %
                      (what, card["nodes"], card["domains"]))
        check_findings(what, report, findings,
                       layout is ACROSS and domains > 1)
    print("  %-50s %d ops" % (what, seen))


def main():
    for run in RUNS:
        check(*run)


if __name__ == "__main__":
    main()
