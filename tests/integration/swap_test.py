"""Models that come when they are asked for and go when others need the memory: nobody's answer changes, nothing is left behind.

A fraction of prove/swaps.py runs here: 20 swaps of tiny models.
"""
import json
import os
import socket
import tempfile
import threading
import time

import pytest

import models
from prove import swaps
from server import HOST, Server, run

QUICK = ["--context", 512, "--kv-memory", "16M", "--policy", "static-chunk", "--history", "off"]


@pytest.fixture(scope="module")
def folder():
    """Two models that can be run and a file that is none."""
    with tempfile.TemporaryDirectory(prefix="cadans-models-") as name:
        for link, model in {"first": models.tiny("llama", "q8_0"), "second": models.tiny("qwen3", "f32", seed=2)}.items():
            os.symlink(model, f"{name}/{link}.gguf")
        with open(f"{name}/broken.gguf", "wb") as broken:
            broken.write(b"GGUF but no more")
        yield name


def on_first_use(folder, *flags, **more):
    """A server that knows the folder's models and has loaded none."""
    return Server([], "--models-dir", folder, *QUICK, *flags, **more)


def ask(model, **more):
    return {"model": model, "prompt": [7, 8, 9, 10], "max_tokens": 4, "temperature": 0, "ignore_eos": True, **more}


def states(server):
    return {model["name"]: model["state"] for model in server.get("/cadans/v1/machine")[1]["models"]}


def resident(server):
    return [model["name"] for model in server.get("/api/ps")[1]["models"]]


def until(holds, within=10):
    end = time.monotonic() + within
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def check_receipt(record):
    assert sum(record["receipt_ns"].values()) == record["total_ns"]
    assert record["receipt_ns"]["load"] <= record["load_ns"]


def test_a_model_is_known_by_name_and_loaded_when_somebody_asks(folder):
    with on_first_use(folder) as server:
        assert [m["id"] for m in server.get("/v1/models")[1]["data"]] == ["first", "second"]
        assert [m["name"] for m in server.get("/api/tags")[1]["models"]] == ["first:latest", "second:latest"]
        assert resident(server) == [] and states(server) == {"first": "on_disk", "second": "on_disk"}
        assert "broken.gguf is left out" in server.said()
        frames = server.stream("/v1/completions", ask("second", stream=True, stream_options={"include_progress": True, "include_usage": True}))
        progress = [f["cadans"]["progress"] for f in frames if f != "[DONE]" and "progress" in f.get("cadans", {})]
        assert progress[0]["phase"] == "load" and 0 <= progress[0]["percent"] <= 100
        cold = frames[-2]["cadans"]
        assert cold["cold"] and cold["receipt_ns"]["load"] > 0
        check_receipt(cold)
        assert resident(server) == ["second:latest"]
        warm = server.ok("/v1/completions", ask("second"))["cadans"]
        assert not warm["cold"] and warm["receipt_ns"]["load"] == 0 == warm["load_ns"]
        check_receipt(warm)
        text = server.get(f"/cadans/v1/requests/{cold['id']}")[1]
        assert text["cold"] and text["receipt_ns"] == cold["receipt_ns"]
        assert server.post("/v1/completions", ask("third"))[0] == 404


