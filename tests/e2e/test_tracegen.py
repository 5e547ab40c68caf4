"""What tracegen writes is what its truth says: clocks, damage, instances."""
import bisect
import filecmp
import os
import sqlite3
import subprocess
import sys

import jobs

TRACEGEN = os.path.join(jobs.BUILD, "tests", "tracegen", "tracegen")
JOB = ["--tp", "2", "--pp", "2", "--dp", "2", "--hosts", "4", "--steps", "6"]


def expect(good, *words):
    if not good:
        sys.exit(" ".join(str(w) for w in words)[:400])


class Job:
    def __init__(self, folder, *options, seed=7):
        subprocess.run([TRACEGEN, *JOB, *options, "--seed", str(seed),
                        "--truth-db", "--out", folder], check=True)
        self.truth = sqlite3.connect(os.path.join(folder, "truth.sqlite"))
        self.processes = self.truth.execute(
            "SELECT rank, host, file, missing, t0_ns, cut_ns FROM process"
            " ORDER BY rank").fetchall()

    def ask(self, sql, *values):
        return self.truth.execute(sql, values).fetchall()

    def files(self):
        for rank, host, path, missing, t0_ns, cut_ns in self.processes:
            if not missing:
                yield rank, host, sqlite3.connect(path), cut_ns


def true_time(samples, reading):
    """By the readings of one clock on both sides."""
    i = max(1, min(bisect.bisect_left(samples, (reading,)), len(samples) - 1))
    (a, at), (b, bt) = samples[i - 1], samples[i]
    return at + (reading - a) * (bt - at) / (b - a)


def test_clocks(folder):
    job = Job(folder, "--clock-us", "50", "--drift-ppm", "20", "--wander-ppm", "3",
              "--host-clock", "2,3000000,-400", "--tick-ns", "32")
    hosts = job.ask("SELECT host, offset_us, drift_ppm FROM host ORDER BY host")
    expect(hosts[2][1:] == (3e6, -400), hosts)
    expect(len(set(hosts)) == 4 and all(abs(h[1]) <= 50 and abs(h[2]) <= 20
                                        for h in hosts if h[0] != 2), hosts)
    worst = 0
    for rank, host, db, _ in job.files():
        monotonic, real = (job.ask(
            "SELECT %s, true_ns FROM clock WHERE host = ? ORDER BY 1" % name, host)
            for name in ("monotonic_ns", "realtime_ns"))
        t0, t0_real = db.execute("SELECT t0_ns, t0_real_ns FROM process").fetchone()
        expect(abs(true_time(monotonic, t0) - true_time(real, t0_real)) < 2,
               "rank", rank, "begins at two times")
        truth = dict(job.ask("SELECT id, start_ns FROM op WHERE process = ?", rank))
        for i, at in db.execute("SELECT id, enter_ns + gpu_off_ns FROM op"
                                " WHERE gpu_ns IS NOT NULL"):
            worst = max(worst, abs(true_time(monotonic, t0 + at) - truth[i]))
    expect(0 < worst <= 34, "a start is off by", worst, "ns")


def test_gpu_times(folder):
    """They deviate, but durations do not."""
    job = Job(folder, "--gpu-us", "2", "--wander-ppm", "5,1")
    square = n = 0
    for rank, host, db, _ in job.files():
        clock = job.ask("SELECT monotonic_ns, true_ns FROM clock WHERE host = ?", host)
        t0, = db.execute("SELECT t0_ns FROM process").fetchone()
        truth = {i: (start, ns) for i, start, ns in job.ask(
            "SELECT id, start_ns, gpu_ns FROM op WHERE process = ?", rank)}
        for i, at, ns in db.execute("SELECT id, enter_ns + gpu_off_ns, gpu_ns FROM op"
                                    " WHERE gpu_ns NOTNULL"):
            expect(abs(ns - truth[i][1]) <= 2 + ns * 1e-5, rank, i, ns, truth[i])
            square += (true_time(clock, t0 + at) - truth[i][0]) ** 2
            n += 1
    expect(1500 < (square / n) ** .5 < 2500, (square / n) ** .5, "ns")


