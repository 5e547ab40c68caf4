"""What job.db says of a generated job, beside its truth.sqlite."""
import collections
import sqlite3
import statistics

# place counts the records of the rank from 0, as job.db does; None: it is lost.
# last: ns after its start that the last rank came.
Op = collections.namedtuple("Op", "rank place key start last gpu grp unlike")


class Job:
    """A merged job and the truth of it, by (uid, src, dst, ordinal)."""

    def __init__(self, job_db, truth_db):
        self.db = sqlite3.connect(job_db)
        self.truth = sqlite3.connect(truth_db)
        self.rank_of = dict(self.db.execute("SELECT process, rank FROM place"))
        self.ops = self.read_ops()

    def read_ops(self):
        came = {tuple(key): start for *key, start in self.truth.execute(
            "SELECT uid, src, dst, ordinal, start_ns FROM instance")}
        seen, ops = collections.Counter(), []
        for rank, there, *key, start, gpu, grp, unlike in self.truth.execute(
                "SELECT process, id IS NOT NULL, uid, src, dst, ordinal,"
                " start_ns, gpu_ns, grp, unlike FROM op ORDER BY process, n"):
            key = tuple(key)
            ops.append(Op(rank, seen[rank] if there else None, key, start,
                          max(0, came[key] - start), gpu, grp, unlike))
            seen[rank] += there
        return ops

    def matched(self):
        """(rank, place) -> (instance, wait, transfer)."""
        return {(self.rank_of[p], op): found for p, op, *found in
                self.db.execute("SELECT process, op, instance, wait_ns,"
                                " transfer_ns FROM op_match")}

    def instances(self):
        """id -> (transfer, bound, ranks)."""
        return {i: found for i, *found in self.db.execute(
            "SELECT id, transfer_ns, bound, ranks FROM instance")}

    def true_instances(self):
        """key -> [start, transfer, records, ranks that took part]."""
        found = {tuple(key): [start, transfer, 0, 0]
                 for *key, start, transfer in self.truth.execute(
                     "SELECT uid, src, dst, ordinal, start_ns, transfer_ns"
                     "  FROM instance")}
        for op in self.ops:
            found[op.key][2] += op.place is not None
            found[op.key][3] += 1
        return found

    def clock_errors(self):
        """ns, at moments of the run: how far the common time is off."""
        pieces = collections.defaultdict(list)
        for clock, start, *rest in self.db.execute(
                "SELECT clock, from_ns, own_ns, common_ns, rate"
                " FROM clock_piece ORDER BY clock, from_ns"):
            pieces[clock].append((start, *rest))
        hosts = {}  # of the truth -> clock
        for host, clock in self.truth.execute(
                "SELECT host, rank FROM process WHERE missing = 0"
                " ORDER BY rank DESC"):
            hosts[host] = clock
        clocks = dict(self.db.execute("SELECT rank, clock FROM place"))
        groups = dict(self.db.execute("SELECT clock, common FROM host_clock"))
        said = collections.defaultdict(dict)
        for host, at, mono in self.truth.execute(
                "SELECT host, true_ns, monotonic_ns FROM clock"):
            if host in hosts:
                said[at][clocks[hosts[host]]] = mono
        errors = []
        for at in said:
            for clock, own in said[at].items():
                if groups[clock] == clock or groups[clock] not in said[at]:
                    continue
                piece = [p for p in pieces[clock]
                         if p[0] is None or p[0] <= own][-1]
                common = piece[2] + (own - piece[1]) * (1 + piece[3])
                errors.append(abs(common - said[at][groups[clock]]))
        return errors


def mismatches(job):
    """Faults of the matching, as sentences; and counts."""
    matched, instances = job.matched(), job.instances()
    of_key, of_instance, faults = {}, {}, []
    counts = collections.Counter()
    for op in job.ops:
        if op.place is None:
            continue
        if (op.rank, op.place) not in matched:
            faults.append("op %d of rank %d is not there" % (op.place, op.rank))
            continue
        instance = matched[op.rank, op.place][0]
        counts["ops"] += 1
        if op.unlike:
            counts["unlike"] += 1
        elif of_key.setdefault(op.key, instance) != instance or \
                of_instance.setdefault(instance, op.key) != op.key:
            faults.append("op %d of rank %d, %s, is in instance %s" % (
                op.place, op.rank, op.key, instance))
    for key, (_, _, records, ranks) in job.true_instances().items():
        if key not in of_key:
            continue
        counts["instances"] += 1
        if records < ranks:
            counts["not whole"] += 1
            if not instances[of_key[key]][1]:
                faults.append("%s lacks %d ranks and is no bound" % (
                    key, ranks - records))
    return faults, counts


def transfer_errors(job):
    """kind -> [(relative error, skew of the ranks over the transfer)], of ops
    that were alone in their launch, and whole. Not of messages whose receiver
    came late, a part of which shows nowhere."""
    matched, instances = job.matched(), job.instances()
    hosts = dict(job.truth.execute("SELECT rank, host FROM process"))
    truth, errors = job.true_instances(), collections.defaultdict(list)
    skews, where = collections.Counter(), collections.defaultdict(set)
    found, left_out = {}, set()
    for op in job.ops:
        if op.unlike or op.grp:
            left_out.add(op.key)
        if op.place is not None and (op.rank, op.place) in matched:
            found[op.key] = matched[op.rank, op.place][0]
        skews[op.key] = max(op.last, skews[op.key])
        where[op.key].add(hosts[op.rank])
    came_late = late_receivers(job)
    for key, instance in found.items():
        _, transfer, records, ranks = truth[key]
        took = instances[instance][0]
        if records < ranks or took is None or key in left_out or \
                key in came_late:
            continue
        kind = ("p2p" if key[1] >= 0 else "coll") + \
            (" between" if len(where[key]) > 1 else " inside")
        errors[kind].append((abs(took - transfer) / transfer,
                             skews[key] / transfer))
    return errors


def unmarked_errors(job):
    """(error in ns, transfer) of each transfer that is told without a mark: of
    a whole communication, alone in its launch."""
    matched, found, left_out = job.matched(), {}, set()
    told = {i: took for i, took in job.db.execute(
        "SELECT id, transfer_ns FROM instance WHERE NOT bound"
        " AND doubt IS NULL AND transfer_ns NOT NULL")}
    for op in job.ops:
        if op.unlike or op.grp:
            left_out.add(op.key)
        if op.place is not None and (op.rank, op.place) in matched:
            found[op.key] = matched[op.rank, op.place][0]
    truth = job.true_instances()
    return [(told[i] - truth[key][1], truth[key][1])
            for key, i in found.items() if key not in left_out and i in told]


def late_receivers(job):
    place = {(uid, process): rank for uid, rank, process in
             job.truth.execute("SELECT uid, rank, process FROM member")}
    return {op.key for op in job.ops
            if op.key[1] >= 0 and place[op.key[0], op.rank] == op.key[1] and
            op.last > .02 * op.gpu}


def wait_errors(job):
    """Of ops that waited: |wait - truth| over what they took. Not of messages
    whose receiver came late: the sender does not wait for it."""
    matched, came_late = job.matched(), late_receivers(job)
    return [abs(matched[op.rank, op.place][1] - op.last) / op.gpu
            for op in job.ops
            if op.place is not None and not op.unlike and not op.grp
            and op.key not in came_late
            and op.last > 0 and matched[op.rank, op.place][1] is not None]


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def median(values):
    return statistics.median(values) if values else 0
