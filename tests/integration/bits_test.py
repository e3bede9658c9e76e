"""Speed never changes text, seen from outside: chunks, neighbours, threads and instruction sets print the same digits."""
import concurrent.futures

import pytest

import instruction_sets
import models
from integration.scores_test import prompt
from server import Server

FAMILIES = [("llama3", "q4_k"), ("qwen2", "q5_1"), ("qwen3", "q8_0"), ("gemma3", "f16"),
            ("llama3", "iq4_xs"), ("qwen2", "iq4_nl"), ("qwen3", "mxfp4"), ("gemma3", "q3_k"), ("llama", "q2_k")]
# "make check" looks at one model; the others are for "make test".
CASES = [pytest.param(*each, marks=[] if each == FAMILIES[0] else [pytest.mark.slow]) for each in FAMILIES]
CHUNKS = [1, 7, 32, 100]
def model(family, weight_type):
    """With an output matrix of its own, so that its text is no repetition."""
    return models.tiny(family, weight_type, untied=True)


def observe(server):
    """What must not change: scores of a long prompt, and texts drawn greedily and by seed, with their scores."""
    seen = [server.scores(prompt(200), top=3)]
    for settings in ({"temperature": 0}, {"temperature": 1.0, "seed": 11}):
        choice = server.ok("/v1/completions", {"prompt": prompt(70, seed=5), "max_tokens": 24, "logprobs": 2, "ignore_eos": True,
                                               "return_token_ids": True, **settings})["choices"][0]
        seen.append((choice["token_ids"], choice["text"], choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"]))
    return seen


@pytest.fixture(scope="module")
def plain():
    """What each model answers with the settings that nobody changed, asked alone."""
    answers = {}

    def get(family, weight_type):
        key = family, weight_type
        if key not in answers:
            with Server(model(*key)) as server:
                answers[key] = observe(server)
        return answers[key]
    return get


@pytest.mark.parametrize("family, weight_type", CASES)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunks_change_nothing(plain, family, weight_type, chunk):
    with Server(model(family, weight_type), "--prefill-chunk", chunk) as server:
        assert observe(server) == plain(family, weight_type)


@pytest.mark.parametrize("family, weight_type", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(plain, family, weight_type, threads):
    with Server(model(family, weight_type), "--threads", threads) as server:
        assert observe(server) == plain(family, weight_type)


@pytest.mark.parametrize("family, weight_type", CASES)
@pytest.mark.parametrize("isa", instruction_sets.ALL)
def test_instruction_sets_change_nothing(plain, family, weight_type, isa):
    if not instruction_sets.native(isa):
        pytest.skip(f"this machine has no {isa}")
    with Server(model(family, weight_type), env={"CADANS_ISA": isa}) as server:
        assert observe(server) == plain(family, weight_type)


@pytest.mark.parametrize("family, weight_type", CASES)
@pytest.mark.parametrize("mates", [1, 4, 15])
def test_neighbours_change_nothing(plain, family, weight_type, mates):
    """Other requests of many lengths come and go while ours is computed; ours is asked three times."""
    with Server(model(family, weight_type), "--prefill-chunk", 32) as server, concurrent.futures.ThreadPoolExecutor(mates) as pool:
        done = []

        def neighbour(number):
            turn = 0
            while not done:
                server.post("/v1/completions", {"prompt": prompt(3 + 29 * number, seed=turn), "max_tokens": 5 + 3 * number, "temperature": 1})
                turn += 1
        noise = [pool.submit(neighbour, n) for n in range(mates)]
        try:
            seen = [observe(server) for _ in range(3)]
        finally:
            done.append(True)
        for future in noise:
            future.result(60)
    assert all(each == plain(family, weight_type) for each in seen)


def test_a_missing_instruction_set_is_an_error_not_another_one():
    from server import run
    result = run("serve", "--model", models.tiny("llama", "f32"), "--port", 0, env={"CADANS_ISA": "amx9"}, timeout=30)
    assert result.returncode in (1, 2) and "amx9" in result.stderr
