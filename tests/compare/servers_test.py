"""Servers as peers: what is asked of them, what counts, and what is refused."""
import io
import json
import subprocess
import sys
import time

import pytest

import models
from compare import servers
from compare.benches import Failed
from compare.rows import ROWS


class Said(io.BytesIO):
    def close(self):
        pass


class Fake:
    """A server that reads `new` tokens of whatever continues what it kept, at 100 tokens/s, and writes one in 5 ms."""

    def __init__(self, new=512, words=10000):
        self.new, self.count, self.asked = new, words, []

    def open(self, path, body):
        self.asked.append((path, body))
        return Said(json.dumps({"timings": {"prompt_n": self.new, "prompt_ms": self.new * 10.0}}).encode()), io.BytesIO()

    def tokens(self, count, seed):
        return [seed + n for n in range(count)]

    def words(self, prompt, most):
        for _ in range(self.count):
            time.sleep(0.005)
            yield time.perf_counter()


def test_a_prompt_behind_another_is_what_is_new_of_it():
    side, fake = servers.ServerSide("server"), Fake()
    value, raw = side.behind(fake, ROWS["prefill-8k"])
    first, second = (body["prompt"] for _, body in fake.asked)
    assert value == pytest.approx(100) and raw["prompt_n"] == 512
    assert len(first) == 8192 and len(second) == 8192 + 512 and second[:8192] == first and fake.asked[1][1]["cache_prompt"]


def test_a_server_that_reads_all_of_it_anew_is_not_compared():
    with pytest.raises(Failed, match="where 512 are new"):
        servers.ServerSide("server").behind(Fake(new=8704), ROWS["prefill-8k"])


def test_streams_count_while_all_of_them_write(monkeypatch):
    monkeypatch.setattr(servers, "COUNTED_S", 0.3)
    value, raw = servers.ServerSide("server").together(Fake(), ROWS["streams"])
    assert len(raw["words"]) == 8 and min(raw["words"]) > 5 and value == pytest.approx(sum(raw["words"]) / raw["seconds"])
    with pytest.raises(Failed, match="ended before the window"):
        servers.ServerSide("server").together(Fake(words=3), ROWS["streams"])


def test_braces_that_nothing_fills_are_refused():
    with pytest.raises(Failed, match="only port, model in braces"):
        servers.Started("server --ctx {contxt}", "/health", model="m")


def test_a_program_that_is_no_server_fails_with_its_words(tmp_path):
    with pytest.raises(Failed, match="ended with 3: no such flag"):
        with servers.Started("sh -c 'echo no such flag; exit 3'", "/health", model="m"):
            pass


def test_the_memory_of_a_server_is_also_that_of_who_serves_for_it():
    below = "import sys; kept = bytearray(200_000_000); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(["sh", "-c", f"'{sys.executable}' -c '{below}'; true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as above:
        above.stdout.readline()
        assert servers.memory(above.pid)["RssAnon"] > 200_000_000
        above.stdin.close()


def test_our_own_server_is_measured_from_its_start():
    side, model = servers.ServerSide(servers.OURS, ready="/health/ready"), models.tiny("llama", "q4_0")
    start = side.measure(ROWS["start"], model, 1)
    assert 0 < start.value < 60 and start.raw["VmHWM"] > start.raw["file_bytes"] == model.stat().st_size
    memory = side.measure(ROWS["memory"], model, 1)
    expected = memory.raw["VmHWM"] - memory.raw["file_bytes"] - memory.raw["cache_bytes"]
    assert memory.value == pytest.approx(expected / 1e6)
    assert memory.raw["cache_bytes"] == 2048 * 2 * 2 * 2 * 2 * 64   # tokens, keys and values, bytes, layers, heads, elements