def test_keep_alive_as_ollama_says_it(folder):
    with on_first_use(folder) as server:
        loaded = server.ok("/api/generate", {"model": "first", "stream": False})
        assert loaded["done_reason"] == "load" and loaded["load_duration"] > 0
        [model] = server.get("/api/ps")[1]["models"]
        assert model["name"] == "first:latest" and model["size"] > 0
        in_five_minutes = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() + 295)), time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() + 300))
        assert model["expires_at"].startswith(in_five_minutes)
        assert server.ok("/api/generate", {"model": "first", "stream": False})["load_duration"] == 0
        server.ok("/api/generate", {"model": "first", "prompt": "a", "stream": False, "keep_alive": -1, "options": {"num_predict": 1}})
        assert server.get("/api/ps")[1]["models"][0]["expires_at"] > "2300"
        server.ok("/api/chat", {"model": "first", "messages": [], "keep_alive": "200ms", "stream": False})
        assert until(lambda: resident(server) == [])
        server.ok("/api/generate", {"model": "first", "prompt": "a", "stream": False, "keep_alive": "1h", "options": {"num_predict": 1}})
        gone = server.ok("/api/generate", {"model": "first", "keep_alive": 0, "stream": False})
        assert gone["done_reason"] == "unload" and until(lambda: resident(server) == [])
        server.ok("/v1/completions", ask("second", keep_alive=0))
        assert until(lambda: states(server)["second"] == "on_disk")
        for wrong in ("soon", True, [5]):
            status, answer = server.post("/api/generate", {"model": "first", "prompt": "a", "keep_alive": wrong})
            assert status == 400 and "keep_alive" in answer["error"], (wrong, answer)


def test_the_default_can_be_set_and_a_model_named_at_the_start_stays(folder):
    with on_first_use(folder, "--keep-alive", "100ms") as server:
        server.ok("/v1/completions", ask("first"))
        assert until(lambda: resident(server) == [])
    with Server(models.tiny("llama", "q8_0"), *QUICK) as server:
        assert server.get("/api/ps")[1]["models"][0]["expires_at"] > "2300"
        assert not server.ok("/v1/completions", {"prompt": [7], "max_tokens": 1})["cadans"]["cold"]


def test_what_cannot_fit_is_refused_with_the_sums(folder):
    with on_first_use(folder) as server:
        sizes = {m["name"]: m["memory_bytes"] for m in server.get("/cadans/v1/machine")[1]["models"]}
    small, large = sorted(sizes, key=sizes.get)
    with on_first_use(folder, "--model-memory", sizes[small]) as server:
        server.ok("/v1/completions", ask(small))
        status, answer = server.post("/v1/completions", ask(large))
        assert status == 503 and answer["error"]["code"] == "out_of_memory" and answer["error"]["message"].count("iB") == 2, answer
        status, answer = server.post("/api/chat", {"model": large, "messages": []})
        assert status == 503 and answer["error"].count("iB") == 2
        for path, document in (("/v1/completions", ask(large)), ("/api/chat", {"model": large, "messages": []})):
            status, headers, _ = server.request("POST", path, json.dumps(document).encode(), {"Content-Type": "application/json"})
            assert status == 503 and "Retry-After" not in headers, "it will not fit later either"
        assert resident(server) == [small + ":latest"], "nobody goes for one who cannot come"
    result = run("serve", "--model", f"{folder}/{large}.gguf", "--model-memory", sizes[small], "--port", 0, *QUICK)
    assert result.returncode == 1 and "--model-memory" in result.stderr and result.stderr.count("iB") == 2


def test_models_named_at_the_start_are_loaded_as_far_as_they_fit(folder):
    names = [f"{folder}/first.gguf", f"{folder}/second.gguf"]
    with on_first_use(folder) as server:
        sizes = {m["name"]: m["memory_bytes"] for m in server.get("/cadans/v1/machine")[1]["models"]}
    with Server(names, *QUICK) as server:
        assert states(server) == {"first": "resident", "second": "resident"}
    with Server(names, *QUICK, "--model-memory", max(sizes.values())) as server:
        assert states(server) == {"first": "resident", "second": "on_disk"}
        assert server.ok("/v1/completions", ask("second"))["cadans"]["cold"]
        assert states(server) == {"first": "on_disk", "second": "resident"}


def test_a_file_that_was_changed_is_not_served_under_its_old_name():
    with tempfile.TemporaryDirectory() as name:
        path = f"{name}/changing.gguf"
        with open(path, "wb") as copy:
            copy.write(models.tiny("llama", "q8_0").read_bytes())
        with on_first_use(name) as server:
            server.ok("/v1/completions", ask("changing", keep_alive=0))
            assert until(lambda: resident(server) == [])
            with open(path, "wb") as copy:
                copy.write(models.tiny("llama", "q8_0", seed=3).read_bytes())
            status, answer = server.post("/v1/completions", ask("changing"))
            assert status == 503 and "was changed" in answer["error"]["message"], answer
            assert server.alive()