def test_instances(folder):
    job = Job(folder)
    ops, met, equal = job.ask(
        "SELECT (SELECT count(*) FROM op), count(*), sum(gpu_ns = wait_ns +"
        " transfer_ns OR src >= 0) FROM op_wait")[0]
    expect(ops == met == equal > 1000, ops, met, equal)
    expect(job.ask("SELECT count(*) FROM op WHERE id IS NULL") == [(0,)])
    for rank, _, db, _ in job.files():
        expect(db.execute("SELECT o.id, uid, ordinal, kind, o.grp FROM op o"
                          " JOIN op_class c ON c.id = class"
                          " JOIN comm ON comm.id = comm ORDER BY 1").fetchall() ==
               job.ask("SELECT id, uid, ordinal, kind, nullif(grp, 0) FROM op"
                       " WHERE process = ? ORDER BY n", rank),
               "rank", rank, "has other ops")


def test_drops(folder):
    job = Job(folder, "--drop", "0.03,4")
    total, lost = job.ask("SELECT count(*), sum(id IS NULL) FROM op")[0]
    expect(.02 < lost / total < .04, lost, "lost of", total)
    for rank, _, db, _ in job.files():
        expect(db.execute("SELECT id, ordinal FROM op ORDER BY id").fetchall() ==
               job.ask("SELECT id, ordinal FROM op WHERE process = ? AND id NOTNULL"
                       " ORDER BY n", rank), "rank", rank)
        n, first, last = db.execute("SELECT n, first_ns, last_ns FROM loss"
                                    " WHERE cause = 'ring_full'").fetchone()
        expect(job.ask("SELECT sum(id IS NULL) FROM op WHERE process = ?", rank) ==
               [(n,)] and first < last, "loss of rank", rank)


def test_launches(folder):
    job = Job(folder, "--drop-launches", "0.1")
    lost = groups = 0
    for rank, _, db, _ in job.files():
        n, = db.execute("SELECT sum(n) FROM loss WHERE what = 'launch'").fetchone()
        kept, = db.execute("SELECT count(*) FROM launch").fetchone()
        of, = db.execute("SELECT count(DISTINCT grp) FROM op").fetchone()
        expect(kept + (n or 0) == of, rank, n, kept, of)
        lost, groups = lost + (n or 0), groups + of
    expect(.05 < lost / groups < .15, lost, groups)


def test_domains(folder):
    """Two hosts of one NVLink domain are as one."""
    job = Job(folder, "--domain-hosts", "2", "--jitter", "0")
    crossing = dict(job.ask("SELECT nranks, max(crosses) FROM communicator GROUP BY 1"))
    expect(crossing == {2: 1, 8: 1}, crossing)
    expect(job.ask("SELECT DISTINCT a.process / 4 = b.process / 4, crosses"
                   " FROM communicator JOIN member a USING (uid) JOIN member b"
                   " USING (uid) WHERE nranks = 2 AND a.rank = 0 AND b.rank = 1"
                   " ORDER BY 1") == [(0, 1), (1, 0)])
    clusters = {}
    for rank, _, db, _ in job.files():
        clusters.setdefault(db.execute("SELECT cluster, clique FROM device").fetchone(),
                            []).append(rank)
    expect(sorted(clusters.values()) == [[0, 1, 2, 3], [4, 5, 6, 7]], clusters)


def test_files(folder):
    job = Job(folder, "--missing", "1,6-7", "--cut", "2-3@30.15")
    expect([p[0] for p in job.processes if p[3]] == [1, 6, 7], job.processes)
    for rank, _, path, missing, _, _ in job.processes:
        expect(os.path.exists(path) != bool(missing), path)
        # A file that nobody closed goes on in its log.
        expect((os.path.exists(path + "-wal") and os.path.getsize(path + "-wal") > 0) ==
               (rank in (2, 3)), path)
    for rank, _, db, cut_ns in job.files():
        end = db.execute("SELECT end_ns FROM process").fetchone()[0]
        expect((end is None) == (rank in (2, 3)) == (cut_ns == 30150000), rank, end)
        last, = db.execute("SELECT max(enter_ns) FROM op").fetchone()
        expect((last < 30150000) == (rank in (2, 3)), rank, "calls at", last)
        flying = db.execute("SELECT id FROM op WHERE flags & 256 AND gpu_ns IS NULL"
                            " AND grp IS NULL").fetchall()
        expect(len(flying) == (rank in (2, 3)), rank, flying)
        expect(flying ==
               job.ask("SELECT id FROM op WHERE process = ? AND id NOTNULL"
                       " AND start_ns + gpu_ns > ? AND grp = 0 ORDER BY n",
                       rank, cut_ns or 1 << 62), rank, "has other ops in flight")


