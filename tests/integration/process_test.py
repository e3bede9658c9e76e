"""The process: signals, exit statuses, ports, models that cannot be served, keys."""
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

import models
from server import BINARY, Server, free_port, run

TINY = ("llama", "f32")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_with_0(number):
    with Server(models.tiny(*TINY)) as server:
        begin = time.monotonic()
        assert server.stop(number) == 0
        assert time.monotonic() - begin < 3


def closed_pipe():
    """A pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_a_log_that_nobody_reads_ends_no_server():
    class Unheard(Server):
        def __enter__(self):
            pipe = closed_pipe()
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
            os.close(pipe)
            deadline = time.monotonic() + self.ready_within
            while time.monotonic() < deadline:
                assert self.process.poll() is None, self.process.returncode
                try:
                    if self.get("/health/ready")[0] == 200:
                        return self
                except OSError:
                    time.sleep(0.02)
            raise AssertionError("not ready")

    with Unheard(models.tiny(*TINY)) as server:
        server.ok("/v1/completions", {"prompt": [5], "max_tokens": 2})
        assert server.stop() == 0


@pytest.mark.parametrize("arguments", [("simulate", "--load", "poisson:requests=20", "--json"), ("simulate", "--load", "nothing"), ("unknown",)])
def test_what_nobody_reads_is_an_error_and_no_crash(arguments):
    pipe = closed_pipe()
    assert subprocess.run([str(BINARY), *arguments], stdout=pipe, stderr=pipe, timeout=60).returncode in (1, 2)
    os.close(pipe)


def test_a_running_request_is_finished_after_the_signal():
    with Server(models.tiny("gemma3", "f32")) as server:
        frames, seen = [], threading.Event()

        def read():
            for frame in server.frames("/v1/completions", {"prompt": [5] * 10, "max_tokens": 300, "ignore_eos": True, "stream": True}):
                frames.append(frame)
                seen.set()
        reader = threading.Thread(target=read)
        reader.start()
        assert seen.wait(20)
        assert server.stop() == 0
        reader.join(10)
    assert frames[-1] == "[DONE]"


def test_a_second_signal_ends_at_once():
    with Server(models.tiny("gemma3", "f32")) as server:
        stream = server.frames("/v1/completions", {"prompt": [5] * 10, "max_tokens": 2000, "ignore_eos": True, "stream": True})
        next(stream)
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert server.stop() == 0 and time.monotonic() - begin < 5


def test_a_model_is_not_named_nothing():
    result = run("serve", "--port", free_port(), "--model", f"={models.tiny(*TINY)}", timeout=30)
    assert result.returncode == 1 and "no name" in result.stderr


def test_a_port_in_use_is_said_plainly():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("serve", "--model", models.tiny(*TINY), "--port", port, timeout=30)
    assert result.returncode == 1 and str(port) in result.stderr and "in use" in result.stderr


def gguf_with(**changes):
    """The first bytes of a tiny model with something put wrong."""
    data = bytearray(models.tiny(*TINY).read_bytes())
    if "cut" in changes:
        return bytes(data[:changes["cut"]])
    for offset, value in changes.get("patch", []):
        data[offset:offset + len(value)] = value
    return bytes(data)


BAD = {
    "empty": b"", "text": b"This is a text file, not a model.\n" * 100, "magic_only": b"GGUF", "cut_header": gguf_with(cut=20), "cut_metadata": gguf_with(cut=3000),
    "cut_tensors": gguf_with(cut=-1000), "version_0": gguf_with(patch=[(4, struct.pack("<I", 0))]), "version_99": gguf_with(patch=[(4, struct.pack("<I", 99))]),
    "big_endian": gguf_with(patch=[(4, struct.pack(">I", 3))]), "many_tensors": gguf_with(patch=[(8, struct.pack("<Q", 2**63))]),
    "many_keys": gguf_with(patch=[(16, struct.pack("<Q", 2**64 - 1))]), "long_key": gguf_with(patch=[(24, struct.pack("<Q", 2**40))]),
}


@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_model_file_is_named_and_refused(tmp_path, name):
    path = tmp_path / f"{name}.gguf"
    path.write_bytes(BAD[name])
    for command in (("serve", "--port", free_port(), "--model", path), ("inspect", path)):
        result = run(*command, timeout=30)
        assert result.returncode == 1, (command, result)
        assert f"{name}.gguf" in result.stderr + result.stdout and "terminate called" not in result.stderr


def test_paths_that_are_no_file_are_refused(tmp_path):
    secret = tmp_path / "secret.gguf"
    secret.write_bytes(b"GGUF")
    secret.chmod(0)
    fifo = tmp_path / "pipe.gguf"
    os.mkfifo(fifo)
    for path in (tmp_path, tmp_path / "missing.gguf", "/dev/zero", fifo) + ((secret,) if os.getuid() else ()):
        result = run("serve", "--port", free_port(), "--model", path, timeout=30)
        assert result.returncode == 1 and str(path) in result.stderr, (path, result)


@pytest.mark.parametrize("arguments", [["serve", "--no-such-flag"], ["no-such-command"], ["serve", "--port", "banana"], ["serve", "--threads", "-3"],
                                       ["serve", "--kv-memory", "lots"], ["bench", "--prompt", "x"], ["simulate", "--json"]])
def test_wrong_usage_is_2(arguments):
    result = run(*arguments, timeout=30)
    assert result.returncode == 2 and result.stderr


def test_help_is_0_and_names_every_setting_three_times():
    result = run("serve", "--help", timeout=30)
    assert result.returncode == 0
    for flag in ("--model", "--host", "--port", "--threads", "--context", "--kv-memory", "--queue", "--api-key"):
        assert flag in result.stdout
        assert "CADANS_" + flag[2:].replace("-", "_").upper() in result.stdout


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.0.0.1.example.org", "127.", "192.168.1.2"])
def test_a_host_that_lets_others_in_needs_a_key(host):
    result = run("serve", "--host", host, "--port", free_port(), "--model", models.tiny(*TINY), timeout=30)
    assert result.returncode == 1 and "--api-key" in result.stderr and host in result.stderr


def test_a_key_guards_every_route():
    key = {"Authorization": "Bearer secret"}
    with Server(models.tiny(*TINY), "--api-key", "secret", headers=key) as server:
        for method, path in (("GET", "/v1/models"), ("GET", "/health/ready"), ("GET", "/health/live"), ("POST", "/v1/completions"), ("POST", "/api/chat"), ("GET", "/api/tags"), ("POST", "/tokenize"),
                             ("GET", "/metrics"), ("GET", "/cadans/v1/requests/x"), ("POST", "/v1/chat/completions"), ("GET", "/no/such/route")):
            body = b"{}" if method == "POST" else None
            assert server.request(method, path, body, {"Content-Type": "application/json"})[0] == 401, path
            assert server.request(method, path, body, {"Content-Type": "application/json", "Authorization": "Bearer wrong"})[0] == 401, path
        assert server.request("GET", "/")[0] == 200     # the page holds nothing, and asks for a key itself
        assert server.get("/v1/models", key)[0] == 200 == server.get("/health/live", key)[0]


def test_settings_come_from_flags_then_environment_then_file(tmp_path):
    config, long = tmp_path / "cadans.toml", {"prompt": [5] * 350, "max_tokens": 1}
    config.write_text("context = 300\n")
    model = models.tiny(*TINY)
    for limit, flags, env in ((300, [], {}), (200, [], {"CADANS_CONTEXT": "200"}), (100, ["--context", 100], {"CADANS_CONTEXT": "200"})):
        with Server(model, "--config", config, *flags, env=env) as server:
            assert str(limit) in server.post("/v1/completions", long)[1]["error"]["message"]


def test_a_configuration_file_with_a_mistake_is_named(tmp_path):
    config = tmp_path / "cadans.toml"
    for text in ("context = 'many'\n", "contxt = 300\n", "context = \n"):
        config.write_text(text)
        result = run("serve", "--model", models.tiny(*TINY), "--config", config, "--port", free_port(), timeout=30)
        assert result.returncode in (1, 2) and "cadans.toml" in result.stderr, result


def test_several_models_are_served_by_name():
    with Server([f"one={models.tiny('llama', 'f32')}", f"two={models.tiny('qwen3', 'f32')}"]) as server:
        names = [m["id"] for m in server.get("/v1/models")[1]["data"]]
        assert names == ["one", "two"]
        body = {"prompt": [5, 6, 7], "max_tokens": 4, "temperature": 0}
        default, one, two = (server.ok("/v1/completions", {**body, **({"model": m} if m else {})}) for m in (None, "one", "two"))
        assert default["choices"][0]["text"] == one["choices"][0]["text"] and default["model"] == one["model"] and two["model"] != one["model"]


def test_a_model_says_how_much_fits_and_has_a_digest():
    with Server(models.tiny(*TINY), "--context", "64", "--kv-memory", "64M") as server:
        model = server.get("/v1/models")[1]["data"][0]
        assert model["context_length"] == 64 and model["meta"]["kv_tokens"] > 64   # one request's limit is not the pool's
        digest = server.get("/api/tags")[1]["models"][0]["digest"]
        assert len(digest) >= 12 and int(digest, 16)   # Ollama's own client shows the first 12


def test_health_says_ready_and_how_often_the_engine_was_restarted(steady):
    for path in ("/health/ready", "/health"):
        assert steady.get(path) == (200, {"status": "ready", "engine_restarts": 0})
    assert steady.get("/health/live")[0] == 200


def child_of(server):
    children = open(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read().split()
    return int(children[0]) if children else None


def test_a_serving_process_that_dies_while_leaving_is_not_started_again():
    with Server(models.tiny("gemma3", "f32")) as server:
        stream = server.frames("/v1/completions", {"prompt": [5] * 10, "max_tokens": 2000, "ignore_eos": True, "stream": True})
        next(stream)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        os.kill(child_of(server), signal.SIGKILL)
        assert server.process.wait(5) == 70


def test_a_death_of_the_serving_process_is_survived_once():
    """cadans serve is a small parent; it starts the process again, and ends with 70 on a second death."""
    with Server(models.tiny(*TINY)) as server:
        first = child_of(server)
        if first is None:
            pytest.fail("the server has no child process")
        os.kill(first, signal.SIGKILL)
        end = time.monotonic() + 20
        restarts = None
        while time.monotonic() < end and restarts != 1:
            try:
                status, answer = server.get("/health/ready")
                restarts = answer.get("engine_restarts") if status == 200 else None
            except OSError:
                pass
            time.sleep(0.05)
        assert restarts == 1
        assert server.ok("/v1/completions", {"prompt": "a", "max_tokens": 1})
        os.kill(child_of(server), signal.SIGKILL)
        assert server.process.wait(20) == 70
