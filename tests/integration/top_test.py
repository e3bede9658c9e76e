"""cadans top: the Now view in a terminal."""
import json
import os
import pty
import signal
import subprocess

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
