"""Jobs that hang are said to, in what and for whom: a rank that leaves a call
out, or dies. What they wait in is known.

usage: test_hangs.py COMMTRACE TRACEGEN"""
import json
import subprocess
import sys
import tempfile

COMMTRACE, TRACEGEN = sys.argv[1:3]
SIZE = "--layers 4 --steps 12 --micro-batches 4 "

# Job, finding, and what its text says.
HANGS = [
    # The call that rank 5 left out was of its TP group.
    ("--tp 4 --dp 4 --hosts 4 --skip 5,100", "RANK_NEVER_CAME",
     ["ranks 4, 6-7 waited in all_reduce", "communicator of ranks 4-7",
      "for 60 s at least", "rank 5 never came"]),
    ("--tp 2 --pp 2 --dp 2 --skip 3,50", "RANK_NEVER_CAME",
     ["rank 2 waited in all_reduce", "communicator of ranks 2-3",
      "rank 3 never came"]),
    ("--dp 8 --hosts 2 --skip 3,4", "RANK_NEVER_CAME",
     ["ranks 0-2, 4-7 waited in all_reduce", "rank 3 never came"]),
    ("--tp 4 --dp 4 --hosts 4 --hang-s 300 --skip 5,100", "RANK_NEVER_CAME",
     ["for 300 s at least"]),
    ("--tp 2 --pp 4 --hosts 2 --kill 2@60", "RANK_NEVER_CAME",
     ["rank 0 waited in recv", "whether rank 2 came is not known"]),
    ("--tp 4 --dp 4 --hosts 4 --kill 5@100", "PROCESS_DIED",
     ["rank 5 was the first to fall silent, 60 s before the next"]),
]
# Nobody waits for long enough to tell.
SHORT = "--tp 4 --dp 4 --hosts 4 --hang-s 1 --skip 5,100"


def findings(options):
    with tempfile.TemporaryDirectory() as trace:
        subprocess.run([TRACEGEN, *SIZE.split(), *options.split(), "--out",
                        trace], check=True, stdout=subprocess.DEVNULL)
        job, = json.loads(subprocess.run(
            [COMMTRACE, "report", "--json", trace], check=True,
            stdout=subprocess.PIPE).stdout)["jobs"]
        return job["findings"]


def main():
    for options, code, says in HANGS:
        found = [f["text"] for f in findings(options) if f["code"] == code]
        if not any(all(words in text for words in says) for text in found):
            sys.exit("%s: no %s with %s: %s" % (options, code, says, found))
    codes = [f["code"] for f in findings(SHORT)]
    if "RANK_NEVER_CAME" in codes or "OP_NEVER_ENDED" in codes:
        sys.exit("%s: %s" % (SHORT, codes))


if __name__ == "__main__":
    main()
