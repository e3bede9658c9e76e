"""Guesses make answers that repeat what was said at least twice as fast, and no other answer slower than 0.97 of plain.

Two real models. Tasks: quoting and editing a text (the answer repeats large parts of the prompt), free chat, eight answers at a time, and
texts drawn so hot behind random ids that guesses do not come. Each request is asked without guesses and with them in turn, on one
server, and the ratio is that of their engine times for the same tokens, the median over all; the texts must be equal. Then three streams
beside a long prompt, with and without: their longest gap keeps the promise of the cadence policy either way.
CADANS_TRIAL=1 does a small part of it, to try the script; its page is not evidence.
"""
import concurrent.futures
import itertools
import os
import random
import statistics
import threading
import time

import models
from server import Server

TRIAL = bool(os.environ.get("CADANS_TRIAL"))
REPEATS = 1 if TRIAL else 5
MODELS = ["smollm2"] if TRIAL else ["smollm2", "gemma3"]
TOKENS = 200
STRANGERS = itertools.count()
PASSAGES = [
    "The lighthouse keeper counted the ships each evening and wrote their names in a long book that nobody ever read. In the winter of the "
    "great storm he counted none for eleven days. On the twelfth day a small boat came into the harbour, and in it sat a boy with a brass "
    "telescope. The keeper wrote the boy's name in the book, between two ships, and gave him soup and a bed near the lamp.",
    "def total(prices, tax):\n    result = 0\n    for price in prices:\n        result = result + price\n    result = result + result * tax\n"
    "    return result\n\ndef average(prices):\n    if len(prices) == 0:\n        return 0\n    return total(prices, 0) / len(prices)\n\n"
    "def cheapest(prices):\n    best = prices[0]\n    for price in prices:\n        if price < best:\n            best = price\n    return best\n",
    "Dear Mrs. Hoekstra,\n\nThank you for your letter of 3 March about the noise of the pumps. We have sent an engineer to pumping station 14, "
    "who found that two of the four bearings were worn. The bearings will be replaced on 19 March between 8 and 12 o'clock. During this time the "
    "water level may rise by up to 10 centimetres. We regret the inconvenience and thank you for your patience.\n\nYours sincerely,\nJ. de Wit",
    "name: harbour\nports:\n  - number: 8080\n    protocol: tcp\n    public: true\n  - number: 8081\n    protocol: tcp\n    public: false\n"
    "  - number: 9090\n    protocol: udp\n    public: true\nvolumes:\n  - path: /var/lib/harbour\n    size: 20G\n  - path: /var/log/harbour\n    size: 2G\n",
]
QUESTIONS = ["Why is the sky blue?", "Tell me a story about a clockmaker.", "How do I make bread at home?", "What is a good name for a boat?",
             "Explain how a bicycle stays upright.", "Write a short poem about the sea in winter.", "What should I see in Amsterdam?",
             "How does a telescope work?"]


def tasks():
    quoting = [f"Repeat the following text word for word, and nothing else.\n\n{p}" for p in PASSAGES]
    editing = [f"Copy the following text, but write every number as 7.\n\n{p}" for p in PASSAGES]
    return {"quoting": quoting[:2] if TRIAL else quoting, "editing": editing[:1] if TRIAL else editing, "free chat": QUESTIONS[:2] if TRIAL else QUESTIONS}


def stranger():
    """One who never asked before: neither a cached prompt nor an answer that is recalled helps."""
    return f"stranger {next(STRANGERS)}"


def asked(server, words):
    """As the model's own template would write it; one file has none, so all are asked in words."""
    turn = {"smollm2": "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", "gemma3": "<start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n"}
    return {"prompt": turn[server.name].format(words), "temperature": 0, "return_token_ids": True}


def chat(server, words, speculate, **more):
    return server.ok("/v1/completions", {**asked(server, words), "max_tokens": TOKENS, "speculate": speculate, "user": stranger(), **more})


def noise(server, seed, speculate):
    """Drawn from behind random ids, as hot as may be: what comes next follows from nothing."""
    draw = random.Random(seed)
    return server.ok("/v1/completions", {"prompt": [draw.randrange(1000, 1400) for _ in range(600)], "max_tokens": TOKENS, "temperature": 2,
                                         "seed": seed, "ignore_eos": True, "speculate": speculate, "return_token_ids": True, "user": stranger()})


def ids(answer):
    return [choice["token_ids"] for choice in answer["choices"]]


def in_turn(evidence, label, asks, least):
    """asks: functions of `speculate`. The median of plain time over guessed time, for the same tokens."""
    ratios, drafted, accepted, tokens = [], 0, 0, 0
    held = {}
    for turn in range(REPEATS):
        for number, ask in enumerate(asks):
            order = ["off", "auto"] if (turn + number) % 2 else ["auto", "off"]
            seen = {each: ask(each) for each in order}
            evidence.require(ids(seen["off"]) == ids(seen["auto"]), f"{label}: the text with guesses is that without")
            if seen["off"]["timings"]["predicted_n"] < 20:
                continue   # too short to be measured
            ratios.append(seen["off"]["timings"]["predicted_ms"] / seen["auto"]["timings"]["predicted_ms"])
            told = seen["auto"]["cadans"]["speculation"]
            drafted, accepted, tokens = drafted + told["drafted"], accepted + told["accepted"], tokens + seen["auto"]["timings"]["predicted_n"]
            for reason, steps in told["held"].items():
                held[reason] = held.get(reason, 0) + steps
    ratios.sort()
    median = statistics.median(ratios)
    evidence.row(label, speed=median, slowest=ratios[0], fastest=ratios[-1], answers=len(ratios), accepted_of_tokens=accepted / tokens,
                 accepted_of_drafted=accepted / drafted if drafted else 0.0, most_often_held=max(held, key=held.get))
    evidence.require(median >= least, f"{label}: at least {least} of the plain speed")
    return held