def test_mismatch(folder):
    job = Job(folder, "--mismatch", "0,40,count", "--mismatch", "3,50,type",
              "--mismatch", "5,60,kind")
    expect(job.ask("SELECT process FROM op WHERE unlike ORDER BY 1") ==
           [(0,), (3,), (5,)])
    calls = {}
    for rank, _, db, _ in job.files():
        for row in db.execute(
                "SELECT o.id, uid, ordinal, kind, type, count FROM op o"
                " JOIN op_class c ON c.id = class JOIN comm ON comm.id = comm"
                " WHERE kind NOT IN (6, 7)"):
            calls.setdefault(row[1:3], []).append((row[3:], rank, row[0]))
    unlike = sorted(min(c, key=lambda x: sum(y[0] == x[0] for y in c))[1:]
                    for c in calls.values() if len({x[0] for x in c}) > 1)
    # Of a pair nobody can say which of the two is wrong.
    told = job.ask("SELECT o.process, o.uid, o.ordinal FROM op o WHERE unlike")
    expect(len(unlike) == len(told) == 3, unlike, told)


def transfers(job, sql="1"):
    """Of all-reduces of 4 MiB, by whether they leave a host."""
    found = {0: [], 1: []}
    for crosses, ns in job.ask(
            "SELECT crosses, transfer_ns FROM instance JOIN communicator USING (uid)"
            " WHERE bytes = 4194304 AND src < 0 AND " + sql):
        found[crosses].append(ns)
    return found


def test_transfers(folder):
    # One host has 2 ranks, of one TP group.
    steady = ["--jitter", "0", "--bucket", "10485760"]
    inside = 10000 + 4194304 / 200 * 2 * 1 / 2
    between = 30000 + 4194304 / 25 * 2 * 1 / 2
    job = Job(os.path.join(folder, "plain"), *steady)
    plain = transfers(job)
    expect(set(plain[0]) == {int(inside)} and set(plain[1]) == {int(between)}, plain)

    curve = transfers(Job(os.path.join(folder, "curve"), *steady, "--curve",
                          "1,1000000,50,40", "--curve", "1,5000000,1,1"))
    expect(set(curve[0]) == set(plain[0]) and
           set(curve[1]) == {int(50000 + 4194304 / 40)}, curve)

    link = Job(os.path.join(folder, "link"), *steady, "--slow-link", "2-3,1.5@20-40")
    uid, = link.ask("SELECT a.uid FROM member a JOIN member b USING (uid)"
                    " JOIN communicator USING (uid) WHERE a.process = 2"
                    " AND b.process = 3 AND nranks = 2")[0]
    there = transfers(link, "uid = %d AND start_ns BETWEEN 20000000 AND 39999999" % uid)
    expect(set(there[0]) == {int(1.5 * inside)}, there)
    rest = transfers(link, "NOT (uid = %d AND start_ns BETWEEN 20000000 AND 39999999)"
                     % uid)
    expect(set(rest[0]) == set(plain[0]), rest)

    nic = transfers(Job(os.path.join(folder, "nic"), *steady, "--slow-nic", "1,3"))
    expect(set(nic[0]) == set(plain[0]) and
           set(nic[1]) == {int(between), int(3 * between)}, nic)

    busy = transfers(Job(os.path.join(folder, "busy"), *steady, "--contention",
                         "0.2,0.5"))[0]
    late = [ns / inside - 1 for ns in busy if ns > inside]
    expect(.17 < len(late) / len(busy) < .23, len(late), "of", len(busy))
    expect(.4 < sum(late) / len(late) < .6, "mean", sum(late) / len(late))


