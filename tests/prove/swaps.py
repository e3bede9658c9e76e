"""Two models with memory for one, swapped 200 times under load: every answer is that of a server which holds only its model.

Four clients ask for one or the other at random, with seeds and scores; token ids and log-probabilities are compared bit for bit with
those of a server with one model. Every request is answered whole or refused clearly, and every receipt sums to its total. Memory of the
serving process, with no model loaded, is compared after a tenth of the swaps and at the end. Then the cold start: the load time in the receipt against an
outside stop-watch's difference between the first word of a cold and of a warm request, and 0 in the second's receipt.
make test: 20 swaps of tiny models.
"""
import collections
import json
import os
import pathlib
import random
import statistics
import tempfile
import threading
import time

import models
from server import Server

SAME = ("token_ids", "text", "finish_reason", "logprobs")
Found = collections.namedtuple("Found", "answers loads problems grown_bytes swap_seconds")
COLD_ROUNDS, WARM_EACH, WITHIN = 15, 5, 0.05


def serving_process(server):
    """The child of the small parent."""
    pid = server.process.pid
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def resident_bytes(pid):
    return int(next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:")).split()[1]) << 10


def bytes_at_rest(server, pid, names):
    """What the process holds when no model is loaded: how far a loaded one has filled its pages is chance, this is not."""
    for name in names:
        server.ok("/api/generate", {"model": name, "keep_alive": 0, "stream": False})
    while server.get("/api/ps")[1]["models"]:
        time.sleep(0.01)
    time.sleep(0.2)   # its memory is back
    return resident_bytes(pid)


def machine_of(server):
    return {model["name"]: model for model in server.get("/cadans/v1/machine")[1]["models"]}


def loads(server):
    return sum(model["loads"] for model in machine_of(server).values())


def body_of(model, seed, prompt):
    dice = random.Random(seed)
    return {"model": model, "prompt": prompt(dice), "max_tokens": dice.choice([1, 6, 20]), "temperature": dice.choice([0, 1]), "seed": seed, "ignore_eos": True,
            "logprobs": 3, "return_token_ids": True, "user": f"u{seed % 3}"}


def wrong_with(status, answer, expected):
    """None, or what is wrong with an answer."""
    if status == 503 and answer["error"]["message"]:
        return None   # refused clearly; none is expected, and the caller counts what was answered
    if status != 200:
        return f"{status}: {answer}"
    got = {key: answer["choices"][0].get(key) for key in SAME}
    if got != expected:
        return f"another answer: {got} and not {expected}"
    record = answer["cadans"]
    if sum(record["receipt_ns"].values()) != record["total_ns"]:
        return f"a receipt that does not sum: {record}"
    return None if record["cold"] == (record["load_ns"] > 0) else f"cold and warm are mixed: {record}"


def swap(folder, files, count, clients, flags, prompt, variants=12):
    """Swaps `files` {name: path} of `folder`, both with room for one, until there were `count` loads."""
    expected = {}
    for name, path in files.items():
        with Server(f"{name}={path}", *flags) as alone:
            for seed in range(variants):
                choice = alone.ok("/v1/completions", body_of(name, seed, prompt))["choices"][0]
                expected[name, seed] = {key: choice.get(key) for key in SAME}
    with Server([], "--models-dir", folder, *flags) as server:
        most = max(machine_of(server)[name]["memory_bytes"] for name in files)
    problems, answered, lock = [], collections.Counter(), threading.Lock()
    with Server([], "--models-dir", folder, *flags, "--model-memory", most) as server:
        pid = serving_process(server)

        def client(dice, stop):
            while not stop.is_set():
                name, seed = dice.choice(list(files)), dice.randrange(variants)
                try:
                    status, answer = server.post("/v1/completions", body_of(name, seed, prompt), timeout=600)
                    wrong = wrong_with(status, answer, expected[name, seed])
                except Exception as error:   # whatever goes wrong is a finding
                    status, wrong = 0, f"{type(error).__name__}: {error}"
                with lock:
                    answered[status] += 1
                    if wrong:
                        problems.append(f"{name}, seed {seed}: {wrong}")

        def under_load(until):
            """Seconds it took until there were so many loads."""
            begin, stop = time.monotonic(), threading.Event()
            threads = [threading.Thread(target=client, args=(random.Random(f"client {number} to {until}"), stop)) for number in range(clients)]
            for thread in threads:
                thread.start()
            while loads(server) < until and not problems and all(t.is_alive() for t in threads):
                time.sleep(0.05)
            seconds = time.monotonic() - begin
            stop.set()
            for thread in threads:
                thread.join()
            return seconds

        parts = [max(2, count // 10), *(count * part // 10 for part in range(2, 11))]
        seconds, samples = [], []
        for until in parts:
            seconds.append(under_load(until))
            samples.append(bytes_at_rest(server, pid, files))
        total = loads(server)
        if answered[200] != sum(answered.values()):
            problems.append(f"answers by status: {dict(answered)}")
        metrics = server.metrics()
        outcomes = sum(v for k, v in metrics.items() if k.startswith("cadans_requests_total"))
        if outcomes != sum(answered.values()):
            problems.append(f"the server counts {outcomes} requests, the clients {sum(answered.values())}")
    return Found(answered[200], total, problems, samples[-1] - samples[0], sum(seconds[1:]) / max(1, count - parts[0]))


def first_word(server, body):
    """(seconds from the request to its first word by an outside stop-watch, the record)."""
    begin, first, record = time.monotonic(), None, None
    for frame in server.frames("/v1/completions", {**body, "stream": True, "stream_options": {"include_usage": True}}):
        if frame == "[DONE]":
            continue
        if first is None and frame["choices"] and frame["choices"][0].get("text"):
            first = time.monotonic() - begin
        record = frame.get("cadans", record)
    return first, record


def cold_starts(folder, name, flags, rounds=COLD_ROUNDS):
    """(median load of the receipts, median difference of the stop-watch, loads of the warm requests), all in seconds."""
    body = {"model": name, "prompt": [100] * 64, "max_tokens": 4, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
    loads_seen, differences, warm_loads = [], [], []
    with Server([], "--models-dir", folder, *flags) as server:
        first_word(server, body)   # measures the model's steps, once
        for _ in range(rounds):
            server.ok("/api/generate", {"model": name, "keep_alive": 0, "stream": False})
            while server.get("/api/ps")[1]["models"]:
                time.sleep(0.01)
            time.sleep(0.2)        # its memory is back
            cold, record = first_word(server, body)
            warm = []
            for _ in range(WARM_EACH):
                seconds, other = first_word(server, body)
                warm.append(seconds)
                warm_loads.append(other["receipt_ns"]["load"])
            loads_seen.append(record["receipt_ns"]["load"] / 1e9)
            differences.append(cold - statistics.median(warm))
    return statistics.median(loads_seen), statistics.median(differences), warm_loads


def prove(evidence):
    flags = ["--context", 1024, "--kv-memory", "256M", "--history", "off"]
    files = {name: models.fetcher().models_folder() / models.fetcher().MODELS[name]["file"] for name in ("smollm2", "gemma3")}
    with tempfile.TemporaryDirectory(prefix="cadans-models-") as folder:
        for name, path in files.items():
            os.symlink(path, f"{folder}/{name}.gguf")
        found = swap(folder, files, count=200, clients=4, flags=flags,
                     prompt=lambda dice: [dice.randrange(1000, 40000) for _ in range(dice.choice([3, 40, 200]))])
        evidence.row("swaps", loads=found.loads, answers=found.answers, problems=len(found.problems), grown_MiB=found.grown_bytes / (1 << 20),
                     seconds_a_swap=found.swap_seconds)
        evidence.require(not found.problems, "; ".join(found.problems[:3]))
        evidence.require(found.loads >= 200, f"{found.loads} loads")
        evidence.require(found.grown_bytes < 32 << 20, f"memory grew by {found.grown_bytes} bytes")
        for name in files:
            load, difference, warm_loads = cold_starts(folder, name, flags)
            evidence.row(f"cold start of {name}", load_s=load, stop_watch_s=difference, off_by=abs(load - difference) / difference)
            evidence.require(abs(load - difference) <= WITHIN * difference, f"{name}: the receipt says {load} s, the stop-watch {difference} s")
            evidence.require(not any(warm_loads), f"{name}: a warm request's receipt has a load")
