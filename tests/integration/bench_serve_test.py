"""cadans bench serve: clients with stop-watches, on one server and on two, in both dialects."""
import json
import xml.etree.ElementTree

import pytest

import models
from server import Server, run


@pytest.fixture(scope="module")
def server():
    with Server(models.tiny("llama", "f32"), "--context", "1024") as running:
        yield running


def bench(*arguments):
    result = run("bench", "serve", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("dialect", ["openai", "ollama"])
def test_clients_and_server_count_the_same(server, dialect):
    before = server.metrics()
    record, = bench(server.url, "--load", "poisson:rate=40,requests=30,prompt=60,output=20,spread=0.3", "--dialect", dialect)
    assert record["requests"] == record["finished"] == 30 and record["failed"] == record["refused"] == 0 and record["errors"] == {}
    assert record["dialect"] == dialect
    after = server.metrics()
    grown = {name: after[name] - before[name] for name in after if name.startswith(("cadans_output", "cadans_prompt_tokens", "cadans_requests_total"))}
    probes = 2   # that learn how many tokens a word is; each is an answer of one token
    assert grown["cadans_output_tokens_total"] == record["output_tokens"] + probes
    ended = grown['cadans_requests_total{outcome="length"}'] + grown['cadans_requests_total{outcome="stop"}']
    assert ended == 30 + probes
    assert 30 * 40 < record["prompt_tokens"] < 30 * 120     # the template's own tokens come on top
    assert 0 < record["ttft_ms"]["p50"] <= record["ttft_ms"]["p99"] <= record["ttft_ms"]["max"]
    assert record["prompt_ms"]["p50"] > 0 and record["late_ms"]["p50"] >= 0


def test_two_servers_stand_side_by_side_and_are_drawn(server, tmp_path):
    picture = tmp_path / "waits.svg"
    with Server(models.tiny("qwen3", "q8_0"), "--context", "1024") as other:
        one, two = bench(server.url, other.url + "/v1", "--load", "gamma:rate=30,requests=12,prompt=40,output=8", "--plot", picture)
        assert one["url"] == server.url and two["finished"] == one["finished"] == 12 and one["model"] != two["model"]
        table = run("bench", "serve", server.url, other.url, "--load", "poisson:rate=50,requests=3,prompt=9,output=4").stdout
    assert f":{server.port}" in table and f":{other.port}" in table and "first word, 99 % within" in table
    xml.etree.ElementTree.parse(picture)


def test_rate_duration_and_cuts_are_kept(server):
    record, = bench(server.url, "--load", "poisson:rate=1,requests=500", "--rate", 50, "--duration", 0.5, "--most-prompt", 30, "--most-output", 3)
    assert 10 <= record["requests"] <= 45 and record["output_tokens"] <= 3 * record["requests"]
    assert record["prompt_tokens"] < 60 * record["requests"]


def test_the_open_loop_does_not_wait_for_answers():
    """More than the server takes: those are refused while the others are answered."""
    with Server(models.tiny("llama", "f32"), "--context", "1024", "--queue", "0", "--max-running", "1") as small:
        record, = bench(small.url, "--load", "poisson:rate=400,requests=40,prompt=400,output=200,spread=0")
        assert record["refused"] > 0 and record["finished"] > 0 and record["finished"] + record["refused"] == 40


def test_what_is_wrong_is_said(server):
    nobody = run("bench", "serve", "http://127.0.0.1:1")
    assert nobody.returncode == 1 and "no server answers" in nobody.stderr
    assert run("bench", "serve").returncode == 2
    assert "only http" in run("bench", "serve", "https://127.0.0.1").stderr
    assert "not known" in run("bench", "serve", server.url, "--load", "flood").stderr
    unknown = run("bench", "serve", server.url, "--model", "nobody")
    assert unknown.returncode == 1 and "nobody" in unknown.stderr
