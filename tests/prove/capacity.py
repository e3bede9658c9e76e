"""How many requests a second each policy serves while gaps and waits stay within Sarathi-Serve's rule.

The rule: the 99th percentile of all gaps is within the SLO and the median wait before the first row within 2 s.  The SLO is 5 x
(strict) and 25 x (relaxed) the isolated decode step.  In the simulator: three traces under the built-in table of a 1B model on two
cores, the first rows of each.  On the real server, at small scale: SmolLM2 under Poisson arrivals of prompts and answers of the first of
these traces, each a quarter as long, the rate found by bisection; a rate keeps the rule if it does so in a run of its own. So few requests
are over before their waits have grown, so there the wait that three quarters stay within is held to 2 s, and what counts is how many
were served a second until the last had ended, which no rate of arrival raises above what the machine can do; and cadence, which promises
the 99th percentile within 1.15 x its gap, is asked for a gap that much below the SLO.  Sarathi-Serve
publishes 2.6 to 5.6 times the capacity of prefill-first schedulers (OSDI 2024).  The figures are ratios to report; what must hold is
that no baseline serves more than cadence, as near as rates are known.
"""
import concurrent.futures
import csv
import itertools
import json
import os
import pathlib
import tempfile
import time

import models
from prove.open_loop import play, quantile
from server import ROOT, Server, run

TRACES = pathlib.Path(os.environ.get("CADANS_TRACES", ROOT.parent / "shared" / "traces"))   # the public traces, by their own names
NAMES = {"conversation": "AzureLLMInferenceTrace_conv.csv", "code": "AzureLLMInferenceTrace_code.csv",
         "arXiv": "arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv"}
POLICIES = ["cadence", "prefill-first", "static-chunk"]
WAIT = 2.0            # seconds
PROMISED = 1.15       # the 99th percentile of cadence's gaps, over the gap that it is asked for
ROWS = 2500           # of each trace, for the simulator
REQUESTS = int(os.environ.get("CADANS_CAPACITY_REQUESTS", "40"))
GRAIN = 1.2           # the bisection ends when the bounds are this near
FIRST_RATE = 1.0      # of arrival


def first_rows(file, folder):
    """A trace of its own: the simulator plays all of one at every rate that it tries."""
    part = pathlib.Path(folder) / file
    with open(TRACES / file) as whole:
        part.write_text("".join(itertools.islice(whole, ROWS + 1)))   # and the names of the columns
    return part


def simulated(evidence):
    """On all cores, for nothing here is timed."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = {name: first_rows(file, folder) for name, file in NAMES.items()}

        def rates_of(job):
            slo, name = job
            done = run("simulate", "--trace", parts[name], "--rate", 0.02, "--capacity", "--slo", slo, "--policy", ",".join(POLICIES), "--json", timeout=3600)
            assert done.returncode == 0, f"{name}: {done.stderr[-200:]}"
            return {record["policy"]: record["capacity_rps"] for record in json.loads(done.stdout)}

        jobs = list(itertools.product(("strict", "relaxed"), NAMES))
        for (slo, name), rates in zip(jobs, pool.map(rates_of, jobs)):
            if None in rates.values():   # then there is nothing to compare
                evidence.require(False, f"{name}: no rate breaks the rule")
            else:
                compare(evidence, f"simulated, {name}, {slo}", rates)


def compare(evidence, label, rates, grain=1.0):
    ours = rates["cadence"]
    evidence.row(label, **{f"{p}_rps": r for p, r in rates.items()},
                 **{f"cadence_over_{p}": ours / r if r else "no rate keeps the rule" for p, r in rates.items() if p != "cadence"})
    evidence.require(all(ours * grain >= r for r in rates.values()), f"{label}: a baseline serves more")


def small_sizes():
    """(prompt, answer) in tokens: a trace's rows, a quarter as long, so that a small machine is loaded and not drowned."""
    with open(TRACES / NAMES["conversation"]) as lines:
        rows = list(csv.DictReader(lines))[:REQUESTS]
    return [(min(1900, max(8, int(r["ContextTokens"]) // 4)), max(2, int(r["GeneratedTokens"]) // 4)) for r in rows]


def served(server, sizes, rate, slo):
    """Requests a second until the last had ended; 0 where the rule was not kept."""
    begin = time.perf_counter()
    seen = play(server, sizes, rate, seed=5)
    taken = time.perf_counter() - begin
    assert not seen.failures, seen.failures[:3]
    return len(sizes) / taken if quantile(seen.gaps, 0.99) <= slo and quantile(seen.waits, 0.75) <= WAIT else 0.0


def most_served(server, sizes, slo):
    """Rates of arrival are doubled while more is served, and searched between the last that kept the rule and the first that did not."""
    low, high, best, rate = 0.0, 0.0, 0.0, FIRST_RATE
    while not high:
        now = served(server, sizes, rate, slo)
        if now and now < GRAIN * best:   # the machine is full, and still keeps the rule
            return max(now, best)
        if now:
            low, best, rate = rate, now, rate * 2
        else:
            high = rate
    while low and high / low > GRAIN:
        middle = (low * high) ** 0.5
        now = served(server, sizes, middle, slo)
        low, high, best = (middle, high, max(best, now)) if now else (low, middle, best)
    return best


def real(evidence):
    model, sizes = models.real("smollm2"), small_sizes()
    with Server(model, "--speculate", "off") as server:      # alone: what a decode step takes behind 1,024 tokens
        seen = play(server, [(1024, 64)] * 3, 0.2, seed=9)
    step = quantile(seen.gaps, 0.5)
    evidence.row("real, the isolated decode step", ms=step * 1e3)
    for slo, times in (("strict", 5), ("relaxed", 25)):
        rates = {}
        for policy in POLICIES:
            flags = ["--policy", policy, "--context", 2048, "--queue", 1024, "--prefix-cache", "off"]
            if policy == "cadence":
                flags += ["--gap-ms", max(1, int(times * step * 1e3 / PROMISED))]
            if policy == "static-chunk":
                flags += ["--prefill-chunk", budget(model, times * step)]
            with Server(model, "--speculate", "off", *flags) as server:
                rates[policy] = most_served(server, sizes, times * step)
        compare(evidence, f"real, SmolLM2, conversation, {slo}", rates, GRAIN)


def budget(model, slo):
    """The largest fixed chunk whose step fits the SLO, as the simulator chooses it, from the measured table."""
    with tempfile.TemporaryDirectory() as folder:
        fit = pathlib.Path(folder) / "fit.json"
        fit.write_text(run("bench", "--model", model, "--fit", "--json", timeout=600).stdout)
        done = run("simulate", "--load", "poisson:requests=1", "--fit", fit, "--policy", "static-chunk", "--slo", slo * 1e3, "--json")
        return max(1, json.loads(done.stdout)[0]["prefill_chunk"])


def prove(evidence):
    real(evidence)
    simulated(evidence)
