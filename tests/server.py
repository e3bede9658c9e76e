"""A server under test, and the small client that tests talk to it with.

    with Server(model) as server:
        status, answer = server.post("/v1/completions", {"prompt": "a", "max_tokens": 1})

The client is the standard library's, so that what is tested is the wire and not a client's opinion of it.
"""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).parent.parent
BINARY = pathlib.Path(os.environ.get("CADANS_BINARY", ROOT / "build" / "release" / "cadans"))
HOST = "127.0.0.1"
# One for all servers of a run, so that what steps of a model cost is measured once.
STATE = tempfile.TemporaryDirectory(prefix="cadans-state-")


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def run(*arguments, env=None, timeout=120, stdin=subprocess.DEVNULL, **more):
    """Runs a command of the program to its end: CompletedProcess with text output."""
    return subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=timeout,
                          stdin=stdin, env={**os.environ, **(env or {})}, **more)


class Server:
    def __init__(self, model, *flags, env=None, ready_within=120, headers=None):
        self.port, self.ready_within, self.headers = free_port(), ready_within, headers or {}
        names = model if isinstance(model, (list, tuple)) else [model]
        self.command = [str(BINARY), "serve", "--host", HOST, "--port", str(self.port)]
        for name in names:
            self.command += ["--model", str(name)]
        self.command += [str(f) for f in flags]
        self.env = {**os.environ, **(env or {})}

    def __enter__(self):
        self.log = tempfile.NamedTemporaryFile(mode="w+", suffix=".log", prefix="cadans-")
        self.env.setdefault("XDG_STATE_HOME", STATE.name)
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.env)
        deadline = time.monotonic() + self.ready_within
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.said()}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.get("/health/ready", self.headers)[0] == 200:
                    return self
            time.sleep(0.02)
        self.__exit__()
        raise AssertionError(f"the server was not ready within {self.ready_within} s:\n{self.said()}")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @property
    def url(self):
        return f"http://{HOST}:{self.port}"

    def said(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")[-4000:]

    def stop(self, number=signal.SIGTERM, within=40):
        """Sends a signal and returns the exit status."""
        self.process.send_signal(number)
        return self.process.wait(within)

    def alive(self):
        return self.process.poll() is None and self.get("/health/ready", self.headers)[0] == 200

    def request(self, method, path, body=None, headers=None, timeout=120):
        """(status, headers, body bytes)."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()

    def get(self, path, headers=None, timeout=120):
        status, _, body = self.request("GET", path, headers=headers, timeout=timeout)
        return status, decoded(body)

    def post(self, path, document, headers=None, timeout=120):
        """Posts a JSON document (or bytes as they are): (status, decoded answer)."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        status, _, answer = self.request("POST", path, body, {"Content-Type": "application/json", **(headers or {})}, timeout)
        return status, decoded(answer)

    def ok(self, path, document, timeout=300):
        """The answer to a request that must succeed."""
        status, answer = self.post(path, document, timeout=timeout)
        assert status == 200, (status, answer)
        return answer

    def stream(self, path, document, timeout=120):
        """The data of each SSE frame, decoded; "[DONE]" stays a string."""
        return list(self.frames(path, document, timeout))

    def frames(self, path, document, timeout=120):
        connection = http.client.HTTPConnection(HOST, self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request("POST", path, json.dumps(document), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            assert reply.status == 200, (reply.status, reply.read())
            sse = "text/event-stream" in reply.headers.get("Content-Type", "")
            for line in reply:
                line = line.decode("utf-8").rstrip("\r\n")   # every line must be valid UTF-8 by itself
                if sse and line.startswith("data:"):
                    data = line[5:].strip()
                    yield data if data == "[DONE]" else json.loads(data)
                elif not sse and line:
                    yield json.loads(line)

    def scores(self, ids, top=0, **more):
        """Log-probabilities of a prompt given as ids: (token_logprobs, top_logprobs)."""
        choice = self.ok("/v1/completions", {"prompt": ids, "max_tokens": 0, "echo": True, "logprobs": top, "temperature": 0, **more})["choices"][0]
        return choice["logprobs"]["token_logprobs"], choice["logprobs"].get("top_logprobs")

    def metrics(self):
        """{"name{labels}": value} of the Prometheus page."""
        text = self.request("GET", "/metrics")[2].decode()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line and line[0] != "#"}


def decoded(body):
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
