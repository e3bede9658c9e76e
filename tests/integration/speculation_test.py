"""Guesses change no answer, are counted everywhere alike, and can be had and refused by request and by server."""
import concurrent.futures
import json
import random

import jsonschema
import models
import pytest
from server import Server, run

DRAFTERS = ["lookup", "suffix", "auto"]
TEXT = ("The harbour master wrote the names of all ships into the long book. In the morning he wrote Aurora, Bolivar and Constance; "
        "in the evening he wrote Dorothea, Emilia and Fortuna. Nobody ever read the long book, but he kept it with care. ")


@pytest.fixture(scope="module", params=["llama3", "gemma3"])
def server(request):
    """Random weights that often repeat the last token: some guesses come and some do not."""
    with Server(models.tiny(request.param, "f32", mix="0.3"), "--context", 2048) as started:
        yield started


def ids(seed, count):
    draw = random.Random(seed)
    stem = [draw.randrange(models.FIRST_PLAIN, models.TOKENS) for _ in range(12)]
    out = []
    while len(out) < count:
        out += stem[draw.randrange(12):] if draw.random() < 0.7 else [draw.randrange(models.FIRST_PLAIN, models.TOKENS)]
    return out[:count]


def ask(server, body, speculate):
    return server.ok("/v1/completions", {"max_tokens": 60, "return_token_ids": True, "ignore_eos": True, **body, "speculate": speculate})


def counts(answer):
    """(drafted, accepted), after checking that every place tells the same."""
    told, usage, timings = answer["cadans"]["speculation"], answer["usage"]["completion_tokens_details"], answer["timings"]
    assert told["drafted"] == timings["draft_n"] == told["accepted"] + told["rejected"]
    assert told["accepted"] == timings["draft_n_accepted"] == usage["accepted_prediction_tokens"]
    assert told["rejected"] == usage["rejected_prediction_tokens"]
    assert told["wasted_ns"] == answer["cadans"]["receipt_ns"]["speculation_waste"]
    assert told["accepted"] < max(1, answer["usage"]["completion_tokens"])
    return told["drafted"], told["accepted"]


BODIES = [
    {"prompt": ids(1, 100), "temperature": 0},
    {"prompt": ids(2, 40), "temperature": 0, "logprobs": 5, "max_tokens": 1},
    {"prompt": ids(3, 40), "temperature": 0, "logprobs": 5, "max_tokens": 2},
    {"prompt": ids(4, 200), "temperature": 1, "seed": 7, "logprobs": 5},
    {"prompt": ids(5, 300), "temperature": 0.6, "seed": 8, "top_k": 20, "top_p": 0.9, "n": 3},
    {"prompt": ids(6, 64), "temperature": 0, "repeat_penalty": 1.2, "frequency_penalty": 0.4},
    {"prompt": ids(7, 90), "temperature": 1.5, "seed": 9, "logit_bias": {"50": 3}, "max_tokens": 200},
    {"prompt": [ids(8, 50), ids(9, 70)], "temperature": 0.3, "seed": 1},
]


