"""cadans top: the Now view in a terminal."""
import http.server
import json
import os
import pty
import signal
import subprocess
import threading

import pytest

import models
from server import BINARY, Server, run

LONG = {"prompt": [5] * 400, "max_tokens": 400, "ignore_eos": True, "temperature": 0, "stream": True, "user": "anna"}


def test_without_a_terminal_it_is_one_plain_picture():
    with Server(models.tiny("llama", "f32"), "--context", "1024") as server:
        server.stream("/v1/completions", LONG)
        plain = run("top", "--url", server.url)     # who ended a moment ago is still shown
        assert plain.returncode == 0 and "\x1b" not in plain.stdout
        assert "running" in plain.stdout and "where its time went" in plain.stdout and "400/400" in plain.stdout
        now = json.loads(run("top", "--url", server.url, "--json").stdout)
        assert now["requests"] and len(now["seconds"]) == 60
        nobody = run("top", "--url", "http://127.0.0.1:1")
        assert nobody.returncode == 1 and "no server answers" in nobody.stderr


def test_in_a_terminal_it_goes_on_until_ctrl_c():
    with Server(models.tiny("llama", "f32"), "--api-key", "k", headers={"Authorization": "Bearer k"}) as server:
        keeper, terminal = pty.openpty()
        shown = subprocess.Popen([str(BINARY), "top", "--url", server.url], stdin=terminal, stdout=terminal, stderr=terminal,
                                 env={**os.environ, "CADANS_API_KEY": "k"})
        os.close(terminal)
        seen = b""
        while seen.count(b"\x1b[H") < 3:
            seen += os.read(keeper, 65536)
        assert b"nobody is being served" in seen
        shown.send_signal(signal.SIGINT)
        assert shown.wait(10) == 130
        os.close(keeper)
        refused = run("top", "--url", server.url, "--api-key", "wrong")
        assert refused.returncode == 1 and "key" in refused.stderr


@pytest.fixture
def stranger():
    """A server that answers everything with the same document."""
    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(self.server.document)))
            self.end_headers()
            self.wfile.write(self.server.document)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.mark.parametrize("document", ["{}", "[]", "null", "5", "[" * 200_000, '{"requests": 5}', "<html>"])
def test_another_program_is_told_from_cadans(stranger, document):
    stranger.document = document.encode()
    url = f"http://127.0.0.1:{stranger.server_port}"
    for command in (("top",), ("explain", "a"), ("explain",)):
        for more in ((), ("--json",)):
            result = run(*command, "--url", url, *more)
            assert result.returncode == 1 and f"{url} does not answer as Cadans does" in result.stderr and not result.stdout, (command, result)


@pytest.mark.parametrize("document", ['{"requests": [5, {}, {"held_up_by": [1], "spent_ns": 2, "ended": "x"}], "seconds": [null], "pages": 3}',
                                      '{"requests": [{"id": 5, "held_up_by": {}}], "seconds": {}}'])
def test_fields_of_another_kind_are_taken_as_missing(stranger, document):
    stranger.document = document.encode()
    result = run("top", "--url", f"http://127.0.0.1:{stranger.server_port}")
    assert result.returncode == 0 and "running" in result.stdout, result.stderr


def test_an_id_is_one_part_of_the_address(stranger):
    stranger.document = b'{"sentences": [{"text": "So it was."}, 5]}'
    result = run("explain", "a b/?&", "--url", f"http://127.0.0.1:{stranger.server_port}", "--language", "en")
    assert result.returncode == 0 and "So it was." in result.stdout
    assert stranger.asked == ["/cadans/v1/requests/a%20b%2F%3F%26/explanation?language=en"]