def eight_at_a_time(evidence, server, name):
    """Tokens a second of all together, in turns."""
    def rate(speculate):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            begin = time.perf_counter()
            answers = list(pool.map(lambda q: chat(server, q, speculate), QUESTIONS))
            return sum(a["usage"]["completion_tokens"] for a in answers) / (time.perf_counter() - begin), [ids(a) for a in answers]
    ratios, texts = [], []
    for turn in range(REPEATS):
        seen = {}
        for each in ["off", "auto"] if turn % 2 else ["auto", "off"]:
            seen[each], text = rate(each)
            texts.append(text)
        ratios.append(seen["auto"] / seen["off"])
    evidence.row(f"{name}, eight free chats at a time", speed=statistics.median(ratios), slowest=min(ratios), fastest=max(ratios), answers=8 * len(ratios))
    evidence.require(all(t == texts[0] for t in texts), f"{name}: eight at a time, the texts with guesses are those without")
    evidence.require(statistics.median(ratios) >= 0.97, f"{name}: eight at a time, at least 0.97 of the plain speed")


def beside_a_long_prompt(evidence, server, name):
    """Three streams that quote while a prompt of some thousand tokens is read: words a second and the longest gap."""
    gap = server.metrics()["cadans_stall_limit_seconds"]
    results = {}
    for each in ["off", "auto", "off", "auto"]:
        begin, end, ready = [0.0], [0.0], threading.Barrier(4)

        def stream(number):
            last, gaps, tokens, started = None, [], 0, False
            words = f"Repeat the following text word for word, again and again.\n\n{PASSAGES[number]}"
            for frame in server.frames("/v1/completions", {**asked(server, words), "max_tokens": 4000, "ignore_eos": True, "stream": True,
                                                           "speculate": each, "user": stranger()}, 600):
                if end[0]:
                    break   # the client leaves: what follows is of no interest
                now = time.perf_counter()
                if frame == "[DONE]" or not frame["choices"]:
                    continue
                if not started:
                    started = True
                    ready.wait()
                if begin[0] and not end[0]:
                    tokens += len(frame["choices"][0].get("token_ids") or [])
                    if last:
                        gaps.append(now - last)
                last = now
            return tokens, gaps
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            streams = [pool.submit(stream, n) for n in range(3)]
            ready.wait()
            draw = random.Random(len(results))
            begin[0] = time.perf_counter()
            long = [draw.randrange(1000, 9000) for _ in range(800 if TRIAL else 3000)]
            server.ok("/v1/completions", {"prompt": long, "max_tokens": 1, "cache_prompt": False}, 600)
            end[0] = time.perf_counter()
            done = [s.result() for s in streams]
        longest = max(g for _, gaps in done for g in gaps)
        results.setdefault(each, []).append((sum(tokens for tokens, _ in done) / (end[0] - begin[0]), longest, end[0] - begin[0]))
    for each, seen in results.items():
        evidence.row(f"{name}, three streams beside a long prompt, {'plain' if each == 'off' else 'with guesses'}", words_per_s=statistics.mean(s[0] for s in seen),
                     longest_gap_s=max(s[1] for s in seen), promised_s=gap, prompt_s=statistics.mean(s[2] for s in seen))
        evidence.require(max(s[1] for s in seen) <= 1.5 * gap, f"{name}: beside a long prompt the longest gap is within 1.5 of the promise ({each})")
    speed = statistics.mean(s[0] for s in results["auto"]) / statistics.mean(s[0] for s in results["off"])
    evidence.row(f"{name}, three streams beside a long prompt", speed=speed)
    evidence.require(speed >= 0.97, f"{name}: beside a long prompt at least 0.97 of the plain speed")
    prompt = statistics.mean(s[2] for s in results["off"]) / statistics.mean(s[2] for s in results["auto"])
    evidence.require(prompt >= 0.97, f"{name}: the long prompt beside them keeps 0.97 of its speed")


def prove(evidence):
    for name in MODELS:
        with Server(models.real(name), "--context", 8192) as server:
            server.name = name
            chat(server, "Hello", "off")
            for label, prompts in tasks().items():
                asks = [lambda each, words=words: chat(server, words, each) for words in prompts]
                in_turn(evidence, f"{name}, {label}", asks, 0.97 if label == "free chat" else 2.0)
            asks = [lambda each, seed=seed: noise(server, seed, each) for seed in range(2 if TRIAL else 6)]
            held = in_turn(evidence, f"{name}, guesses that never come", asks, 0.97)
            evidence.require(held["unlikely"] + held["no_guess"] > 0.9 * sum(held.values()), "the record says why: no guess, or none likely enough")
            eight_at_a_time(evidence, server, name)
            beside_a_long_prompt(evidence, server, name)
