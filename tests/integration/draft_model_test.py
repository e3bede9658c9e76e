"""A draft model changes no answer, is counted, is left alone where it does not pay, and must have the words of whom it drafts for."""
import concurrent.futures
import json
import random
import subprocess
import sys

import models
import pytest
from integration.speculation_test import BODIES, ask, counts, ids
from server import Server, run
from tools.deepen_gguf import deepen

TIMES = 10


@pytest.fixture(scope="module")
def small():
    return models.tiny("llama3", "f32", mix="0.3")


@pytest.fixture(scope="module")
def large(small, tmp_path_factory):
    """Ten times as deep, with the same logits."""
    path = tmp_path_factory.mktemp("deep") / "deep.gguf"
    deepen(small, path, TIMES)
    return path


@pytest.fixture(scope="module")
def server(small, large):
    with Server(large, "--draft-model", small, "--context", 2048) as started:
        yield started


def modelled(answer):
    """Guesses of the draft model, after checking that they are among all."""
    drafted, accepted = counts(answer)
    told = answer["cadans"]["speculation"]["model"]
    assert told["accepted"] <= told["drafted"] <= drafted and told["accepted"] <= accepted
    assert (told["drafting_ns"] > 0) or told["drafted"] == 0
    receipt = answer["cadans"]["receipt_ns"]
    assert sum(receipt.values()) == answer["cadans"]["total_ns"]
    return told["drafted"], told["accepted"]


def test_answers_are_those_without_guesses(server):
    drafted = accepted = 0
    for body in BODIES:
        plain = ask(server, body, "off")
        assert modelled(plain) == (0, 0)
        for drafter in ["model", "auto"]:
            guessed = ask(server, body, drafter)
            assert guessed["choices"] == plain["choices"], (drafter, body)
            some = modelled(guessed)
            drafted, accepted = drafted + some[0], accepted + some[1]
    assert accepted > 100
    assert accepted > 0.9 * drafted, "equal logits and equal noise draw equal tokens, but for those behind an end"


def test_answers_are_the_same_in_company(server):
    jobs = [(body, drafter) for body in BODIES for drafter in ["off", "model", "auto"]]
    plain = [ask(server, body, "off")["choices"] for body in BODIES]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda job: ask(server, *job), jobs))
    for n, answer in enumerate(answers):
        assert answer["choices"] == plain[n // 3], jobs[n]


def test_a_form_is_kept_to_the_byte(server):
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": ["one", "two"]}, "minItems": 8, "maxItems": 8}}, "required": ["a"]}
    for settings in ({"temperature": 0}, {"temperature": 1, "seed": 3}):
        body = {"prompt": "a list: ", "json_schema": schema, "max_tokens": 300, "ignore_eos": False, **settings}
        answers = [ask(server, body, each) for each in ["off", "model", "auto"]]
        assert all(answer["choices"] == answers[0]["choices"] for answer in answers)


def test_nobody_can_ask_it_by_name(server, small):
    assert [each["id"] for each in server.ok("/v1/models")["data"]] == ["deep"]
    status, _ = server.post("/v1/completions", {"model": small.stem, "prompt": "a", "max_tokens": 1})
    assert status == 404


def test_the_same_file_as_its_own_draft_is_left_alone_and_the_record_says_why(small):
    with Server(small, "--draft-model", small, "--context", 2048) as server:
        answer = ask(server, {"prompt": ids(1, 60), "temperature": 0, "max_tokens": 100}, "model")
        told = answer["cadans"]["speculation"]
        assert told["drafted"] <= 20 and told["held"]["slow"] > 60, told
        said = server.ok(f"/cadans/v1/requests/{answer['cadans']['id']}/explanation?language=en")["sentences"]
        assert any("longer than they can save" in each["text"] for each in said), said


def test_a_draft_that_is_seldom_right_changes_nothing(large, small):
    other = models.tiny("llama3", "f32", mix="1", seed=7)
    with Server(large, "--draft-model", other, "--context", 2048) as server:
        for body in BODIES[:6]:
            plain = ask(server, body, "off")
            assert ask(server, body, "model")["choices"] == plain["choices"]


def test_another_vocabulary_is_refused_with_what_differs(small, tmp_path):
    other = tmp_path / "other.gguf"
    subprocess.run([sys.executable, str(models.MAKER), "tiny", "--vocab", str(models.toy_vocabulary()), "--pre", "llama-bpe", "--vocab-size", "544",
                    "--type", "f32", "-o", str(other)], check=True, stdout=subprocess.DEVNULL)
    done = run("serve", "--model", small, "--draft-model", other, "--port", 0, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "544" in done.stderr and "512" in done.stderr and "--draft-model" in done.stderr
    done = run("serve", "--model", small, "--draft-model", tmp_path / "nowhere.gguf", "--port", 0, timeout=60)
    assert done.returncode == 1 and "nowhere.gguf" in done.stderr


def test_without_a_draft_model_nothing_is_drafted(small):
    with Server(small, "--context", 1024) as server:
        assert counts(ask(server, BODIES[0], "model")) == (0, 0)
    done = run("serve", "--model", small, "--speculate", "model", "--port", 0, timeout=30)
    assert done.returncode == 2 and "--draft-model" in done.stderr


def test_a_record_is_played_again_exactly(small, large, tmp_path):
    tape = tmp_path / "tape"
    draw = random.Random(5)
    with Server(large, "--draft-model", small, "--context", 1024, "--kv-memory", "24M", "--record", tape) as server:
        jobs = [({"prompt": ids(n, 30 + 9 * n), "temperature": n % 2 / 2, "seed": n}, draw.choice(["auto", "model", "off", "suffix"])) for n in range(24)]
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda job: ask(server, *job), jobs))
    assert sum(modelled(answer)[1] for answer in answers) > 50
    done = run("simulate", "--replay", tape, "--json")
    assert done.returncode == 0, done.stderr
    replay = json.loads(done.stdout)
    replay = replay[0] if isinstance(replay, list) else replay
    assert replay["plans"] == replay["plans_matched"] > 50
    assert run("simulate", "--trace", tape, "--json").returncode == 0