def test_who_comes_during_a_load_joins_it_and_who_leaves_ends_it(folder):
    """A model is measured when it first comes under the policy `cadence`, which makes a load of seconds."""
    flags = ["--context", 512, "--kv-memory", "16M", "--history", "off"]
    with tempfile.TemporaryDirectory() as state, Server([], "--models-dir", folder, *flags, env={"XDG_STATE_HOME": state}) as server:
        body = json.dumps(ask("first", stream=True)).encode()
        with socket.create_connection((HOST, server.port), 30) as line:
            line.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            assert until(lambda: states(server)["first"] == "loading")
            [request] = server.get("/cadans/v1/now")[1]["requests"]
            assert request["phase"] == "load" and request["cold"]
        assert until(lambda: states(server)["first"] == "on_disk", within=2), "nobody waits for it any more"
        answers, percents = [], {0: [], 1: [], 2: []}

        def asker(number, stream):
            if not stream:
                return answers.append(server.ok("/v1/completions", ask("first"))["cadans"])
            for frame in server.frames("/v1/completions", ask("first", stream=True, stream_options={"include_progress": True, "include_usage": True})):
                if frame != "[DONE]" and frame.get("cadans", {}).get("progress", {}).get("phase") == "load":
                    percents[number].append(frame["cadans"]["progress"]["percent"])
                if frame != "[DONE]" and "receipt_ns" in frame.get("cadans", {}):
                    answers.append(frame["cadans"])

        threads = [threading.Thread(target=asker, args=(number, number != 1)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 3 and all(a["cold"] and a["receipt_ns"]["load"] > 0 for a in answers)
        for answer in answers:
            check_receipt(answer)
        assert percents[0] and percents[2] and all(each == sorted(each) for each in percents.values()), percents
        machine = {m["name"]: m for m in server.get("/cadans/v1/machine")[1]["models"]}
        assert machine["first"]["loads"] == 1 and machine["first"]["last_load_ns"] > 0
        assert machine["first"]["cost"] is not None, "it was measured"
        assert server.ok("/v1/completions", ask("first", keep_alive=0))["cadans"]["cold"] is False
        begin = time.monotonic()
        assert server.ok("/v1/completions", ask("first"))["cadans"]["cold"]
        assert time.monotonic() - begin < 2, "it is measured once"


def test_a_record_of_a_server_that_swaps_replays_exactly(folder):
    with tempfile.TemporaryDirectory() as name:
        tape = f"{name}/tape"
        with on_first_use(folder, "--record", tape) as server:
            for _ in range(3):
                for model in ("first", "second"):
                    server.ok("/v1/completions", ask(model, prompt=[7] * 100, keep_alive=0))
                    assert until(lambda: resident(server) == [])
        replayed = run("simulate", "--replay", tape, "--json")
        assert replayed.returncode == 0, replayed.stderr
        [record] = json.loads(replayed.stdout)
        assert record["requests"] == 6 and record["plans_matched"] == record["plans"] > 6, record


def test_twenty_swaps_under_load_change_no_answer_and_leave_nothing(folder):
    """Memory for one of two models; four clients at once."""
    found = swaps.swap(folder, {"first": models.tiny("llama", "q8_0"), "second": models.tiny("qwen3", "f32", seed=2)}, count=20, clients=4,
                       flags=QUICK, prompt=lambda dice: [dice.randrange(3, 480) for _ in range(dice.choice([3, 40, 90]))])
    assert not found.problems, found.problems[:5]
    assert found.loads >= 20 and found.answers >= 20
    assert found.grown_bytes < 8 << 20, found.grown_bytes
