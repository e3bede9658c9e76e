"""Clients that come when they come, whether or not earlier ones are served: what they see of a server under load."""
import dataclasses
import math
import random
import threading
import time


# Each one token behind a space, and what a model makes of a row of them are words too: every token of an answer is seen by its client.
WORDS = ("time year people way day man thing woman life child world school state family student group country problem hand part place case week "
         "company system program question work government number night point home water room mother area money story fact month lot right study "
         "book eye job word business issue side kind head house service friend father power hour game line end member law car city community").split()
_ids = {}


def prompt(server, tokens, seed):
    """Ids of so many words at random."""
    if server.url not in _ids:
        _ids[server.url] = [server.ok("/tokenize", {"content": " " + word})["tokens"] for word in WORDS]
        assert all(len(ids) == 1 for ids in _ids[server.url])
    dice = random.Random(seed)
    return [dice.choice(_ids[server.url])[0] for _ in range(tokens)]


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
    words = prompt(server, tokens, seed)
    sent = last = time.perf_counter()
    try:
        for frame in server.frames("/v1/completions", {"prompt": words, "max_tokens": answer, "ignore_eos": True, "temperature": 0,
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
