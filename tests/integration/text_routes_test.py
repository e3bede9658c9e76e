"""Tokenize, detokenize and the template, in llama-server's form and in vLLM's."""
import pytest
import tokenizers

import models

TEXTS = ["The river keeps its own time.", "", " ", "def f(x):\n\treturn x", "né à Zürich", "家族 👨‍👩‍👧‍👦 नमस्ते", "a\u0301 e\u0301", "12345 3.14", "\r\n\r\n\n"]


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_come_back_as_the_same_text(steady, text):
    tokens = steady.ok("/tokenize", {"content": text})["tokens"]
    assert steady.ok("/detokenize", {"tokens": tokens})["content"] == text


def test_tokens_are_those_of_the_vocabulary(steady):
    toy = tokenizers.Tokenizer.from_file(str(models.toy_vocabulary()))
    assert steady.ok("/tokenize", {"content": "The river keeps"})["tokens"] == toy.encode("The river keeps").ids


def test_pieces_ride_along_when_asked_for(steady):
    tokens = steady.ok("/tokenize", {"content": "The river", "with_pieces": True})["tokens"]
    assert [t["piece"] for t in tokens] == ["The", " river"] and all(isinstance(t["id"], int) for t in tokens)


def test_special_tokens_are_parsed_unless_told_not_to(steady):
    assert steady.ok("/tokenize", {"content": "<|im_end|>"})["tokens"] == [2]
    assert 2 not in steady.ok("/tokenize", {"content": "<|im_end|>", "parse_special": False})["tokens"]


def test_vllms_form_is_spoken_too(steady):
    answer = steady.ok("/tokenize", {"prompt": "The river", "add_special_tokens": False})
    assert answer["count"] == 2 == len(answer["tokens"]) and answer["max_model_len"] == 1024
    assert steady.ok("/detokenize", {"tokens": answer["tokens"]})["prompt"] == "The river"
    assert steady.get("/tokenizer_info")[0] == 200


def test_the_template_is_applied(steady):
    prompt = steady.ok("/apply-template", {"messages": [{"role": "user", "content": "hi"}]})["prompt"]
    assert prompt == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("messages", [
    [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    [{"role": "assistant", "content": "a"}], [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}],
    [{"role": "user", "content": [{"type": "text", "text": "part one"}, {"type": "text", "text": "part two"}]}]])
def test_unusual_conversations_have_one_outcome(steady, messages):
    status, answer = steady.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1})
    assert status in (200, 400), answer


def test_models_are_listed_in_both_dialects(steady):
    name = steady.get("/v1/models")[1]["data"][0]["id"]
    assert steady.get("/api/tags")[1]["models"][0]["name"] == name + ":latest" == steady.get("/api/ps")[1]["models"][0]["name"]
    assert steady.get("/api/version")[1]["version"]
    shown = steady.ok("/api/show", {"model": name})
    assert shown["details"]["family"] == "llama"
