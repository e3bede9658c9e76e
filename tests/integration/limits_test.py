"""Memory and queue: what cannot fit is refused at once, what can is served, and every page comes back."""
import concurrent.futures
import time

import models
from server import Server


def test_a_prompt_that_can_never_fit_blocks_nobody():
    """Pool of 2,048 tokens, model of 8,192: two layers of two heads of 64 at 2 bytes are 1,024 bytes a token."""
    pool = 3 * 2 * 2 * 32 * 2 * 2048   # tiny-llama3: layers, keys and values, kv heads, head size, bytes, tokens
    with Server(models.tiny("llama3", "f32"), "--kv-memory", pool) as server:
        begin = time.monotonic()
        status, answer = server.post("/v1/completions", {"prompt": [5] * 3000, "max_tokens": 1})
        assert time.monotonic() - begin < 5   # before any of it is computed, also on a busy machine
        assert status == 400 and answer["error"]["code"] == "context_length_exceeded"
        for _ in range(5):
            assert server.ok("/v1/completions", {"prompt": "The river", "max_tokens": 3, "ignore_eos": True})["usage"]["completion_tokens"] == 3
        # 1,500 and 1,500 do not fit together: ended by length at the limit, or refused, by the stated rule.
        status, answer = server.post("/v1/completions", {"prompt": [5] * 1500, "max_tokens": 1500, "ignore_eos": True})
        assert status == 400 or answer["choices"][0]["finish_reason"] == "length"
        assert server.alive()


def test_a_full_queue_answers_429_at_once_and_says_when_to_come_back():
    with Server(models.tiny("gemma3", "f32"), "--queue", 1, "--context", 2048, "--kv-memory", "4M") as server:
        before = server.metrics()

        def ask(_):
            begin = time.monotonic()
            status, headers, body = server.request("POST", "/v1/completions", b'{"prompt": [%s], "max_tokens": 60, "ignore_eos": true}' % b",".join([b"5"] * 500),
                                                   {"Content-Type": "application/json"})
            return status, headers, time.monotonic() - begin, body
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            replies = list(pool.map(ask, range(40)))
        refused = [r for r in replies if r[0] == 429]
        assert {r[0] for r in replies} <= {200, 429} and refused and any(r[0] == 200 for r in replies)
        for status, headers, seconds, body in refused:
            assert int(headers["Retry-After"]) >= 1 and b'"error"' in body
        assert server.alive()
        after = server.metrics()
        served = sum(v - before.get(k, 0) for k, v in after.items() if k.startswith("cadans_requests_total"))
        assert served == 40


def test_many_at_once_all_end_and_are_counted():
    with Server(models.tiny("llama", "q8_0")) as server:
        before = server.metrics()

        def ask(n):
            return server.ok("/v1/completions", {"prompt": [5 + n] * (1 + 17 * n), "max_tokens": 1 + n % 7, "ignore_eos": True})["usage"]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            usages = list(pool.map(ask, range(48)))
        after = server.metrics()
        grown = {k: v - before.get(k, 0) for k, v in after.items()}
        assert grown["cadans_output_tokens_total"] == sum(u["completion_tokens"] for u in usages)
        computed = grown['cadans_prompt_tokens_total{source="computed"}']
        cached = grown.get('cadans_prompt_tokens_total{source="cached"}', 0)
        assert computed + cached == sum(u["prompt_tokens"] for u in usages)
        assert cached == sum(u["prompt_tokens_details"]["cached_tokens"] for u in usages)


def test_the_same_prompt_counts_the_same_each_time(steady):
    """Five equal calls: the prompt's count is the full prompt, cached or not, on every door."""
    text = "The river keeps its own time " * 12
    for path, body, count in (
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "max_tokens": 1}, lambda a: a["usage"]["prompt_tokens"]),
            ("/api/chat", {"messages": [{"role": "user", "content": text}], "stream": False, "options": {"num_predict": 1}}, lambda a: a["prompt_eval_count"]),
            ("/api/generate", {"prompt": text, "stream": False, "options": {"num_predict": 1}}, lambda a: a["prompt_eval_count"])):
        counts = [count(steady.ok(path, body)) for _ in range(5)]
        assert len(set(counts)) == 1 and counts[0] > 50
    usage = steady.ok("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "max_tokens": 1})["usage"]
    assert 0 <= usage["prompt_tokens_details"]["cached_tokens"] <= usage["prompt_tokens"]


def test_a_users_name_is_a_name():
    ask = {"prompt": "a", "max_tokens": 1}
    with Server(models.tiny("llama", "f32")) as server:
        server.ok("/v1/completions", {**ask, "user": "u" * 512})
        status, answer = server.post("/v1/completions", {**ask, "user": "u" * 513})
        assert status == 400 and answer["error"]["param"] == "user", answer
