"""A recorded run and its simulation agree: time to first token and gaps within 15 % at P50, P90 and P99.

Method: a server measures at its start what its steps cost, as it always does, and is recorded under Poisson arrivals at two thirds of
what it can do one request at a time.  The simulator plays the requests of the record, when they came and how long they were, on the
machine of the record, and is held against what the record says happened.  What steps cost is fitted to those of the record, and each
simulated step is as far off as one of the record was, drawn by chance: the question is whether the simulator makes of them the waits
that people had.  Where steps of bad luck fall decides the largest waits, so it is drawn 15 times and the median of each figure counts.
Reported beside it: how far steps were from what the server had measured at its start, and what the simulator
says with that.  Needs a machine that does nothing else.
"""
import json
import random
import statistics
import tempfile
import threading
import time

import models
from server import Server, run

ALONE, REQUESTS, NEAR, DRAWS = 8, 500, 0.15, 15
USUAL = (425, 48)   # prompt and answer in tokens: the middle of what is drawn


def prompt(number, count):
    return [random.Random(number).randrange(100, 40_000) for _ in range(count)]


def record(model, tape):
    dice = random.Random(1)
    with Server(model, "--record", tape, "--max-running", 8, "--speculate", "off") as server:
        def ask(number, tokens, answer):
            server.ok("/v1/completions", {"prompt": prompt(number, tokens), "max_tokens": answer, "ignore_eos": True})
        begin = time.monotonic()
        for number in range(ALONE):
            ask(number, *USUAL)
        pause = (time.monotonic() - begin) / ALONE * 1.5   # as long as one takes alone, and half as much rest
        threads = []
        for number in range(ALONE, ALONE + REQUESTS):
            threads.append(threading.Thread(target=ask, args=(number, dice.randrange(50, 800), dice.randrange(16, 80))))
            threads[-1].start()
            time.sleep(dice.expovariate(1 / pause))
        for thread in threads:
            thread.join()
        server.stop()


def prove(evidence):
    with tempfile.TemporaryDirectory() as folder:
        tape = f"{folder}/tape.jsonl"
        record(models.real("smollm2"), tape)
        real = json.loads(run("simulate", "--replay", tape, "--json").stdout)[0]
        evidence.require(real["plans"] == real["plans_matched"], "the record does not replay")
        for kind in ("reading", "writing"):
            evidence.row(f"{kind} steps", **real[f"{kind}_steps"])
        simulate = lambda *more: json.loads(run("simulate", "--trace", tape, "--policy", real["policy"], "--json", *more).stdout)[0]
        drawn, believed = [simulate("--fit", tape, "--seed", seed) for seed in range(1, DRAWS + 1)], simulate()
        for figure in ("ttft_ms", "gap_ms"):
            for part in ("p50", "p90", "p99"):
                each = sorted(one[figure][part] for one in drawn)
                ratio = statistics.median(each) / real[figure][part]
                evidence.row(f"{figure} {part}", real=real[figure][part], simulated=statistics.median(each), ratio=ratio,
                             least=each[0] / real[figure][part], most=each[-1] / real[figure][part],
                             ratio_with_the_table_of_the_start=believed[figure][part] / real[figure][part])
                evidence.require(abs(ratio - 1) <= NEAR, f"{figure} {part}: {ratio:.2f}")
