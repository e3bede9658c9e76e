"""Vectors of texts: against the fp32 reference, over both dialects, by the official clients; the same bits in any company."""
import base64
import concurrent.futures
import contextlib
import time

import numpy as np
import pytest

import models
from reference.forward import Reference, rms_norm
from server import Server

TEXTS = ["The river keeps its own time.", "sacks", "De molenaar weet hoe laat het is zonder klok. " * 12]
POOLINGS = {None: "mean", 0: "mean", 1: "mean", 2: "first", 3: "last"}


def reference_vector(reference, ids, pooling):
    """Normalised, from the rows behind the last norm."""
    reference.clear()
    rows = rms_norm(reference._rows(ids), reference.weights["output_norm.weight"], reference.shape.eps)
    vector = {"mean": rows.mean(axis=0), "first": rows[0], "last": rows[-1]}[pooling]
    return vector / np.linalg.norm(vector)


def vectors(server, texts, **more):
    answer = server.ok("/v1/embeddings", {"input": texts, **more})
    assert [d["index"] for d in answer["data"]] == list(range(len(answer["data"])))
    return np.array([d["embedding"] for d in answer["data"]], np.float32), answer


@pytest.fixture(scope="module")
def model():
    return models.tiny("llama3", "f32", untied=True)


@pytest.fixture(scope="module")
def server(model):
    with Server(model, "--context", 512) as started:
        yield started


@pytest.mark.parametrize("family, pooling", [(f, None) for f in models.FAMILIES] + [("llama", p) for p in POOLINGS if p is not None])
def test_the_reference_has_the_same_vectors(family, pooling):
    path = models.tiny(family, "f32") if pooling is None else models.pooled(models.tiny(family, "f32"), pooling)
    reference = Reference(path)
    with Server(path, "--context", 512) as server:
        got, answer = vectors(server, TEXTS)
        ids = [server.ok("/tokenize", {"content": text, "add_special": True, "parse_special": False})["tokens"] for text in TEXTS]
        by_ids, _ = vectors(server, ids)
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] == sum(map(len, ids))
    assert np.array_equal(got, by_ids)
    for text_ids, vector in zip(ids, got):
        assert abs(np.linalg.norm(vector) - 1) < 1e-6
        assert np.abs(vector - reference_vector(reference, text_ids, POOLINGS[pooling])).max() < 2e-3
    assert float(got[0] @ got[1]) < 0.999, "texts are told apart"


def test_a_file_that_ranks_gives_no_vectors():
    with Server(models.pooled(models.tiny("llama", "f32"), 4)) as server:
        status, answer = server.post("/v1/embeddings", {"input": "a"})
    assert status == 400 and answer["error"]["param"] == "model" and "pooling_type" in answer["error"]["message"]


def test_the_same_bits_alone_in_company_in_pieces_and_again(model, server):
    alone = [vectors(server, [text])[0][0] for text in TEXTS]
    together, _ = vectors(server, TEXTS)
    assert np.array_equal(np.stack(alone), together)
    chat = {"messages": [{"role": "user", "content": "The river"}], "max_tokens": 40, "ignore_eos": True}
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        talks = [pool.submit(server.ok, "/v1/chat/completions", chat) for _ in range(4)]
        found = list(pool.map(lambda text: vectors(server, [text])[0][0], TEXTS * 4))
        assert all(talk.result()["choices"] for talk in talks)
    assert np.array_equal(np.stack(alone * 4), np.stack(found))
    with Server(model, "--context", 512, "--policy", "static-chunk", "--gap-ms", 1, "--threads", 1) as other:
        assert np.array_equal(np.stack(alone), vectors(other, TEXTS)[0])


def test_ollamas_routes_normalise_as_ollama_does(server):
    want, _ = vectors(server, TEXTS)
    answer = server.ok("/api/embed", {"model": "default", "input": TEXTS})
    assert np.array_equal(np.array(answer["embeddings"], np.float32), want)
    assert answer["prompt_eval_count"] > 10 and answer["total_duration"] > 0
    [one] = server.ok("/api/embed", {"input": TEXTS[0]})["embeddings"]
    assert np.array_equal(np.array(one, np.float32), want[0])
    raw = np.array(server.ok("/api/embeddings", {"prompt": TEXTS[0]})["embedding"], np.float32)
    assert np.linalg.norm(raw) > 2, "the older route gives them as they come"
    assert np.allclose(raw / np.linalg.norm(raw), want[0], atol=1e-6)
    assert server.ok("/api/embed", {"input": ""})["embeddings"] == []


