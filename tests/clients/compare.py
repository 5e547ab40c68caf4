"""Compares what a trace holds with both witnesses: per process and in order."""
import accounts
import flight_recorder
import jobs

# Calls that pass the recorder: README, Limits. Whoever makes them recorded
# takes them out, since a recorded one fails the test.
NOT_RECORDED = set()


def brackets(groups):
    """The same numbers for the same brackets, whatever they were called."""
    names = {None: None}
    return [names.setdefault(g, len(names)) for g in groups]


def keep(account, wanted):
    """The account without the ops that are not wanted."""
    at = [i for i, op in enumerate(account.ops) if wanted(op)]
    kept = accounts.Account()
    kept.comms = account.comms
    for name in ("ops", "groups", "streams"):
        setattr(kept, name, [getattr(account, name)[i] for i in at])
    return kept


def equal(who, what, got, want):
    for i, (g, w) in enumerate(zip(got, want)):
        if g != w:
            jobs.fail("rank %d.%d %s %d: recorded %s, witnessed %s" %
                      (*who[:2], what, i, g, w))
    if len(got) != len(want):
        extra = (got if len(got) > len(want) else want)[min(len(got), len(want))]
        jobs.fail("rank %d.%d: %d %ss recorded, %d witnessed; %s" %
                  (*who[:2], len(got), what, len(want), extra))


def with_witness(traced, witnessed):
    if sorted(traced) != sorted(witnessed):
        jobs.fail("traces of %s, accounts of %s" % (sorted(traced),
                                                    sorted(witnessed)))
    passed = 0
    for who, account in witnessed.items():
        seen = keep(account, lambda op: op.function not in NOT_RECORDED)
        passed += len(account.ops) - len(seen.ops)
        equal(who, "op", traced[who].ops, seen.ops)
        equal(who, "group", brackets(traced[who].groups), brackets(seen.groups))
        equal(who, "stream", traced[who].streams, seen.streams)
        equal(who, "communicator", [traced[who].comms], [account.comms])
    return passed


def with_flight_recorder(witnessed, flights):
    """Against the witness's account: the trace equals it, but for the calls
    that pass the recorder."""
    reasons = {}
    if sorted(flights) != sorted(witnessed):
        jobs.fail("Flight Recorder of %s" % sorted(flights))
    for who, entries in flights.items():
        difference, why = flight_recorder.differences(entries, witnessed[who])
        if difference:
            jobs.fail("rank %d.%d, Flight Recorder: %s" % (*who[:2],
                                                           difference))
        for reason, n in why.items():
            reasons[reason] = reasons.get(reason, 0) + n
    return reasons, sum(map(len, flights.values()))


def all_accounts(name, watch):
    """Prints what was compared; ends the test at the first difference."""
    traced = accounts.read_traces(watch.trace)
    witnessed = accounts.read_witness(watch.witness)
    passed = with_witness(traced, witnessed)
    reasons, entries = with_flight_recorder(witnessed,
                                            flight_recorder.read(watch.flight))
    ops = sum(len(a.ops) for a in traced.values())
    print("%s: %d ops of %d ranks as the witness saw them, and as %d entries "
          "of the Flight Recorder say" % (name, ops, len(traced), entries))
    if passed:
        print("    %d calls passed the recorder" % passed)
    for reason, n in sorted(reasons.items()):
        print("    %4d x %s" % (n, reason))
    if not ops or len(traced) != len({who[:2] for who in traced}):
        jobs.fail("%s: traces of %s, %d ops" % (name, sorted(traced), ops))
    return ops