def test_slow(folder):
    def end(name, *options):
        return Job(os.path.join(folder, name), "--jitter", "0", *options).ask(
            "SELECT max(start_ns + gpu_ns) FROM op")[0][0]

    plain = end("plain")
    hosts, ranks = end("host", "--slow-host", "1-2,1.5"), end("ranks", "--slow", "2-5,1.5")
    expect(hosts == ranks > 1.3 * plain, plain, hosts, ranks)
    part = end("part", "--slow", "2,1.5@20-30")
    expect(plain + 1000000 < part < plain + 6000000, plain, part)


def test_ends(folder):
    job = Job(os.path.join(folder, "scatter"), "--end-us", "4")
    spread, = job.ask("SELECT avg(late) FROM (SELECT max(start_ns + gpu_ns) -"
                      " min(start_ns + gpu_ns) AS late FROM op WHERE src < 0"
                      " GROUP BY uid, ordinal)")[0]
    order = Job(os.path.join(folder, "order"), "--end-order-us", "6")
    expect(order.ask("SELECT DISTINCT max(start_ns + gpu_ns) - min(start_ns + gpu_ns)"
                     " FROM op WHERE src < 0 GROUP BY uid, ordinal") == [(6000,)])
    # Of two ranks on average 2 (sqrt(2) - 1) / sqrt(pi) sigma.
    expect(1500 < spread < 4000, spread)
    expect(job.ask("SELECT count(*) FROM op_wait WHERE src < 0"
                   " AND gpu_ns < wait_ns + transfer_ns") == [(0,)])


def hung(job, dead):
    """What is open in the files is what never ended."""
    for rank, _, db, _ in job.files():
        expect(db.execute("SELECT end_ns FROM process").fetchone() == (None,), rank)
        running = db.execute("SELECT id FROM op WHERE flags & 256 AND grp IS NULL"
                             " ORDER BY id").fetchall()
        expect(running == job.ask("SELECT id FROM op WHERE process = ? AND grp = 0"
                                  " AND start_ns IS NULL AND id NOTNULL ORDER BY n",
                                  rank), rank, running)
        never, = job.ask("SELECT count(*) FROM op WHERE process = ?"
                         " AND start_ns IS NULL", rank)[0]
        expect((never > 0) != (rank in dead), rank, "waits for", never)
    expect(job.ask("SELECT count(*) FROM op_wait WHERE start_ns IS NULL") == [(0,)])


def test_kill(folder):
    job = Job(os.path.join(folder, "silent"), "--kill", "3@100.2")
    hung(job, [3])
    for rank, _, db, cut_ns in job.files():
        last, = db.execute("SELECT max(enter_ns) FROM op").fetchone()
        expect(last < (100200000 if rank == 3 else 300000000), rank, last)
        expect((cut_ns == 100200000) == (rank == 3), rank, cut_ns)
    # NCCL's choices end where the ops do, times of kernels with their ends.
    job = Job(os.path.join(folder, "kernels"), "--kill", "3@100.2", "--nccl", "kernel")
    for rank, _, db, _ in job.files():
        choices, timed = db.execute(
            "SELECT count(*), count(gpu_ns) FROM choice JOIN choice_class c"
            " ON c.id = class WHERE source = 'plugin'").fetchone()
        ops, over = job.ask("SELECT count(id), count(id) - sum(start_ns IS NULL) FROM op"
                            " WHERE process = ? AND id NOTNULL", rank)[0]
        expect((choices, timed) == (ops, over), rank, choices, timed, ops, over)
    # The rank beside it stops first.
    last = dict(job.ask("SELECT process, max(start_ns) FROM op GROUP BY process"))
    expect(last[2] < 100200000 < last[6], last)


def test_short_kernels(folder):
    """Next to nothing is left to do where a receiver comes late."""
    job = Job(folder, "--slow", "0,3", "--jitter", "1", "--nccl", "kernel")
    for rank, _, db, _ in job.files():
        least, = db.execute("SELECT min(gpu_ns) FROM choice").fetchone()
        expect(least > 0, rank, least)


def test_skip(folder):
    """Rank 5 is one call ahead of its TP peer, which waits for it in the end."""
    job = Job(folder, "--skip", "5,300")
    hung(job, [])
    counts = dict(job.ask(
        "SELECT process, count(*) FROM op JOIN member USING (uid, process) WHERE uid ="
        " (SELECT a.uid FROM member a JOIN member b USING (uid) JOIN communicator"
        " USING (uid) WHERE a.process = 4 AND b.process = 5 AND nranks = 2)"
        " GROUP BY process"))
    expect(counts[4] == counts[5] + 1, counts)