def test_base64_holds_the_same_numbers(server):
    want, _ = vectors(server, TEXTS)
    answer = server.ok("/v1/embeddings", {"input": TEXTS, "encoding_format": "base64"})
    got = np.stack([np.frombuffer(base64.b64decode(d["embedding"]), "<f4") for d in answer["data"]])
    assert np.array_equal(got, want)


@pytest.mark.parametrize("path, body, place", [
    ("/v1/embeddings", {}, "input"), ("/v1/embeddings", {"input": []}, "input"), ("/v1/embeddings", {"input": 5}, "input"),
    ("/v1/embeddings", {"input": ["a", 5]}, "input[1]"), ("/v1/embeddings", {"input": [[1], ["x"]]}, "input[1][0]"),
    ("/v1/embeddings", {"input": [10 ** 9]}, "input[0]"), ("/v1/embeddings", {"input": "a", "encoding_format": "int8"}, "encoding_format"),
    ("/v1/embeddings", {"input": "a", "dimensions": 3}, "dimensions"), ("/v1/embeddings", {"input": "a", "truncate": True}, "truncate"),
    ("/v1/embeddings", {"input": "sack " * 3000}, "input"), ("/v1/embeddings", {"input": ["a"] * 3000}, "input")])
def test_what_cannot_be_kept_is_refused_by_place(server, path, body, place):
    status, answer = server.post(path, body)
    assert status == 400 and answer["error"]["param"] == place, answer


def test_many_inputs_come_one_after_another_and_leave_room_for_others(model):
    """Six places: a call holds one of them, whatever the number of its inputs."""
    texts = [f"{TEXTS[0]} {n}" for n in range(60)]
    with Server(model, "--context", 512, "--queue", 4, "--max-running", 2) as small:
        alone = np.stack([vectors(small, [text])[0][0] for text in texts[:4] + texts[-4:]])
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(vectors, small, texts, cache_prompt=False) for _ in range(3)]
            chat = small.ok("/v1/chat/completions", {"messages": [{"role": "user", "content": "The river"}], "max_tokens": 2})
            assert chat["choices"] and not all(call.done() for call in calls), "others are let in meanwhile"
            for call in calls:
                got, answer = call.result()
                assert len(got) == 60 and np.array_equal(np.concatenate([got[:4], got[-4:]]), alone)
                assert sum(answer["cadans"]["receipt_ns"].values()) == answer["cadans"]["total_ns"]
        assert small.post("/v1/completions", {"prompt": ["a"] * 7, "max_tokens": 1})[0] == 400, "answers need a place each"


def test_who_leaves_in_the_middle_of_many_inputs_leaves_nothing_behind(model):
    with Server(model, "--context", 512, "--queue", 4, "--max-running", 2) as small:
        for _ in range(8):   # more than there are places
            with contextlib.suppress(TimeoutError):
                small.post("/v1/embeddings", {"input": [TEXTS[2]] * 600}, timeout=0.3)
        deadline = time.monotonic() + 20
        while small.get("/cadans/v1/now")[1]["requests"] and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(r["phase"] != "writing" for r in small.get("/cadans/v1/now")[1]["requests"])
        assert small.ok("/v1/completions", {"prompt": ["a"] * 6, "max_tokens": 1})["choices"], "all places are back"


def test_dimensions_that_are_the_models_own_are_taken(server):
    want, _ = vectors(server, ["a"])
    got, _ = vectors(server, ["a"], dimensions=want.shape[1])
    assert np.array_equal(got, want)


def test_it_is_counted_and_kept_like_other_requests(server):
    answer = server.ok("/v1/embeddings", {"input": TEXTS[0], "user": "me"})
    record = answer["cadans"]
    assert record["route"] == "embeddings" and record["client"] == "me" and record["outcome"] == "stop"
    assert sum(record["receipt_ns"].values()) == record["total_ns"] and record["receipt_ns"]["own_prefill"] > 0
    status, kept = server.get(f"/cadans/v1/requests/{record['id']}")
    assert status == 200 and kept["id"] == record["id"]


@pytest.mark.slow
def test_the_official_clients_read_them(server):
    import ollama
    import openai
    want, _ = vectors(server, TEXTS)
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
        for format in ("float", "base64", None):
            more = {} if format is None else {"encoding_format": format}
            answer = client.embeddings.create(model="default", input=TEXTS, **more)
            got = [np.frombuffer(base64.b64decode(d.embedding), "<f4") if isinstance(d.embedding, str) else d.embedding for d in answer.data]
            assert np.array_equal(np.array(got, np.float32), want) and answer.usage.prompt_tokens > 10
    client = ollama.Client(host=server.url)
    assert np.array_equal(np.array(client.embed(model="default", input=TEXTS).embeddings, np.float32), want)
    assert len(client.embeddings(model="default", prompt=TEXTS[0]).embedding) == want.shape[1]
