"""A recorded run and its simulation agree: time to first token and gaps within 15 % at P50, P90 and P99.

Method: cadans bench --fit measures what steps cost; a server is recorded under Poisson arrivals at about two thirds of what it
can do; the simulator plays the tape's requests with that cost and is held against what the tape says happened.  Needs a machine
that does nothing else.
"""
import json
import random
import tempfile
import threading
import time

import models
from server import Server, run

REQUESTS, NEAR = 60, 0.15


def prompt(number, count):
    return [random.Random(number).randrange(100, 40_000) for _ in range(count)]


def prove(evidence):
    model = models.real("smollm2")
    with tempfile.TemporaryDirectory() as folder:
        fit, tape = f"{folder}/fit.json", f"{folder}/tape.jsonl"
        measured = run("bench", "--model", model, "--fit", "--json", timeout=600)
        evidence.require(measured.returncode == 0, measured.stderr[-300:])
        with open(fit, "w") as out:
            out.write(measured.stdout)
        dice = random.Random(1)
        sizes = [(dice.randrange(50, 800), dice.randrange(16, 80)) for _ in range(REQUESTS)]
        with Server(model, "--record", tape, "--max-running", 8) as server:
            def ask(number):
                tokens, answer = sizes[number]
                server.ok("/v1/completions", {"prompt": prompt(number, tokens), "max_tokens": answer, "ignore_eos": True})
            begin = time.monotonic()
            for number in range(4):
                ask(number)
            pause = (time.monotonic() - begin) / 4 * 1.5   # one at a time, with half as much rest again
            threads = []
            for number in range(4, REQUESTS):
                threads.append(threading.Thread(target=ask, args=(number,)))
                threads[-1].start()
                time.sleep(dice.expovariate(1 / pause))
            for thread in threads:
                thread.join()
            server.stop()
        real = json.loads(run("simulate", "--replay", tape, "--json").stdout)[0]
        evidence.require(real["plans"] == real["plans_matched"], "the tape does not replay")
        simulated = json.loads(run("simulate", "--trace", tape, "--fit", fit, "--policy", real["policy"], "--gap-ms", 200,
                                   "--max-running", 8, "--json").stdout)[0]
        for figure in ("ttft_ms", "gap_ms"):
            for part in ("p50", "p90", "p99"):
                ratio = simulated[figure][part] / real[figure][part]
                evidence.row(f"{figure} {part}", real=real[figure][part], simulated=simulated[figure][part], ratio=ratio)
                evidence.require(abs(ratio - 1) <= NEAR, f"{figure} {part}: {ratio:.2f}")
