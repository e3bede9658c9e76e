"""Sarathi-Serve's experiments E1 to E6 on this engine, as ratios.

E1: four streams and then a long prompt, prefill-first against cadence: the largest gap.  E2: the 99th percentile of gaps at three
shares of what the machine serves, both policies.  E3: what one more decode row costs in a step that reads a prompt, against a decode step of its own.  E4: what
cutting costs, for prompts and chunks of several sizes, against one piece.  E5: time a token by rows of a step, prefill and decode.
E6: mixing without cutting, cutting without mixing, and both: median time to first token and 99th percentile of gaps.  Published
beside them: E3 80 times less (table 2), E4 +15 % to -20 % (figure 9a), E6 0.53/0.68, 1.04/0.17 and 0.76/0.14 s (table 6).
SmolLM2, two threads; gaps and first tokens are those of the clients.
"""
import json
import random
import statistics
import threading
import time

import models
from prove.open_loop import Seen, ask, play, quantile
from server import Server, run

STREAMS, LONG = 4, 4000
CHUNKS, PROMPTS = (64, 128, 256, 512, 1024), (512, 1024, 2048, 4096)
POLICIES = ("prefill-first", "cadence")
REQUESTS, LOADS, ABLATION_LOAD = 40, (0.4, 0.6, 0.8), 0.7   # loads: shares of what the machine serves
FLAGS = ("--context", 8192, "--prefix-cache", "off", "--speculate", "off")


def stall(policy, model):
    """(largest gap of four streams while a long prompt is read, words a second meanwhile)."""
    with Server(model, "--policy", policy, *FLAGS) as server:
        begin, streams, long = time.perf_counter(), Seen(), Seen()
        clients = [threading.Thread(target=ask, args=(server, 40, 1500, n, streams, begin)) for n in range(STREAMS)]
        for client in clients:
            client.start()
        time.sleep(2)
        streams.gaps.clear()
        sent = time.perf_counter() - begin
        ask(server, LONG, 2, 99, long, begin)
        read = long.words[0]
        assert all(c.is_alive() for c in clients), "the streams did not outlast the prompt"
        words = sum(sent < w < read for w in streams.words)
        for client in clients:
            client.join()
    assert not streams.failures and not long.failures
    return max(streams.gaps), words / (read - sent)


def stalls(evidence, model):
    seen = {policy: stall(policy, model) for policy in POLICIES}
    for policy, (gap, words) in seen.items():
        evidence.row(f"E1 {policy}", largest_gap_ms=gap * 1e3, words_per_s=words)
    evidence.row("E1 prefill-first over cadence", ratio=seen["prefill-first"][0] / seen["cadence"][0])
    evidence.require(seen["prefill-first"][0] > seen["cadence"][0], "E1: the whole prompt stalls no longer than the cut one")


def sizes(count):
    dice = random.Random(3)
    return [(dice.randrange(200, 1600), dice.randrange(20, 80)) for _ in range(count)]


def bench(model, *flags):
    done = run("bench", "--model", model, "--json", *flags, timeout=900)
    assert done.returncode == 0, done.stderr[-300:]
    return json.loads(done.stdout)


def seconds(record):
    return record["tokens"] * record["batch"] / record["tokens_per_second"]["median"]


def service(model):
    """Seconds of the machine that one request of sizes() takes, prompts whole and four answers at a time."""
    prompts, answers = zip(*sizes(REQUESTS))
    prompt, = bench(model, "--prompt", 1024, "--generate", 0, "--repeat", 3)
    answer, = bench(model, "--prompt", 0, "--generate", 32, "--depth", 1024, "--batch", 4)
    return statistics.mean(prompts) * seconds(prompt) / 1024 + statistics.mean(answers) / answer["tokens_per_second"]["median"]


def loads(evidence, model):
    for load in LOADS:
        rate = load / service(model)   # measured anew: a machine changes its clock
        p99 = {}
        for policy in POLICIES:
            with Server(model, "--policy", policy, *FLAGS) as server:
                seen = play(server, sizes(REQUESTS), rate, seed=4)
            assert not seen.failures, seen.failures[:2]
            p99[policy] = quantile(seen.gaps, 0.99)
        evidence.row(f"E2 at {load} of what the machine serves", requests_per_s=rate, prefill_first_p99_ms=p99["prefill-first"] * 1e3, cadence_p99_ms=p99["cadence"] * 1e3,
                     ratio=p99["prefill-first"] / p99["cadence"])


def piggyback(evidence, model):
    chunk, others = 256, 4
    alone, mixed = (seconds(r) for r in bench(model, "--prompt", chunk, "--beside", f"0,{others}", "--depth", 1024, "--generate", 0, "--repeat", 9))
    decode = seconds(bench(model, "--prompt", 0, "--generate", 32, "--depth", 1024, "--batch", others)[0]) / 32
    added = (mixed - alone) / others
    evidence.row("E3", chunk_ms=alone * 1e3, chunk_and_words_ms=mixed * 1e3, decode_step_ms=decode * 1e3,
                 ratio=(decode / others) / added if added > 0 else "no cost seen")
    evidence.require(mixed < alone + decode, "E3: a mixed step takes as long as its two parts")


def overhead(evidence, model):
    """Chunk sizes take turns, so that a machine that changes its clock treats them alike."""
    for tokens in PROMPTS:
        taken = {chunk: [] for chunk in (*CHUNKS, 8192)}
        for _ in range(3):
            for chunk in taken:
                taken[chunk].append(seconds(bench(model, "--prompt", tokens, "--generate", 0, "--prefill-chunk", chunk, "--repeat", 1)[0]))
        whole = quantile(taken.pop(8192), 0.5)
        evidence.row(f"E4 {tokens} tokens", **{f"chunks_of_{chunk}": quantile(t, 0.5) / whole for chunk, t in taken.items()})


def saturation(evidence, model):
    for r in bench(model, "--prompt", "1,2,4,8,16,32,64,128,256,512,1024", "--generate", 0, "--prefill-chunk", 1024):
        evidence.row(f"E5 prefill, {r['tokens']} rows", ms_per_token=seconds(r) * 1e3 / r["tokens"])
    for r in bench(model, "--prompt", 0, "--generate", 32, "--batch", "1,2,4,8,16"):
        evidence.row(f"E5 decode, {r['batch']} rows", ms_per_token=1e3 / r["tokens_per_second"]["median"])


def ablation(evidence, model):
    """Mixing alone is a fixed chunk so large that nothing is cut; cutting alone takes turns."""
    forms = {"mixing only": ("static-chunk", 8192), "cutting only": ("alternate", 256), "both": ("static-chunk", 256), "cadence": ("cadence", 256)}
    rate = ABLATION_LOAD / service(model)
    for label, (policy, chunk) in forms.items():
        with Server(model, "--policy", policy, "--prefill-chunk", chunk, *FLAGS) as server:
            seen = play(server, sizes(REQUESTS), rate, seed=6)
        assert not seen.failures, seen.failures[:2]
        evidence.row(f"E6 {label}", requests_per_s=rate, first_token_p50_ms=quantile(seen.firsts, 0.5) * 1e3, gap_p99_ms=quantile(seen.gaps, 0.99) * 1e3)


def prove(evidence):
    model = models.real("smollm2")
    for part in (stalls, loads, piggyback, overhead, saturation, ablation):
        part(evidence, model)
