"""Planning a step takes less than 200 us, and an hour of requests is simulated in less than 10 s.

Planning: 64 sequences run and 1,000 wait while 100,000 pages are there to be cached; 20,000 steps under cadence, without one allocation.
Simulating: the hour of Azure's public conversation trace (19,366 requests), under the built-in table of a 1B model on two cores.  Such a
machine refuses most of them when they come as fast as they did, so the hour is also played at a rate at which it refuses none.
"""
import json
import re
import subprocess
import time

from prove.capacity import NAMES, TRACES
from server import ROOT, run

PROGRAM = ROOT / "build" / "release" / "src" / "sched" / "sched_bench"
LIMIT = 10.0                                        # seconds
RATES = {"as it was": [], "none refused": ["--rate", 0.02]}


def planning(evidence):
    subprocess.run([ROOT / "tools" / "build", "sched_bench"], check=True)
    done = subprocess.run([str(PROGRAM)], capture_output=True, text=True)
    said = re.search(r"takes ([\d.]+) us \(P50\), ([\d.]+) us \(P99\), ([\d.]+) us at most; (\d+) allocations", done.stdout)
    evidence.require(said is not None and done.returncode == 0, f"planning: {(done.stdout + done.stderr)[-200:]}")
    if said:
        middle, high, most, allocations = (float(figure) for figure in said.groups())
        evidence.row("planning a step", p50_us=middle, p99_us=high, most_us=most, allocations=allocations)
        evidence.require(high < 200 and allocations == 0, "planning is too slow, or allocates")


def prove(evidence):
    planning(evidence)
    for label, flags in RATES.items():
        begin = time.perf_counter()
        done = run("simulate", "--trace", TRACES / NAMES["conversation"], "--policy", "cadence", *flags, "--json", timeout=600)
        seconds = time.perf_counter() - begin
        evidence.require(done.returncode == 0, f"{label}: {done.stderr[-200:]}")
        record = json.loads(done.stdout)[0]
        evidence.row(f"an hour of conversations, {label}", seconds=seconds, requests=record["requests"], refused=record["refused"])
        evidence.require(seconds < LIMIT, f"{label}: {seconds:.1f} s")
        evidence.require(flags == [] or record["refused"] == 0, f"{label}: {record['refused']} were refused")
