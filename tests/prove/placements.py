"""Where dividing prefill and decode over boxes serves more than sharing them, and where it does not.

DistServe's question on its rule (goodput: the most requests a second of which 90 % keep both limits, found by bisection; and the tightest
limits still kept at half of what sharing serves), asked of `cadans plan` for 2, 4 and 8 boxes and three home links.  Loads: the first rows
of Azure's conversation trace, and ShareGPT's lengths under Poisson arrivals, 200 requests each: few, so that
forms are to be compared with each other and not numbers of boxes.  Two tables of costs: the built-in one of a
1B model on two desktop cores under the strict promise; and that which DistServe's artifact fitted to OPT-13B on an A100, under that paper's
limits for it (0.25 s to the first token, 0.1 s a token) and rows that fit that model's 2,048 tokens, over the fastest of these links and over one of
600 GB/s as between GPUs of one machine.  All boxes run this house's `cadence`; for OPT-13B also `prefill-first`, of which kind the engine
was that DistServe was compared with.  Published beside them: 7.4 times the
requests or 12.6 times tighter limits (OSDI 2024), the best of that paper's loads.  The figures are to be read; what must hold is that the
sentence under each table agrees with it, and that a faster link never serves less than a slower one by more than the search is unsure of.
"""
import itertools
import json
import os
import pathlib
import tempfile

from server import ROOT, run

TRACES = pathlib.Path(os.environ.get("CADANS_TRACES", ROOT.parent / "shared" / "traces"))   # the public traces, by their own names
LOADS = {"conversation": "AzureLLMInferenceTrace_conv.csv", "ShareGPT": "sharegpt_8k_filtered_stats_llama2_tokenizer.csv"}
ROWS = int(os.environ.get("CADANS_PLACEMENT_ROWS", "200"))
BOXES = (2, 4, 8)
LINKS, FAR, NEAR = ("100M", "1G", "10G"), "10G", "4800G"
CONTEXT = 2048   # of OPT
UNSURE = 1.06   # two searches, each to 2.5 %
PUBLISHED = {"requests": 7.4, "tighter": 12.6}

# simdistserve/estimators: prefill 18.1 + 0.1019 n + 7.1e-6 n^2 ms; decode of few rows 19.9 + 0.00063 keys + 0.0385 rows ms.  As a step of
# ours: the larger of weights and rows, what a step costs anyway, and keys; a prompt of n tokens looks at n^2 / 2 keys.
OPT_13B = {"weights_ps": 14_000_000_000, "row_ps": 101_900_000, "step_ps": 5_900_000_000, "prompt_key_ps": 14_200, "decode_key_ps": 630_000,
           "logits_ps": 38_500_000, "kv_token_bytes": 2 * 40 * 5120 * 2, "layers": 40}


def plan(evidence, label, trace, *flags):
    """{boxes: the plan for so many}."""
    done = run("plan", "--trace", trace, "--boxes", ",".join(map(str, BOXES)), "--json", *flags, timeout=7200)
    evidence.require(done.returncode == 0, f"{label}: {done.stderr[-200:]}")
    return {p["boxes"]: p for p in json.loads(done.stdout)["plans"]} if done.returncode == 0 else {}


def first_rows(file, folder, most=None):
    """A trace of its own: the names of the columns and as many rows as are played, of at most so many tokens."""
    part = pathlib.Path(folder) / f"{most or 'all'}-{file}"
    with open(TRACES / file) as whole:
        names = next(whole)
        columns = names.strip().split(",")
        sizes = [columns.index(a if a in columns else b) for a, b in (("ContextTokens", "num_prefill_tokens"), ("GeneratedTokens", "num_decode_tokens"))]
        fits = (row for row in whole if most is None or sum(int(row.strip().split(",")[at]) for at in sizes) <= most)
        part.write_text(names + "".join(itertools.islice(fits, ROWS)))
    return part


def best(placements, split):
    return max((p for p in placements if bool(p["prefill"]) == split), key=lambda p: (p["goodput_rps"], -(p["tightest_slo"] or 1e9)))


def tightest(placements, split):
    return min((p["tightest_slo"] for p in placements if bool(p["prefill"]) == split and p["tightest_slo"]), default=None)


def ratio(above, below):
    return above / below if above and below else "-"


def compare(evidence, label, plans):
    """One row for each number of boxes; {boxes: goodput of the best split}."""
    served = {}
    for boxes, found in plans.items():
        placements = found["placements"]
        evidence.require(all(p["goodput_rps"] is not None for p in placements), f"{label}, {boxes} boxes: no rate breaks the promise")
        if any(p["goodput_rps"] is None for p in placements):
            continue
        shared, split = best(placements, False), best(placements, True)
        slo_shared, slo_split = tightest(placements, False), tightest(placements, True)
        evidence.row(f"{label}, {boxes} boxes", shared_rps=shared["goodput_rps"], split_rps=split["goodput_rps"], best_split=split["placement"],
                     requests_ratio=ratio(split["goodput_rps"], shared["goodput_rps"]), tighter_ratio=ratio(slo_shared, slo_split),
                     exposed_ms=split["exposed_ms"], link_busy=split["link_busy"], chosen=found["choice"] or "none")
        wins = split["goodput_rps"] > shared["goodput_rps"] * UNSURE
        loses = split["goodput_rps"] < shared["goodput_rps"]
        evidence.require(not wins or "prefill" in (found["choice"] or ""), f"{label}, {boxes} boxes: the better split is not chosen")
        evidence.require(not loses or "shared" in (found["choice"] or ""), f"{label}, {boxes} boxes: a worse split is chosen")
        served[boxes] = split["goodput_rps"]
    return served


def links(evidence, label, trace, speeds, *flags):
    before = {}
    for link in speeds:
        now = compare(evidence, f"{label}, {link}bit/s", plan(evidence, label, trace, "--link", link, *flags))
        for boxes in before.keys() & now.keys():
            evidence.require(now[boxes] * UNSURE >= before[boxes], f"{label}, {link}, {boxes} boxes: a faster link serves less")
        before = now


def prove(evidence):
    evidence.row("published by DistServe, its best", requests_ratio=PUBLISHED["requests"], tighter_ratio=PUBLISHED["tighter"])
    with tempfile.TemporaryDirectory() as folder:
        fit = pathlib.Path(folder) / "opt-13b.json"
        fit.write_text(json.dumps(OPT_13B))
        for name, file in LOADS.items():
            links(evidence, f"1B on two cores, {name}", first_rows(file, folder), LINKS)
            short = first_rows(file, folder, CONTEXT)
            paper = ("--fit", fit, "--slo", 100, "--slo-ttft", 250, "--max-running", 256, "--kv-tokens", 65536)
            links(evidence, f"OPT-13B on A100s, cadence, {name}", short, (FAR, NEAR), *paper)
            links(evidence, f"OPT-13B on A100s, prefill-first, {name}", short, (NEAR,), *paper, "--policy", "prefill-first")
