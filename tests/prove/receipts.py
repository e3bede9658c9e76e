"""The receipts of 1,000,000 simulated requests sum to their totals, to the nanosecond.

One day is 40 requests on the real inbox, loop, scheduler, fanout and records: few pages, so that sequences are preempted and
computed again; clients that leave, and some that read slowly. For each request its receipt sums to its total, that of its first
word to the time of its first word, no cause is negative or larger before the first word than in all, and the tally kept while it
runs sums too; over a day, own steps are the time the machine was busy.  make test: 5,000 requests.
"""
import os
import re
import subprocess

from server import ROOT

PROGRAM = ROOT / "build" / "release" / "tests" / "receipts" / "receipts_test"
DAYS, PART = 25_000, 2_500


def prove(evidence):
    requests = 0
    for first in range(0, DAYS, PART):
        result = subprocess.run([str(PROGRAM)], capture_output=True, text=True, errors="replace", timeout=3600,
                                env={**os.environ, "CADANS_FIRST_DAY": str(first), "CADANS_DAYS": str(PART)})
        said = re.search(r"^days .*: (.*)$", result.stdout, re.M)
        figures = {name.replace(" ", "_"): int(count) for count, name in re.findall(r"(\d+) ([a-z ]+?)(?= \d|$)", said[1])} if said else {}
        evidence.row(f"days {first} to {first + PART - 1}", **figures)
        evidence.require(result.returncode == 0 and said is not None, (result.stdout + result.stderr)[-500:])
        requests += figures.get("requests", 0)
    evidence.require(requests == 40 * DAYS == 1_000_000, f"{requests} requests were simulated")