def test_memory(folder):
    """A longer job takes no more of it."""
    def peak_kib(name, ops):
        done = subprocess.run(
            [sys.executable, "-c", "import resource, subprocess, sys\n"
             "subprocess.run(sys.argv[1:], check=True)\n"
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
             TRACEGEN, "--tp", "2", "--pp", "2", "--dp", "4", "--portion", "20000",
             "--ops", str(ops), "--out", os.path.join(folder, name)],
            check=True, capture_output=True,
            env=dict(os.environ, ASAN_OPTIONS=":".join(
                (os.environ.get("ASAN_OPTIONS", ""), "quarantine_size_mb=1"))))
        return int(done.stdout)

    short, long = peak_kib("short", 60000), peak_kib("long", 600000)
    expect(long < 1.25 * short, short, "KiB, then", long)


def rows_of(path):
    db = sqlite3.connect(path)
    tables = [t for t, in db.execute("SELECT name FROM sqlite_master"
                                     " WHERE type = 'table'")]
    return {t: sorted(db.execute("SELECT * FROM " + t).fetchall(), key=repr)
            for t in tables if t != "process" or not path.endswith("truth.sqlite")}


def test_portions(folder):
    """In whatever portions it is written, and by how many threads."""
    options = ["--nccl", "kernel", "--drop", "0.01", "--mismatch", "1,200,count"]
    whole, parts = (os.path.join(folder, name) for name in ("whole", "parts"))
    Job(whole, *options, "--threads", "1")
    Job(parts, *options, "--threads", "3", "--portion", "500")
    names = os.listdir(whole)
    expect(len(names) == 10 and sorted(names) == sorted(os.listdir(parts)), names)
    for name in names:
        if name != "truth.json":
            a, b = rows_of(os.path.join(whole, name)), rows_of(os.path.join(parts, name))
            expect(a == b, name, [t for t in a if a[t] != b[t]])


def test_same(folder):
    options = ["--clock-us", "50", "--drop", "0.01"]
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        Job(os.path.join(folder, name), *options, seed=seed)
    names = sorted(n for n in os.listdir(os.path.join(folder, "a"))
                   if n != "truth.sqlite")  # it holds the folder's name
    expect(len(names) == 9, names)
    for other, equal in (("b", names), ("c", [])):
        same, _, _ = filecmp.cmpfiles(os.path.join(folder, "a"),
                                      os.path.join(folder, other), names, False)
        expect(same == equal, other, same)


def test_options(folder):
    """What names nobody of the job, or cannot be understood, is refused."""
    for option, value in (
            ("--missing", "8"), ("--cut", "8@5"), ("--mismatch", "8,0,count"),
            ("--slow", "3-8,2"), ("--slow-host", "4,2"), ("--slow-link", "7-8,2"),
            ("--slow-nic", "4,2"), ("--kill", "8@1"), ("--skip", "8,1"),
            ("--host-clock", "4,0,0"), ("--drop", "1.1"), ("--cut", "1"),
            ("--slow", "1,2@5"), ("--slow", "1,0"), ("--curve", "2,0,1,1"),
            ("--contention", "0.5"), ("--mismatch", "0,0,colour"), ("--missing", "2-1"),
            ("--tick-ns", "0"), ("--wander-ppm", "1,0"), ("--hosts", "1e12"),
            ("--skip", "1e12,1"), ("--drop", "0.1,1e12"), ("--GBps", "1"),
            ("--norm", "dp")):
        done = subprocess.run([TRACEGEN, *JOB, option, value, "--out",
                               os.path.join(folder, "none")],
                              capture_output=True, text=True)
        expect(done.returncode == 2 and option in done.stderr, option, value,
               done.returncode, done.stderr)
    expect(not os.listdir(folder), os.listdir(folder))


for test in (test_clocks, test_gpu_times, test_instances, test_drops, test_launches,
             test_domains, test_files, test_mismatch, test_transfers, test_slow,
             test_ends, test_kill, test_short_kernels, test_skip, test_memory, test_portions, test_same,
             test_options):
    with jobs.Scratch() as scratch:
        print(test.__name__)
        test(scratch)
