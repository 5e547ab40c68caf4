"""Acceptance: alpha and beta fitted to the sweep are the fabric's, for
all-reduce on 2 and 4 ranks and for send/recv, inside a host and between hosts.
A ring all-reduce on n ranks takes 2(n-1) steps of alpha + S/n/B, so its alpha
is 2(n-1) times the link's, and its busbw the link's bandwidth."""
import json
import os

import jobs

TOLERANCE = 0.15
# machine file, all links of which are alike -> alpha in us, bandwidth in GB/s
LINKS = {"one_host": (1000, 0.400), "four_hosts": (4000, 0.060)}


def check(name, got, want):
    off = abs(got - want) / want
    print("  %-34s %10.4f, truth %10.4f: %4.1f %% off" %
          (name, got, want, 100 * off))
    return off <= TOLERANCE


def main():
    good = True
    for machine, (alpha, bandwidth) in LINKS.items():
        with jobs.Scratch() as tmp:
            trace = os.path.join(tmp, "trace")
            jobs.job(machine, 4, ["sweep", "--ranks", "2,4", "--align"], trace)
            model = json.loads(jobs.commtrace("model", "--json", trace))
            fits = {(f["op"], f["nranks"]): f
                    for f in model["jobs"][0]["fits"]}
        for op, n, steps, busbw in (("all_reduce", 2, 2, 1),
                                    ("all_reduce", 4, 6, 1.5),
                                    ("send/recv", 2, 1, 1)):
            fit = fits.get((op, n))
            if fit is None or fit["quality"] != "full":
                jobs.fail("%s: no full fit of %s on %d: %s" %
                          (machine, op, n, fit))
            what = "%s %s n=%d" % (fit["link"], op, n)
            good &= check(what + " alpha us", fit["alpha_us"], steps * alpha)
            good &= check(what + " busbw GB/s", fit["algbw_GBps"] * busbw,
                          bandwidth)
    if not good:
        jobs.fail("more than %.0f %% off" % (100 * TOLERANCE))


if __name__ == "__main__":
    main()
