"""What single trace files say: read with nothing but sqlite3."""
import collections
import glob
import os
import sqlite3

from harness import Fail

# An anchor may be off by its width, and drifts by 10 us until the next.
DRIFT_NS = 20000

Op = collections.namedtuple("Op", "kind count stream enter host start gpu "
                            "flags")


def open_all(folder):
    paths = sorted(glob.glob(os.path.join(folder, "*.db")))
    if not paths:
        raise Fail("no trace in %s" % folder)
    return [open_file(p) for p in paths]


def open_file(path):
    return sqlite3.connect("file:%s?mode=ro" % path, uri=True)


def flag_bits(db):
    return {name: bit for bit, name in db.execute("SELECT bit, name FROM flag")}


def ops(db):
    """In the order of their calls; times are CLOCK_MONOTONIC."""
    t0, = db.execute("SELECT t0_ns FROM process").fetchone()
    return [Op(kind, count, stream, t0 + enter, host,
               None if gpu is None else t0 + enter + off, gpu, flags)
            for kind, count, stream, enter, host, off, gpu, flags in db.execute(
                "SELECT k.name, c.count, c.stream, o.enter_ns, o.host_ns,"
                " o.gpu_off_ns, o.gpu_ns, o.flags FROM op o"
                " JOIN op_class c ON c.id = o.class"
                " JOIN op_kind k ON k.id = c.kind ORDER BY o.id")]


def launches(db):
    """Of group brackets, as if each were one op."""
    t0, = db.execute("SELECT t0_ns FROM process").fetchone()
    return [Op("group", n, stream, t0 + enter, host,
               None if gpu is None else t0 + enter + off, gpu, flags)
            for n, stream, enter, host, off, gpu, flags in db.execute(
                "SELECT ops, stream, enter_ns, host_ns, gpu_off_ns, gpu_ns,"
                " flags FROM launch ORDER BY id")]


def anchor_widths(db):
    return [w for w, in db.execute("SELECT width_ns FROM clock"
                                   " WHERE device IS NOT NULL ORDER BY at_ns")]


def losses(db):
    return db.execute("SELECT cause, what, n FROM loss").fetchall()


def need_times(all_ops, groups, bits):
    """Splits off what was captured; everything else has a GPU time, of its own
    or of its group."""
    plain = [op for op in all_ops
             if not op.flags & (bits["captured"] | bits["group_time"])]
    plain += [op for op in groups if not op.flags & bits["captured"]]
    untimed = [op for op in plain if op.gpu is None and op.count]
    if untimed:
        raise Fail("%d of %d ops without GPU time, the first: %s" %
                   (len(untimed), len(plain), untimed[0]))
    wrong = [op for op in all_ops
             if op.flags & bits["captured"] and op.gpu is not None]
    if wrong:
        raise Fail("captured, yet timed: %s" % (wrong[0],))
    return sorted((op for op in plain if op.gpu is not None),
                  key=lambda op: op.enter)


def need_durations(timed, bits):
    """Positive; an op in place may launch nothing on one rank."""
    wrong = [op for op in timed if op.gpu < 0 or
             op.gpu == 0 and not op.flags & bits["in_place"]]
    if wrong:
        raise Fail("%d of %d durations not positive, the first: %s" %
                   (len(wrong), len(timed), wrong[0]))


def need_inside(timed, marks, slack):
    """Each op starts after its call and ends before the GPU was idle."""
    first, last = None, None
    at = 0
    for op in timed:
        while at < len(marks) and marks[at] < op.enter:
            at += 1
        if at == len(marks):
            raise Fail("called after the last synchronisation: %s" % (op,))
        early, left = op.start - op.enter, marks[at] - (op.start + op.gpu)
        first = early if first is None else min(first, early)
        last = left if last is None else min(last, left)
        if early < -slack or left < -slack:
            raise Fail("starts %d ns after its call, ends %d ns before the "
                       "synchronisation, anchors are good to %d ns: %s" %
                       (early, left, slack, op))
    return first, last


def need_order(timed, slack):
    """Ops of a stream do not overlap; so their sum fits into the wall time."""
    streams = collections.defaultdict(list)
    for op in timed:
        streams[op.stream].append(op)
    for of_stream in streams.values():
        for a, b in zip(of_stream, of_stream[1:]):
            if b.start < a.start + a.gpu - slack:
                raise Fail("%s overlaps the next of its stream, %s" % (a, b))
    return max(sum(op.gpu for op in of_stream)
               for of_stream in streams.values())


def plausible(db, marks):
    """Checks all GPU times of a trace; says what they are."""
    bits, all_ops, widths = flag_bits(db), ops(db), anchor_widths(db)
    if not widths:
        raise Fail("no anchor ties the GPU's clock")
    slack = max(widths) + DRIFT_NS
    timed = need_times(all_ops, launches(db), bits)
    if not timed:
        raise Fail("no op with a GPU time")
    need_durations(timed, bits)
    first, last = need_inside(timed, marks, slack)
    busiest = need_order(timed, slack)
    wall = marks[-1] - min(op.enter for op in timed)
    if busiest > wall:
        raise Fail("ops of one stream take %d ns in %d ns" % (busiest, wall))
    return ("%d timed (%.1f to %.1f us), %d captured, earliest start %.1f us "
            "after its call, latest end %.1f us before the synchronisation, "
            "anchors within %.1f us" %
            (len(timed), min(op.gpu for op in timed) / 1e3,
             max(op.gpu for op in timed) / 1e3,
             sum(bool(op.flags & bits["captured"]) for op in all_ops),
             first / 1e3, last / 1e3, max(widths) / 1e3))


def summary(db):
    """Lines about one trace."""
    bits = flag_bits(db)
    path, = (row[2] for row in db.execute("PRAGMA database_list"))
    yield "trace %s" % os.path.basename(path)
    for table in ("library", "device", "gpu_link", "policy", "loss"):
        for row in db.execute("SELECT * FROM " + table):
            yield "  %s: %s" % (table, " | ".join(map(str, row)))
    for row in db.execute("SELECT id, origin, nranks, rank, device, name"
                          " FROM comm"):
        yield "  comm: %s" % " | ".join(map(str, row))
    kinds = collections.defaultdict(list)
    for op in ops(db):
        kinds[op.kind].append(op)
    for kind, of_kind in sorted(kinds.items()):
        gpu = sorted(op.gpu for op in of_kind if op.gpu is not None)
        host = sorted(op.host for op in of_kind if op.host is not None)
        yield ("  %s: %d ops, %d captured, host median %s ns, %d timed, "
               "gpu min, median, max %s ns" % (
                   kind, len(of_kind),
                   sum(bool(op.flags & bits["captured"]) for op in of_kind),
                   host[len(host) // 2] if host else "-", len(gpu),
                   ", ".join(map(str, (gpu[0], gpu[len(gpu) // 2], gpu[-1])))
                   if gpu else "-"))
    widths = sorted(anchor_widths(db))
    if widths:
        yield "  anchors: %d, width min, median, max %d, %d, %d ns" % (
            len(widths), widths[0], widths[len(widths) // 2], widths[-1])