def test_answers_are_those_without_guesses(server):
    drafted = accepted = 0
    for body in BODIES:
        plain = ask(server, body, "off")
        assert counts(plain) == (0, 0) and plain["cadans"]["speculation"]["held"]["off"] > 0 or body.get("max_tokens") == 1
        for drafter in DRAFTERS:
            guessed = ask(server, body, drafter)
            assert guessed["choices"] == plain["choices"], (drafter, body)
            assert guessed["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]
            some = counts(guessed)
            drafted, accepted = drafted + some[0], accepted + some[1]
    assert accepted > 100 and drafted > accepted, "some guesses come and some do not, or this shows little"


def test_answers_are_the_same_in_company(server):
    jobs = [(body, drafter) for body in BODIES for drafter in ["off", *DRAFTERS]]
    plain = [ask(server, body, "off")["choices"] for body in BODIES]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda job: ask(server, *job), jobs))
    for n, answer in enumerate(answers):
        assert answer["choices"] == plain[n // 4], jobs[n]


def test_a_stop_string_ends_where_it_does_without_guesses(server):
    plain = ask(server, {"prompt": ids(1, 100), "temperature": 0}, "off")["choices"][0]["text"]
    for begin in range(3, len(plain) - 4, 7):
        body = {"prompt": ids(1, 100), "temperature": 0, "stop": plain[begin:begin + 3]}
        answers = [ask(server, body, each) for each in ["off", *DRAFTERS]]
        for answer in answers:
            counts(answer)
            assert answer["choices"] == answers[0]["choices"]
            assert answer["usage"]["completion_tokens"] == answers[0]["usage"]["completion_tokens"]


def test_a_form_is_kept_to_the_byte(server):
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": ["one", "two"]}, "minItems": 8, "maxItems": 8}}, "required": ["a"]}
    for settings in ({"temperature": 0}, {"temperature": 1, "seed": 3}):
        body = {"prompt": "a list: ", "json_schema": schema, "max_tokens": 300, "ignore_eos": False, **settings}
        answers = [ask(server, body, each) for each in ["off", *DRAFTERS]]
        assert all(len(json.loads(answer["choices"][0]["text"])["a"]) == 8 for answer in answers)
        assert all(answer["choices"] == answers[0]["choices"] for answer in answers)


BOOK = {"type": "object", "properties": {"title": {"type": "string", "maxLength": 20}, "publisher_name": {"enum": ["Penguin", "Oxford"]},
                                         "publication_year": {"type": "integer", "minimum": 1900, "maximum": 2030},
                                         "is_available_online": {"type": "boolean"}},
        "required": ["title", "publisher_name", "publication_year", "is_available_online"], "additionalProperties": False}


@pytest.mark.real_model
def test_what_a_form_forces_is_guessed(smollm2):
    """Names that stand nowhere before: only the schema can tell what comes."""
    accepted = 0
    for seed in range(4):
        body = {"messages": [{"role": "user", "content": "Describe a book as JSON."}], "max_tokens": 200, "temperature": 0.7, "seed": seed,
                "response_format": {"type": "json_schema", "json_schema": {"name": "book", "strict": True, "schema": BOOK}}}
        plain, guessed = (smollm2.ok("/v1/chat/completions", {**body, "speculate": how}) for how in ("off", "auto"))
        assert plain["choices"] == guessed["choices"]
        if plain["choices"][0]["finish_reason"] == "stop":
            jsonschema.validate(json.loads(plain["choices"][0]["message"]["content"]), BOOK)
        accepted += counts(guessed)[1]
    assert accepted >= 30, "a good third of such an answer is forced"


def test_a_stream_has_the_same_text_and_its_gaps_are_counted_by_flush_and_by_token(server):
    for drafter in ["off", "auto"]:
        before = server.metrics()
        frames = server.stream("/v1/completions", {"prompt": ids(1, 100), "temperature": 0, "max_tokens": 80, "ignore_eos": True, "stream": True,
                                                   "speculate": drafter, "stream_options": {"include_usage": True}, "return_token_ids": True})
        after = server.metrics()
        frames.remove("[DONE]")
        tokens = [t for f in frames for c in f["choices"] for t in c.get("token_ids") or []]
        grown = {k: after[k] - before.get(k, 0) for k in after}
        assert len(tokens) == grown["cadans_output_tokens_total"] == 80
        assert grown["cadans_engine_token_gap_seconds_count"] == 79, "one for each token after the first"
        assert grown["cadans_token_gap_seconds_count"] <= 79
        told = next(f for f in frames if f.get("usage"))["cadans"]["speculation"]
        assert grown['cadans_draft_tokens_total{result="accepted"}'] == told["accepted"]
        assert grown['cadans_draft_tokens_total{result="rejected"}'] == told["rejected"]
        for reason, steps in told["held"].items():
            assert grown[f'cadans_draft_holds_total{{reason="{reason}"}}'] == steps


def test_a_users_last_answers_help_nobody_else(server):
    """Drawn so hot that nothing repeats by itself: only who was answered the same before has it guessed."""
    body = {"prompt": ids(1, 40), "temperature": 2, "seed": 11, "max_tokens": 80, "frequency_penalty": 2, "presence_penalty": 2}
    alone = ask(server, {**body, "user": "anna"}, "suffix")
    shares = {}
    for who in [{"user": "anna"}, {"user": "bert"}, {}, {}, {"user": "anna", "cache_prompt": False}]:
        answer = ask(server, {**body, **who}, "suffix")
        assert answer["choices"] == alone["choices"]
        shares.setdefault(str(who), []).append(counts(answer)[1])
    assert counts(alone)[1] < 20
    assert shares.pop(str({"user": "anna"}))[0] > 40
    assert max(most for each in shares.values() for most in each) < 20, shares


def test_what_it_does_not_know_is_refused(server):
    for wrong in ("always", 3, ""):
        status, answer = server.post("/v1/completions", {"prompt": "a", "max_tokens": 1, "speculate": wrong})
        assert status == 400 and "speculate" in answer["error"]["message"]
    result = run("serve", "--model", models.tiny("llama", "f32"), "--port", 0, "--speculate", "always", timeout=30)
    assert result.returncode == 2 and "speculate" in result.stderr


def test_the_server_says_what_holds_and_a_request_may_ask_for_more():
    with Server(models.tiny("llama3", "f32", mix="0.3"), "--context", 2048, "--speculate", "off") as server:
        body = {"prompt": ids(1, 100), "temperature": 0, "max_tokens": 100, "ignore_eos": True}
        answer = server.ok("/v1/completions", body)
        assert counts(answer) == (0, 0) and answer["cadans"]["speculation"]["held"]["off"] >= 99
        answer = server.ok("/v1/completions", {**body, "speculate": "lookup"})
        assert answer["cadans"]["speculation"]["held"]["off"] == 0


def test_a_record_of_guesses_is_played_again_exactly(tmp_path):
    tape = tmp_path / "tape"
    with Server(models.tiny("llama3", "f32", mix="0.3"), "--context", 1024, "--kv-memory", "2M", "--record", tape) as server:
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda n: ask(server, {"prompt": ids(n, 60 + 7 * n), "temperature": n % 2 / 2, "seed": n}, "auto"), range(24)))
    assert sum(counts(answer)[1] for answer in answers) > 50
    done = run("simulate", "--replay", tape, "--json")
    assert done.returncode == 0, done.stderr
    replay = json.loads(done.stdout)
    replay = replay[0] if isinstance(replay, list) else replay
    assert replay["plans"] == replay["plans_matched"] > 50
    text = tape.read_text().replace('"version":3', '"version":2', 1)
    tape.write_text(text)
    done = run("simulate", "--replay", tape, "--json")
    assert done.returncode == 1 and "version 2" in done.stderr and "version 3" in done.stderr


def chat(server, words, **more):
    return server.ok("/v1/chat/completions", {"messages": [{"role": "user", "content": words}], "max_tokens": 90, "return_token_ids": True, **more})


def test_a_real_model_quotes_the_same_and_guesses_right(smollm2):
    words = f"Repeat this text word for word, and nothing else:\n\n{TEXT}"
    for settings in ({"temperature": 0}, {"temperature": 0.7, "seed": 5}):
        plain = chat(smollm2, words, speculate="off", **settings)
        for drafter in DRAFTERS:
            guessed = chat(smollm2, words, speculate=drafter, **settings)
            assert guessed["choices"] == plain["choices"], drafter
            drafted, accepted = counts(guessed)
            assert settings["temperature"] > 0 or accepted > 20, (drafter, drafted, accepted)
