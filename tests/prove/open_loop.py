"""Clients that come when they come, whether or not earlier ones are served: what they see of a server under load."""
import dataclasses
import math
import random
import threading
import time


def prompt(tokens, seed):
    dice = random.Random(seed)
    return [dice.randrange(100, 400) for _ in range(tokens)]


def quantile(values, share):
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclasses.dataclass
class Seen:
    """Seconds, by the clients' own clocks; waits by the server's."""
    firsts: list = dataclasses.field(default_factory=list)   # sending to first text
    gaps: list = dataclasses.field(default_factory=list)     # between texts of one answer, pooled
    waits: list = dataclasses.field(default_factory=list)    # admission to first row
    words: list = dataclasses.field(default_factory=list)    # when texts came, since the begin
    failures: list = dataclasses.field(default_factory=list)


def ask(server, tokens, answer, seed, seen, begin):
    sent = last = time.perf_counter()
    try:
        for frame in server.frames("/v1/completions", {"prompt": prompt(tokens, seed), "max_tokens": answer, "ignore_eos": True, "temperature": 0,
                                                       "stream": True}, 600):
            if frame == "[DONE]":
                continue
            now = time.perf_counter()
            if "error" in frame:
                raise AssertionError(frame["error"])
            if any(c.get("text") for c in frame.get("choices") or []):
                (seen.firsts if last == sent else seen.gaps).append(now - last)
                seen.words.append(now - begin)
                last = now
            if "cadans" in frame and "queue_ns" in frame["cadans"]:
                seen.waits.append(frame["cadans"]["queue_ns"] / 1e9)
    except Exception as error:   # told to whoever judges the run; the other clients go on
        seen.failures.append(str(error)[:200])


def play(server, sizes, rate, seed):
    """Sends a request for each (prompt, answer) of `sizes`, Poisson at `rate` a second; returns what was seen."""
    dice, seen, clients, begin = random.Random(seed), Seen(), [], time.perf_counter()
    for number, (tokens, answer) in enumerate(sizes):
        clients.append(threading.Thread(target=ask, args=(server, tokens, answer, seed * 10_000 + number, seen, begin)))
        clients[-1].start()
        time.sleep(dice.expovariate(rate))
    for client in clients:
        client.join()
    return seen
