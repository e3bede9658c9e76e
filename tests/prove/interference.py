"""A long prompt lets no running stream wait longer than the gap, and is itself not much slower for it.

Three clients stream, then one sends a prompt of 6,000 tokens, on random weights in the shapes of Llama 3.2 1B, Q4_K_M.
tests/tools/interference.py is the stop-watch, from outside. Under each policy: the largest gap of any stream while the
prompt is read, the 99th percentile, the time to the prompt's first token, and their ratios to cadence, whose figures are the worst of its
runs; before, between and after these the same length is read alone. Then: a prompt of a quarter of its length alone under cadence and under
prefill-first, in pairs (what cutting costs), and a short chat that comes while the long one is read.
CADANS_PEERS names commands of other servers to be measured in the same run, one a line, as "label: program --flags"
with {model} and {port} in them; each must answer OpenAI's completions.  CADANS_SMALL=1 does the same with a small real model and
1,500 tokens, to try the script; its page is not evidence.
"""
import json
import os
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import models
from server import HOST, Server, free_port

TOOL = pathlib.Path(models.HERE) / "tools" / "interference.py"
SMALL = bool(os.environ.get("CADANS_SMALL"))
POLICIES = ["cadence", "static-chunk", "fixed-batch", "prefill-first"]
GAP_MS = int(os.environ.get("CADANS_GAP_MS", "0"))   # 0: the server's own choice
LONG = 1500 if SMALL else 6000
SHORT = 60
STREAMS = 3
PAIRS = 15
TURNS = 2


def large_model():
    """Random weights; only shapes and types matter for time."""
    if SMALL:
        return pathlib.Path(os.environ.get("CADANS_SMALL_MODEL") or models.real("smollm2"))
    path = models.CACHE / "llama3.2-1b-q4_k_m.gguf"
    if not path.exists():
        models.CACHE.mkdir(parents=True, exist_ok=True)
        vocabulary = models.npm_vocabulary("llama3_1") or models.toy_vocabulary()
        draft = path.with_suffix(".draft")
        subprocess.run([sys.executable, str(models.MAKER), "llama3.2-1b", "--vocab", str(vocabulary), "--pre", "llama-bpe",
                        "--vocab-size", "128256", "--type", "q4_k_m", "-o", str(draft)], check=True, stdout=subprocess.DEVNULL)
        draft.rename(path)
    return path


def prompt(tokens, seed):
    dice = random.Random(seed)
    return [dice.randrange(100, 400) for _ in range(tokens)]


def first_token(server, tokens, seed):
    """Seconds until the first frame of an answer to a prompt that no cache knows."""
    begin = time.perf_counter()
    for frame in server.frames("/v1/completions", {"prompt": prompt(tokens, seed), "max_tokens": 2, "stream": True, "ignore_eos": True}, 600):
        if frame != "[DONE]" and frame["choices"]:
            return time.perf_counter() - begin
    raise AssertionError("no token came")


