"""The prefix cache from outside: what was computed once is not computed again, is told, and changes nothing."""
import concurrent.futures
import random

import models
import pytest
from server import Server

PAGE = 32


@pytest.fixture(scope="module", params=["llama3", "gemma3"])
def server(request):
    """One with full attention, one whose layers have a sliding window; both repeat the last token, which is a real one."""
    with Server(models.tiny(request.param, "f32", mix="0.1"), "--context", 4096, "--kv-memory", "256M") as started:
        yield started


def ids(seed, count):
    draw = random.Random(seed)
    return [draw.randrange(models.FIRST_PLAIN, models.TOKENS) for _ in range(count)]


def complete(server, prompt, user, tokens=8, **more):
    return server.ok("/v1/completions", {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0, "user": user,
                                         "return_token_ids": True, **more})


def counts(answer):
    """(cached, computed) of a prompt, after checking that every place tells the same."""
    usage, timings, record = answer["usage"], answer["timings"], answer["cadans"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert timings["cache_n"] == record["cached_tokens"] == cached
    assert timings["prompt_n"] == record["computed_tokens"] == usage["prompt_tokens"] - cached
    return cached, record["computed_tokens"]


def common(one, other):
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    return shared


def test_a_chat_of_ten_turns_computes_only_what_is_new(server):
    """The ids that were generated come back as they were: what is new is the last answer token and the new words."""
    chat = ids(1, 300)
    for turn in range(10):
        answer = complete(server, chat, "ten turns", 20)
        cached, computed = counts(answer)
        assert computed == (300 if turn == 0 else 41), turn
        chat += answer["choices"][0]["token_ids"] + ids(100 + turn, 40)


def test_a_chat_in_words_reuses_up_to_the_first_token_that_differs(server):
    messages, history = [{"role": "system", "content": "You keep time. " * 20}], []
    for turn in range(10):
        messages.append({"role": "user", "content": f"What comes {turn} beats after the river? " * 4})
        prompt = server.ok("/tokenize", {"messages": messages})["tokens"]
        answer = server.ok("/v1/chat/completions", {"messages": messages, "max_tokens": 12, "user": "in words", "temperature": 0, "return_token_ids": True})
        cached, _ = counts(answer)
        same = min(common(history[:-1], prompt), len(prompt) - 1)   # the last token of an answer is never computed
        assert cached == same, (turn, cached, same)
        if turn > 0:
            miss = answer["cadans"]["cache_miss"]
            assert miss["position"] == same and miss["reason"] in ("differs", "extends") and miss["text"]
        history = prompt + answer["choices"][0]["token_ids"]
        messages.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})


