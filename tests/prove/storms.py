"""50,000 storms: random clients, cancels, failures, slow readers, jumping clocks; every promise looked at after every turn.

One seed is one run of the real inbox, loop, scheduler, prefix cache, fanout and records with a fake model whose next token is a
hash of the history; every 16th is recorded and planned again.  A failing seed is kept in tests/prove/storm_seeds.txt and is run
first from then on.  make test: 2,000 seeds.
"""
import os
import re
import subprocess

from server import ROOT

SEEDS = ROOT / "tests" / "prove" / "storm_seeds.txt"
PROGRAM = ROOT / "build" / "release" / "src" / "sim" / "sim_test"
COUNT, PART = 50_000, 5_000


def storms(**environment):
    """(exit status, the line that tells what happened or which seed failed)."""
    result = subprocess.run([str(PROGRAM), "--gtest_filter=storm.any*"], capture_output=True, text=True, errors="replace", timeout=3600,
                            env={**os.environ, **{name: str(value) for name, value in environment.items()}})
    said = re.search(r"^.*(?:CADANS_SEED=\d+ | seeds: ).*$", result.stdout, re.M)
    return result.returncode, said[0] if said else (result.stdout + result.stderr)[-500:]


def prove(evidence):
    for seed in SEEDS.read_text().split() if SEEDS.exists() else []:
        status, said = storms(CADANS_SEED=seed)
        evidence.require(status == 0, said)
    for first in range(0, COUNT, PART):
        status, said = storms(CADANS_FIRST_SEED=first, CADANS_SEEDS=PART)
        figures = {name.replace(" ", "_"): int(count) for count, name in re.findall(r"(\d+) ([a-z ]+)", said.partition(":")[2])} if status == 0 else {}
        evidence.row(f"seeds {first} to {first + PART - 1}", **figures)
        evidence.require(status == 0, said)
        failed = re.search(r"CADANS_SEED=(\d+)", said)
        if failed:
            with SEEDS.open("a") as kept:
                kept.write(failed[1] + "\n")