def stop_watch(url, seed=1):
    done = subprocess.run([sys.executable, str(TOOL), url, "--seed", str(seed), "--streamers", str(STREAMS), "--long-tokens", str(LONG), "--before", "5",
                           "--after", "3", "--max-tokens", "3000"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    print(f"   largest gap {seen['during']['max_ms']} ms, first token {seen['long_ttft_s']} s", flush=True)
    return seen


def serve(path, policy):
    flags = ["--policy", policy, "--context", 8192, "--speculate", "off"] + (["--gap-ms", GAP_MS] if GAP_MS else [])
    return Server(path, *flags, ready_within=300)


def beside_streams(path):
    """{policy: figures of one run} of the baselines."""
    results = {}
    for policy in POLICIES[1:]:
        with serve(path, policy) as server:
            results[policy] = stop_watch(server.url)
    return results


def alone_and_beside_streams(path):
    """(the promised gap in seconds, runs of cadence beside streams, seconds of the same length alone before, between and after them).

    In turns, for the clock of a machine moves by more in ten minutes than what is looked for."""
    with serve(path, "cadence") as server:
        gap = server.metrics()["cadans_stall_limit_seconds"]
        first_token(server, SHORT, 1)
        alone, runs = [first_token(server, LONG, 100)], []
        for turn in range(TURNS):
            runs.append(stop_watch(server.url, seed=turn + 1))
            alone.append(first_token(server, LONG, 101 + turn))
        return gap, runs, alone


def worst_of(runs):
    """One run's figures, each the worst of all."""
    worst = dict(runs[0], during=dict(runs[0]["during"]), errors=[e for r in runs for e in r["errors"]])
    for figure in ("max_ms", "p99_ms"):
        worst["during"][figure] = max(r["during"][figure] for r in runs)
    worst["long_ttft_s"] = max(r["long_ttft_s"] for r in runs)
    worst["events_per_s_during"] = min(r["events_per_s_during"] for r in runs)
    worst["streamers_ended_early"] = sum(r["streamers_ended_early"] for r in runs)
    return worst


def beside_streams_of_peers(path):
    """{label: figures} of the other servers, and their commands."""
    results = {}
    for line in filter(str.strip, os.environ.get("CADANS_PEERS", "").splitlines()):
        label, _, command = line.partition(":")
        port = free_port()
        process = subprocess.Popen(shlex.split(command.format(model=path, port=port)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=5)
                    break
                except (urllib.error.URLError, ConnectionError):
                    time.sleep(0.5)
            results[f"{label.strip()} ({' '.join(shlex.split(command)[1:])})"] = stop_watch(f"http://{HOST}:{port}")
        finally:
            process.kill()
            process.wait()
    return results


def compare(evidence, results, gap):
    ours = results["cadence"]
    for policy, r in results.items():
        evidence.row(policy, largest_gap_ms=r["during"]["max_ms"], p99_ms=r["during"]["p99_ms"], first_token_s=r["long_ttft_s"],
                     gap_ratio=r["during"]["max_ms"] / ours["during"]["max_ms"], first_token_ratio=r["long_ttft_s"] / ours["long_ttft_s"],
                     words_per_s=r["events_per_s_during"])
        evidence.require(not r["errors"] and r["streamers_ended_early"] == 0, f"{policy}: all streams outlast the run")
    evidence.require(ours["during"]["max_ms"] <= 1500 * gap, f"the largest gap is within 1.5 x {gap} s")
    evidence.require(ours["during"]["p99_ms"] <= 1150 * gap, f"the 99th percentile is within 1.15 x {gap} s")


def price(evidence, runs, alone):
    """What the long prompt pays for its neighbours, against its time alone and the words that they got meanwhile."""
    evidence.row(f"the long prompt alone, {len(alone)} times", first_token_s=statistics.median(alone), spread=f"{min(alone):.1f} to {max(alone):.1f}")
    prices = []
    for run, before, after in zip(runs, alone, alone[1:]):
        words = run["events_per_s_during"] * run["long_ttft_s"] / STREAMS * run["before"]["p50_ms"] / 1000
        prices.append(run["long_ttft_s"] / ((before + after) / 2 + words))
    evidence.row("cadence beside streams, against alone just before and after and their words", first_token_ratio=statistics.median(prices),
                 spread=f"{min(prices):.3f} to {max(prices):.3f}")
    evidence.require(statistics.median(prices) <= 1.15, "beside streams the first token comes within 1.15 x (alone + the work done for others)")


def cutting(evidence, path):
    """Chunks against one piece, and a short chat between the chunks."""
    with serve(path, "prefill-first") as whole, serve(path, "cadence") as cut:
        for server in (whole, cut):
            first_token(server, SHORT, 1)
        # In turns, short and often, as above.
        pairs = [(first_token(cut, LONG // 4, seed), first_token(whole, LONG // 4, seed)) for seed in range(20, 20 + PAIRS)]
        short_alone = min(first_token(cut, SHORT, seed) for seed in (5, 6, 7))
        reading = threading.Thread(target=first_token, args=(cut, LONG, 8))
        reading.start()
        time.sleep(2 * statistics.median(c for c, _ in pairs))
        short_beside = max(first_token(cut, SHORT, seed) for seed in (9, 10, 11))
        was_reading = reading.is_alive()
        reading.join()
    ratios = sorted(c / w for c, w in pairs)
    evidence.row(f"a prompt of {LONG // 4} tokens alone, against one unbroken prefill, {PAIRS} pairs", first_token_ratio=statistics.median(ratios),
                 spread=f"{ratios[PAIRS // 4]:.3f} to {ratios[-1 - PAIRS // 4]:.3f} (quartiles)")
    evidence.require(statistics.median(ratios) <= 1.02, "chunks cost an undisturbed prompt at most 2 %")
    evidence.row("a short chat beside the long prompt", first_token_s=short_beside, first_token_ratio=short_beside / short_alone)
    evidence.require(was_reading, "the long prompt was still being read")
    evidence.require(short_beside <= 3 * short_alone, "a short chat waits at most three times its time alone")


def prove(evidence):
    path = large_model()
    gap, runs, alone = alone_and_beside_streams(path)
    compare(evidence, {"cadence": worst_of(runs), **beside_streams(path), **beside_streams_of_peers(path)}, gap)
    price(evidence, runs, alone)
    cutting(evidence, path)
