"""What the recorder finds around each GPU, on every machine of the fabric,
against the machine's description; and without sysfs, without NVML, with an
old one."""
import os
import subprocess

import jobs

MACHINES = ("dgx_h100", "gb200_nvl72", "slingshot", "roce", "ib", "tcp",
            "pcie_box", "rtx4090_box")
JOB = ["train3d", "--dp", 8, "--layers", 1, "--micro-batches", 1, "--steps", 1,
       "--compute-us", 0]
DEFAULTS = {"hosts": "1", "ranks_per_host": "8", "nvlink": "yes",
            "nvlink_version": "4", "nvlink_domain": "", "p2p": "yes",
            "pcie_switch": "1", "numa": "0", "c2c": "no", "network": "ib",
            "nic_rate": "400G", "gdr": "yes"}


class Machine:
    """The description, read by other rules than the fabric's own: addresses
    and names are those that tests/fabric/README.md and its sysfs give."""

    def __init__(self, name):
        keys = dict(DEFAULTS)
        with open(os.path.join(jobs.MACHINES, name + ".fabric")) as file:
            for line in file:
                key, _, value = line.split("#")[0].strip().partition(" ")
                keys[key] = value.strip()
        self.keys = keys
        self.gpus = int(keys["ranks_per_host"])
        self.network = keys["network"].split(":")[0]
        self.mbps = int(keys["nic_rate"][:-1]) * 1000
        default = 1 if self.network == "tcp" else self.gpus
        self.nics = int(keys.get("nics", default))

    def gpu(self, i):
        return "0000:%02x:00.0" % (0x10 + i)

    def numa(self, gpu):
        per = int(self.keys["numa"])
        return gpu // per if per else None

    def switch(self, gpu):
        per = int(self.keys["pcie_switch"])
        return gpu // per if per else None

    def way(self, switch, numa, gpu):
        """To a GPU from what is at a switch (or none) and a NUMA node."""
        if switch is not None and switch == self.switch(gpu):
            return "PIX"
        return "PHB" if numa == self.numa(gpu) else "SYS"

    def peer_way(self, a, b):
        return self.way(self.switch(a), self.numa(a), b)

    def links(self, gpu):
        """Rows of gpu_link but for their source."""
        kind = self.keys["nvlink"]
        version = int(self.keys["nvlink_version"])
        links = 12 if version < 4 else 18
        if kind in ("yes", "switch"):
            return [(None, "nvswitch", links, version, None)]
        others = [i for i in range(self.gpus) if i != gpu]
        if kind == "direct":
            return [(self.gpu(i), "nvlink", links // len(others), version,
                     self.peer_way(gpu, i)) for i in others]
        kind = "pcie" if self.keys["p2p"] == "yes" else "none"
        return [(self.gpu(i), kind, None, None, self.peer_way(gpu, i))
                for i in others]

    def owner(self, nic):
        """The first GPU whose share of the NICs this one is."""
        return next(g for g in range(self.gpus)
                    if g * self.nics // self.gpus == nic)

    def ports(self, gpu):
        """Rows of nic, each with the way from a GPU, in any order."""
        rows = []
        for i in range(self.nics):
            owner = self.owner(i)
            numa, pci = self.numa(owner), "0000:%02x:00.0" % (0x60 + i)
            at = None if self.network == "tcp" else self.switch(owner)
            way = self.way(at, numa, gpu)
            if self.network in ("ib", "roce"):
                name = "mlx5_%d" % i
                net = "rdma%d" % i if self.network == "roce" else None
                layer = "Ethernet" if net else "InfiniBand"
                rows.append((name, "rdma", 1, layer, "ACTIVE", self.mbps, pci,
                             numa, net,
                             "/sys/class/infiniband/%s/ports/1" % name, way))
                if net:
                    rows.append(self.interface(net, self.mbps, pci, numa, way))
            else:
                name = "%s%d" % ("eth" if self.network == "tcp" else "hsn", i)
                rows.append(self.interface(name, self.mbps, pci, numa, way))
        if self.network != "tcp":
            numa = self.numa(0)
            rows.append(self.interface("eth0", 25000, "0000:f0:00.0", numa,
                                       self.way(None, numa, gpu)))
        return sorted(rows)

    @staticmethod
    def interface(name, mbps, pci, numa, way):
        return (name, "net", None, None, "up", mbps, pci, numa, None,
                "/sys/class/net/" + name, way)


def expect(what, got, want):
    if got != want:
        jobs.fail("%s\n  is %s\n  not %s" % (what, got, want))


def check_rank(name, machine, rank, db):
    gpu = rank % machine.gpus
    rows = db.execute("SELECT id, pci, name, clique, numa, c2c, source FROM"
                      " device").fetchall()
    clique = 0 if machine.keys["nvlink_domain"] else None
    expect("%s: device of rank %d" % (name, rank), rows,
           [(gpu, machine.gpu(gpu), machine.keys["gpu"], clique,
             machine.numa(gpu), int(machine.keys["c2c"] == "yes"), "nvml")])
    rows = db.execute("SELECT peer_pci, kind, links, version, path FROM"
                      " gpu_link ORDER BY rowid").fetchall()
    expect("%s: links of rank %d" % (name, rank), rows, machine.links(gpu))
    rows = db.execute(
        "SELECT n.name, n.kind, n.port, n.link_layer, n.state, n.mbps, n.pci,"
        " n.numa, n.netdev, n.source, g.path FROM nic n JOIN gpu_nic g ON"
        " g.nic = n.id WHERE g.device = ?", (gpu,)).fetchall()
    expect("%s: ports of rank %d" % (name, rank), sorted(rows),
           machine.ports(gpu))
    rows = db.execute("SELECT what, why FROM absence").fetchall()
    rdma = [] if machine.network in ("ib", "roce") else [
        ("rdma", "/sys/class/infiniband: No such file or directory")]
    expect("%s: absences of rank %d" % (name, rank), rows, rdma)


def check_domains(name, machine, dbs):
    """GPUs have ids of their own, and one cluster where there is a domain."""
    ids = {db.execute("SELECT uuid FROM device").fetchone() for db in
           dbs.values()}
    expect("%s: ids of GPUs" % name, len(ids), 8)
    clusters = {db.execute("SELECT cluster FROM device").fetchone()[0]
                for db in dbs.values()}
    expect("%s: clusters" % name, (len(clusters), None in clusters),
           (1, not machine.keys["nvlink_domain"]))


def quick(tmp, name):
    """A copy of a machine with fast links."""
    path = os.path.join(tmp, name)
    with open(os.path.join(jobs.MACHINES, name + ".fabric")) as file:
        lines = [line for line in file if not line.startswith("link ")]
    with open(path + ".fabric", "w") as file:
        file.writelines(lines)
    return path


def machines(tmp):
    for name in MACHINES:
        trace = os.path.join(tmp, name)
        jobs.job(quick(tmp, name), 8, JOB, trace)
        machine, dbs = Machine(name), jobs.traces(trace)
        expect("traces of %s" % name, sorted(dbs), list(range(8)))
        for rank, db in dbs.items():
            check_rank(name, machine, rank, db)
        check_domains(name, machine, dbs)


def question(tmp):
    """samples/sql has the nearest port of each GPU."""
    job = os.path.join(tmp, "job.db")
    jobs.commtrace("merge", "--db", job, os.path.join(tmp, "roce"))
    with open(os.path.join(jobs.ROOT, "samples", "sql",
                           "nics_of_gpus.sql")) as sql:
        said = subprocess.run(["sqlite3", "-bail", job], stdin=sql, text=True,
                              capture_output=True, check=True).stdout
    near = [line.split()[0:1] + line.split()[2:] for line in
            said.splitlines()[2:]]
    machine = Machine("roce")
    want = []
    for rank in range(8):
        gpu = rank % machine.gpus
        nic = gpu * machine.nics // machine.gpus
        want.append([str(rank), machine.gpu(gpu), str(machine.numa(gpu)),
                     "PIX", "mlx5_%d:1" % nic, "rdma%d" % nic, "100"])
    expect("the nearest ports", near, want)


def one_trace(tmp, name, machine, env, ranks=1):
    trace = os.path.join(tmp, name)
    jobs.job(machine, ranks, ["train3d", "--tp", ranks, "--steps", 1,
                              "--compute-us", 0], trace, env)
    return jobs.traces(trace)[0]


def without_sysfs(tmp):
    """NVML knows how far GPUs are from each other, too."""
    nowhere = os.path.join(tmp, "nowhere")
    db = one_trace(tmp, "no_sysfs", "pcie_box", {"COMMTRACE_SYSFS": nowhere})
    machine = Machine("pcie_box")
    rows = db.execute("SELECT peer_pci, kind, links, version, path FROM"
                      " gpu_link ORDER BY rowid").fetchall()
    expect("links without sysfs", rows, machine.links(0))
    expect("NUMA node without sysfs",
           db.execute("SELECT numa, source FROM device").fetchall(),
           [(None, "nvml")])
    expect("absences without sysfs", db.execute(
        "SELECT * FROM absence ORDER BY 1").fetchall(), [
            ("net", "/sys/class/net: No such file or directory"),
            ("pcie", "/sys/bus/pci/devices has no 0000:10:00.0"),
            ("rdma", "/sys/class/infiniband: No such file or directory")])
    expect("ports without sysfs", db.execute(
        "SELECT count(*) FROM nic").fetchone(), (0,))


def without_nvml(tmp):
    """Libraries in a folder that has no NVML: what the driver tells."""
    libraries = os.path.join(tmp, "libraries")
    os.mkdir(libraries)
    for name in os.listdir(os.path.join(jobs.BUILD, "fabric")):
        if ".so" in name and "nvidia-ml" not in name:
            os.symlink(os.path.join(jobs.BUILD, "fabric", name),
                       os.path.join(libraries, name))
    db = one_trace(tmp, "no_nvml", "rtx4090_box",
                   {"LD_LIBRARY_PATH": libraries, "COMMTRACE_NCCL_LOG": "off"}, 2)
    machine = Machine("rtx4090_box")
    rows = db.execute("SELECT peer_pci, kind, links, version, path FROM"
                      " gpu_link ORDER BY rowid").fetchall()
    expect("links without NVML", rows, machine.links(0))
    why = "libnvidia-ml.so.1 is not there"
    expect("device without NVML", db.execute(
        "SELECT pci, name, numa, c2c, source FROM device").fetchall(),
        [(machine.gpu(0), machine.keys["gpu"], 0, None, "driver; " + why)])
    expect("absences without NVML", db.execute(
        "SELECT what, why FROM absence WHERE what = 'nvml'").fetchall(),
        [("nvml", why)])
    report = jobs.report(os.path.join(tmp, "no_nvml"))["jobs"][0]
    expect("absences in the report", [
        a for a in report["quality"]["absences"] if a["what"] != "rdma"],
        [{"what": "nccl_log", "why": "COMMTRACE_NCCL_LOG=off", "processes": 2},
         {"what": "nvml", "why": why, "processes": 2}])


def with_old_nvml(tmp):
    """One that knows of fabrics by its first call, and neither of C2C nor of
    what is at the other end of a link."""
    for name in "gb200_nvl72", "dgx_h100", "slingshot":
        db = one_trace(tmp, "old_" + name, name, {
            "LD_LIBRARY_PATH": os.path.join(jobs.BUILD, "fabric", "nvml-old"),
            "NCCL_TOPO_FILE": "/etc/topo.xml"})
        new = jobs.traces(os.path.join(tmp, name))[0]
        for known in ("cluster, clique, numa, source FROM device",
                      "* FROM gpu_link ORDER BY rowid"):
            expect("%s by an old NVML" % name, db.execute(
                "SELECT " + known).fetchall(), new.execute(
                    "SELECT " + known).fetchall())
        expect("C2C by an old NVML", db.execute(
            "SELECT c2c FROM device").fetchall(), [(None,)])
        expect("another topology", db.execute(
            "SELECT * FROM absence WHERE what = 'pcie'").fetchall(),
            [("pcie", "NCCL follows /etc/topo.xml")])


def main():
    with jobs.Scratch() as tmp:
        machines(tmp)
        question(tmp)
        without_sysfs(tmp)
        without_nvml(tmp)
        with_old_nvml(tmp)
    print("%d machines: as described" % len(MACHINES))


if __name__ == "__main__":
    main()