def test_the_same_prompt_is_counted_whole_each_time_and_computed_once(server):
    text = "The river keeps its own time " * 40
    routes = (("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "max_tokens": 1}),
              ("/api/chat", {"messages": [{"role": "user", "content": text}], "stream": False, "options": {"num_predict": 1}}),
              ("/api/generate", {"prompt": text, "stream": False, "raw": True, "options": {"num_predict": 1}}))
    for path, body in routes:
        whole, cached = set(), []
        for _ in range(5):
            answer = server.ok(path, {**body, "user": path})
            if path.startswith("/api"):
                whole.add(answer["prompt_eval_count"])
                cached.append(answer["prompt_eval_cached_count"])
            else:
                whole.add(answer["usage"]["prompt_tokens"])
                cached.append(counts(answer)[0])
        assert len(whole) == 1
        assert cached[0] == 0 and set(cached[1:]) == {whole.pop() - 1}, (path, cached)


def test_side_requests_do_not_cost_a_long_chat_its_pages(server):
    chat, before = ids(2, 200), 0
    for turn in range(30):
        answer = complete(server, chat, "with titles", 6)
        cached, computed = counts(answer)
        assert cached >= before and (turn == 0 or computed <= 51 + PAGE)
        before = cached
        complete(server, ids(3, 20) + chat[-60:], "with titles", 10, priority="background")
        chat += answer["choices"][0]["token_ids"] + ids(200 + turn, 50)


def test_what_one_user_asked_another_does_not_find(server):
    prompt = ids(4, 400)
    assert counts(complete(server, prompt, "anna"))[0] == 0
    other = complete(server, prompt, "berta")
    assert counts(other)[0] == 0 and other["cadans"]["cache_miss"]["reason"] == "first_use"
    again = complete(server, prompt, "anna")
    assert counts(again)[0] == 399 and again["cadans"]["cache_miss"] is None


def test_a_request_can_stay_out_of_the_cache(server):
    prompt = ids(5, 200)
    for _ in range(2):
        out = complete(server, prompt, "private", cache_prompt=False)
        assert counts(out)[0] == 0 and out["cadans"]["cache_miss"]["reason"] == "off"
    assert counts(complete(server, prompt, "private"))[0] == 0, "it left nothing either"


def test_the_record_names_the_piece_where_reuse_ended(server):
    prompt = ids(6, 200)
    complete(server, prompt, "pieces")
    other = prompt[:]
    other[77] = models.FIRST_PLAIN if prompt[77] != models.FIRST_PLAIN else models.FIRST_PLAIN + 1
    answer = complete(server, other, "pieces")
    miss = answer["cadans"]["cache_miss"]
    assert counts(answer)[0] == 77 and miss["reason"] == "differs" and miss["position"] == 77
    assert miss["text"] and miss["text"].startswith(server.ok("/detokenize", {"tokens": other[77:78]})["content"].strip())
    status, record = server.get("/cadans/v1/requests/" + answer["cadans"]["id"])
    assert status == 200 and record["cache_miss"] == miss


def test_cached_pages_are_gauges_and_counted(server):
    before = server.metrics()
    complete(server, ids(7, 320), "gauges")
    complete(server, ids(7, 320), "gauges")
    after = server.metrics()
    assert after["cadans_page_bytes_cached"] > 0
    assert any(k.startswith("cadans_pages_cached{") and v > 0 for k, v in after.items())
    grown = {k: v - before.get(k, 0) for k, v in after.items()}
    assert grown['cadans_prompt_tokens_total{source="cached"}'] == 319
    assert grown['cadans_prompt_tokens_total{source="computed"}'] == 321


def test_several_answers_to_one_prompt_share_its_pages(server):
    answer = complete(server, ids(8, 500), "choices", 4, n=4)
    assert len(answer["choices"]) == 4 and answer["usage"]["prompt_tokens"] == 500
    used = server.metrics()
    assert used["cadans_page_bytes_used"] == 0, "all pages came back"


def asked(n):
    """Prompts that begin alike, part somewhere, or are told again; each with its own seed."""
    draw = random.Random(n)
    stem = ids(1000 + n % 3, 300)
    prompt = stem[:draw.randrange(1, 300)] + (ids(n, draw.randrange(0, 80)) if n % 4 else [])
    return {"prompt": prompt, "max_tokens": 40, "ignore_eos": True, "temperature": 0.9, "seed": n, "logprobs": 5, "user": str(n % 2),
            "return_token_ids": True}


@pytest.mark.parametrize("family", ["llama3", "gemma3"])
def test_cached_or_not_and_preempted_or_not_every_bit_is_the_same(family):
    model = models.tiny(family, "q4_k")
    with Server(model, "--prefix-cache", "off", "--context", 512) as server:
        plain = [server.ok("/v1/completions", asked(n))["choices"] for n in range(32)]
    small = {"llama3": 3 * 2 * 2 * 32 * 2 * 900, "gemma3": "5M"}[family]
    preempted = 0
    for memory, policy in (("64M", "cadence"), *((small, p) for p in ("cadence", "static-chunk", "prefill-first", "fixed-batch"))):
        with Server(model, "--context", 512, "--kv-memory", memory, "--policy", policy) as server:
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                answers = list(pool.map(lambda n: server.ok("/v1/completions", asked(n)), list(range(32)) * 2))
            for n, answer in enumerate(answers):
                assert answer["choices"] == plain[n % 32], (memory, policy, n)
            metrics = server.metrics()
            assert metrics['cadans_prompt_tokens_total{source="cached"}'] > 0
            preempted += metrics["cadans_preemptions_total"]
    if family == "llama3":   # windows are most of the other's pages, and they do not grow
        assert preempted > 0, "or this shows nothing about preemption"
