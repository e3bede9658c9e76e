"""1,000 random client cuts: all pages back, counters reconcile.  (make test: 50 for each of two families.)"""
import concurrent.futures
import contextlib
import json
import random
import socket
import struct
import time

from server import HOST

PROBE = {"prompt": [9, 8, 7, 6, 5, 4, 3] * 9, "max_tokens": 8, "temperature": 0, "ignore_eos": True, "logprobs": 1}
SETTLE = 10   # seconds until nothing runs any more
OUTCOMES = 'cadans_requests_total{outcome="'


def total(server, *families):
    """Sum of all samples of the families; docs/metrics.md lists them."""
    return sum(v for k, v in server.metrics().items() if k.split("{")[0] in families)


def running(server):
    return total(server, "cadans_sequences_running", "cadans_sequences_waiting")


def leased(server):
    return total(server, "cadans_pages_used")


def open_and_cut(server, body, after_seconds=None, after_bytes=None, reset=False, head_only=False):
    """Sends a request and leaves; returns the bytes of the answer that had come."""
    data = json.dumps(body).encode()
    head = (f"POST /v1/completions HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n").encode()
    got = b""
    with socket.create_connection((HOST, server.port), 30) as line:
        if reset:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.sendall(head + (data[:len(data) // 2] if head_only else data))
        end = time.monotonic() + (after_seconds if after_seconds is not None else 20)
        while time.monotonic() < end and (after_bytes is None or len(got) < after_bytes):
            line.settimeout(max(0.001, end - time.monotonic()))
            with contextlib.suppress(TimeoutError):
                part = line.recv(4096)
                if not part:
                    break
                got += part
    return got


def one_cut(server, seed):
    dice = random.Random(seed)
    body = {"prompt": [dice.randrange(3, 480) for _ in range(dice.choice([1, 31, 32, 33, 200, 900]))], "max_tokens": dice.choice([1, 20, 400]),
            "ignore_eos": True, "stream": dice.random() < 0.7, "n": dice.choice([1, 1, 1, 3]), "user": f"u{seed % 5}"}
    by_bytes = dice.random() < 0.4
    open_and_cut(server, body, after_seconds=2 if by_bytes else dice.choice([0, 0.001, 0.01, 0.05, 0.2]),
                 after_bytes=dice.randrange(1, 3000) if by_bytes else None, reset=dice.random() < 0.5, head_only=dice.random() < 0.1)


def answer(server):
    reply = server.ok("/v1/completions", PROBE)
    return reply["choices"][0]["text"], reply["choices"][0]["logprobs"]["token_logprobs"]


def cut(server, count, seed):
    """(cuts made, list of what is wrong afterwards)."""
    before, expected, problems = server.metrics(), answer(server), []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: one_cut(server, seed * 1_000_000 + n), range(count)))
    end = time.monotonic() + SETTLE
    while time.monotonic() < end and (running(server) or leased(server)):
        time.sleep(0.05)
    if running(server) or leased(server):
        problems.append(f"after {SETTLE} s still {running(server)} requests and {leased(server)} leased pages")
    if answer(server) != expected:
        problems.append("the same request is answered otherwise than before")
    after = server.metrics()
    ended = sum(v - before.get(k, 0) for k, v in after.items() if k.startswith(OUTCOMES))
    if not 2 <= ended <= count * 3 + 2:
        problems.append(f"{ended} requests were counted for {count} cuts and two probes")
    if any(v for k, v in after.items() if k.startswith("cadans_engine_restarts_total")):
        problems.append("the engine was restarted")
    if not server.alive():
        problems.append("the server is not ready")
    return count, problems


def prove(evidence):
    import models
    from server import Server
    for family in ("llama", "llama3", "qwen3", "gemma3"):
        with Server(models.tiny(family, "q8_0"), "--prefill-chunk", 32, "--context", 2000) as server:
            made, problems = cut(server, 250, seed=2)
            evidence.row(family, cuts=made, problems="; ".join(problems) or "none", outcomes=", ".join(
                f"{k[len(OUTCOMES):-2]} {v:.0f}" for k, v in server.metrics().items() if k.startswith(OUTCOMES)))
            evidence.require(not problems, f"{family}: {problems}")
