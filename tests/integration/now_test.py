"""What is served now, what was served, and why it took so long: the calls behind the page, `explain` and `top`."""
import http.client
import json
import threading
import time

import pytest

import models
from server import HOST, Server, run

SPENT = {"load", "queue", "own_prefill", "own_decode", "others_prefill", "others_decode", "preempted", "other"}
LONG = {"prompt": [5] * 900, "max_tokens": 100, "ignore_eos": True, "temperature": 0, "stream": True}


@pytest.fixture(scope="module")
def server():
    with Server(models.tiny("llama", "f32"), "--context", "1024", "--max-running", "2") as running:
        yield running


def events(server, path, seconds):
    """(event, document) pairs of a stream that is read for a while."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=10)
    connection.request("GET", path)
    reply = connection.getresponse()
    assert reply.status == 200 and reply.headers["Content-Type"] == "text/event-stream"
    name, deadline = None, time.monotonic() + seconds
    for line in reply:
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield name, json.loads(line[6:])
        if time.monotonic() > deadline:
            break
    connection.close()


def busy(server, clients=4, rounds=6, body=LONG):
    """Clients that ask for long answers, until all have theirs."""
    def ask():
        for _ in range(rounds):
            server.stream("/v1/completions", body)
    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    return threads


def test_an_idle_server_says_so(server):
    time.sleep(3.2)
    status, now = server.get("/cadans/v1/now")
    assert status == 200 and now["ready"] and now["running"] == now["waiting"] == 0 and now["requests"] == []
    assert len(now["seconds"]) == 60 and now["limits"]["operations_per_second"] > 1e9 and now["limits"]["bytes_per_second"] > 1e8
    assert abs(now["unix_ms"] / 1e3 - time.time()) < 60


def test_lanes_grow_and_sum_and_everybody_ends(server):
    threads = busy(server, rounds=24, body={**LONG, "max_tokens": 500})   # for seconds, so that glances meet it
    seen, phases, steps, last_step = {}, set(), 0, 0
    for name, data in events(server, "/cadans/v1/now/stream", 2.5):
        if name == "steps":
            ids = [step["id"] for step in data["steps"]]
            assert ids == sorted(ids) and ids[0] > last_step
            last_step, steps = ids[-1], steps + len(ids) + data["skipped"]
            for step in data["steps"]:
                assert step["begin_ns"] < step["end_ns"]
                assert sum(share["rows"] for share in step["shares"]) <= sum(step["rows"].values())
            continue
        for request in data["requests"]:
            assert set(request["spent_ns"]) == SPENT and sum(request["spent_ns"].values()) == request["elapsed_ns"]
            before = seen.get(request["id"])
            if before:
                assert all(request["spent_ns"][part] >= before["spent_ns"][part] for part in SPENT)
            seen[request["id"]] = request
            phases.add(request["phase"])
            assert request["computed_tokens"] + request["cached_tokens"] <= request["prompt_tokens"] == 900
    for thread in threads:
        thread.join()
    assert steps > 0 and len(seen) >= 4 and "decode" in phases
    assert any(request["spent_ns"]["queue"] > 0 for request in seen.values())
    held = [r for r in seen.values() if r["held_up_by"]]
    assert held and all(h["id"] != r["id"] and h["ns"] > 0 for r in held for h in r["held_up_by"])
    status, now = server.get("/cadans/v1/now")
    assert now["running"] == 0 and all(r["ended"] and r["outcome"] == "length" for r in now["requests"])
    time.sleep(1.6)
    seconds = server.get("/cadans/v1/now")[1]["seconds"]
    assert any(s["busy"] > 0.2 and s["output_tokens"] > 0 and 0 < s["bandwidth"] for s in seconds)


def test_the_tokens_of_all_seconds_are_those_of_the_metrics(server):
    time.sleep(1.6)
    before = server.metrics()
    began = server.get("/cadans/v1/now")[1]["at_ns"]
    for thread in busy(server, clients=2, rounds=2):
        thread.join()
    time.sleep(2.6)
    seconds = [s for s in server.get("/cadans/v1/now")[1]["seconds"] if s["at_ns"] + 10**9 > began]
    after = server.metrics()
    assert sum(s["output_tokens"] for s in seconds) == after["cadans_output_tokens_total"] - before["cadans_output_tokens_total"] == 400


def test_watchers_are_limited_and_end_with_the_server():
    with Server(models.tiny("llama", "f32")) as own:
        lines = []
        for _ in range(32):
            connection = http.client.HTTPConnection(HOST, own.port, timeout=10)
            connection.request("GET", "/cadans/v1/now/stream")
            lines.append((connection, connection.getresponse()))
            assert lines[-1][1].status == 200
        assert own.get("/cadans/v1/now/stream")[0] == 429
        lines.pop()[0].close()
        deadline = time.monotonic() + 5
        while own.request("HEAD", "/cadans/v1/now/stream")[0] != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        began = time.monotonic()
        assert own.stop() == 0 and time.monotonic() - began < 5
        assert all(reply.read() is not None for _, reply in lines)


def test_history_agrees_with_the_answers(tmp_path):
    env = {"XDG_STATE_HOME": str(tmp_path)}
    with Server(models.tiny("llama", "f32"), env=env) as own:
        answers = [own.ok("/v1/completions", {"prompt": [9, 8, 7] * n, "max_tokens": n, "ignore_eos": True})["cadans"] for n in (2, 40, 90)]
        list(own.frames("/v1/completions", {**LONG, "prompt": [4] * 300, "user": "anna"}))
        first = own.get("/cadans/v1/history?buckets=5&order=slowest&limit=2")[1]
    with Server(models.tiny("llama", "f32"), env=env) as own:
        history = own.get("/cadans/v1/history?buckets=5&order=slowest&limit=2")[1]
        assert history["store"] == "disk" and history["count"] == first["count"] == 4
        assert len(history["buckets"]) == 5 and sum(b["count"] for b in history["buckets"]) == 4
        assert history["figures"]["warm"]["count"] == 4 and history["figures"]["cold"]["count"] == 0 and history["figures"]["cold"]["ttft_ns"] is None
        assert history["figures"]["warm"]["total_ns"]["max"] >= max(a["total_ns"] for a in answers)
        assert [r["id"] for r in history["records"]] == [r["id"] for r in first["records"]] and len(history["records"]) == 2
        assert history["savings"]["computed_tokens"] + history["savings"]["cached_tokens"] == sum(a["prompt_tokens"] for a in answers) + 300
        assert {(c["from_tokens"], c["to_tokens"]) for c in history["lengths"]} == {(4, 7), (64, 127), (256, 511)}
        newest = own.get("/cadans/v1/requests?limit=1")[1]["records"][0]
        assert newest["client"] == "anna" and newest["stream"] and newest["output_tokens"] == 100
        assert own.get("/cadans/v1/history?model=nobody")[1]["count"] == 0
        for bad in ("from=x", "buckets=0", "order=best", "limit=1001", "from=5&to=4"):
            assert own.get("/cadans/v1/history?" + bad)[0] == 400, bad


def test_the_machine_shows_its_limits_models_and_settings(server):
    machine = server.get("/cadans/v1/machine")[1]
    assert machine["threads"] >= 1 and machine["isa"] and machine["limits"]["bytes_per_second"] > 1e8
    model = machine["models"][0]
    assert model["work"]["operations_per_row"] > 0 and model["work"]["weight_bytes"] > 0 and model["cost"]["step_ps"] >= 0
    assert machine["settings"]["max_running"] == 2 and machine["settings"]["api_key"] is False
    assert machine["settings"]["history"]["path"].endswith("history.db") and machine["classes"] == ["interactive", "normal", "background"]


@pytest.mark.parametrize("language, first", [("en", "First word after"), ("nl", "Eerste woord na"), ("de", "Erstes Wort nach")])
def test_an_answer_is_explained_in_three_languages(server, language, first):
    answer = [f for f in server.frames("/v1/completions", {**LONG, "max_tokens": 40}) if f != "[DONE]"][-1]["cadans"]
    assert sum(answer["first_word_ns"].values()) == answer["ttft_ns"]
    status, told = server.get(f"/cadans/v1/requests/{answer['id']}/explanation?language={language}")
    assert status == 200 and told["language"] == language and told["sentences"][0]["text"].startswith(first)
    cause = max(answer["receipt_ns"], key=answer["receipt_ns"].get)
    assert told["longest_wait"] == {"cause": cause, "ns": answer["receipt_ns"][cause], "share": answer["receipt_ns"][cause] / answer["total_ns"]}
    assert told["text"] == " ".join(s["text"] for s in told["sentences"])
    by_header = server.get(f"/cadans/v1/requests/{answer['id']}/explanation", {"Accept-Language": f"xx, {language};q=0.5"})[1]
    assert by_header == told
    assert server.get(f"/cadans/v1/requests/{answer['id']}/explanation?language=fr")[0] == 400
    assert server.get("/cadans/v1/requests/nobody/explanation")[0] == 404
    said = run("explain", answer["id"], "--url", server.url, "--language", language)
    assert said.returncode == 0 and said.stdout.splitlines() == [answer["id"]] + [s["text"] for s in told["sentences"]]
    assert json.loads(run("explain", "--url", server.url, "--language", language, "--json").stdout) == told


def test_explain_says_what_is_wrong(server):
    nobody = run("explain", "--url", "http://127.0.0.1:1")
    assert nobody.returncode == 1 and "no server answers at http://127.0.0.1:1" in nobody.stderr and nobody.stdout == ""
    unknown = run("explain", "nobody", "--url", server.url)
    assert unknown.returncode == 1 and "no finished request" in unknown.stderr
    assert run("explain", "--language", "fr").returncode == 2
