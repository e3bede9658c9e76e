"""A server as a peer: started by a command, watched from outside by the same client as ours.

It offers what no bench tells: many streams, the time from its start to the first token, its memory; and, where its own
bench has no depth, the reading of a prompt behind another, which its server keeps.
"""
import contextlib
import http.client
import json
import os
import pathlib
import random
import shlex
import signal
import subprocess
import tempfile
import threading
import time

from compare.benches import Failed, Run
from compare.model_facts import cache_bytes
from server import BINARY, HOST, STATE, free_port

READY_S, WORDS_S = 300, 600
COUNTED_S = 6        # seconds in which the words of all streams are counted
OURS = f"{BINARY} serve --model {{model}} --port {{port}} --threads {{threads}} --context {{context}} --max-running 8"


def family(pid):
    """A process and all below it: what was started may only look after what serves."""
    children = [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return [pid] + [each for child in children for each in family(child)]


def memory(pid):
    """Bytes of a process and those below it together, by cause."""
    found = dict.fromkeys(("VmHWM", "VmRSS", "RssAnon", "RssFile"), 0)
    for each in family(pid):
        for line in open(f"/proc/{each}/status", encoding="ascii", errors="replace"):
            name, _, rest = line.partition(":")
            if name in found:
                found[name] += int(rest.split()[0]) * 1024
    return found


class Started:
    """A running server, until the block ends."""

    def __init__(self, template, ready, **filled):
        self.port, self.ready = free_port(), ready
        try:
            self.command = shlex.split(template.format(port=self.port, **filled))
        except (KeyError, IndexError, ValueError) as error:
            raise Failed(f"'{template}': {error}; only {', '.join(['port', *filled])} in braces are filled in") from error
        if os.sep in self.command[0]:
            self.command[0] = os.path.abspath(self.command[0])

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        self.folder = tempfile.TemporaryDirectory()   # some write files where they are started
        self.began = time.perf_counter()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=self.folder.name,
                                        env={**os.environ, "XDG_STATE_HOME": STATE.name})
        while time.perf_counter() < self.began + READY_S:
            if self.process.poll() is not None:
                raise Failed(f"{shlex.join(self.command)} ended with {self.process.returncode}: {self.said()}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.get(self.ready) == 200:
                    return self
            time.sleep(0.005)
        self.__exit__()
        raise Failed(f"{shlex.join(self.command)} did not answer within {READY_S} s")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.folder.cleanup()

    def said(self):
        self.log.seek(0)
        return self.log.read()[-400:].decode(errors="replace")

    def get(self, path):
        connection = http.client.HTTPConnection(HOST, self.port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def open(self, path, body):
        """An answer as it comes, and the connection to be closed."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=WORDS_S)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise Failed(f"{path}: {answer.status} {answer.read(300)!r}")
        return answer, connection

    def tokens(self, count, seed):
        """So many tokens of prose, as this server cuts it; a word is at least one."""
        answer, connection = self.open("/tokenize", {"content": prose(count, seed)})
        found = json.loads(answer.read())["tokens"][:count]
        connection.close()
        return found

    def words(self, prompt, most):
        """The moment of each word of a stream."""
        answer, connection = self.open("/v1/completions", {"prompt": prompt, "max_tokens": most, "temperature": 0, "stream": True, "ignore_eos": True})
        try:
            for line in answer:
                if not line.startswith(b"data:") or line.strip() == b"data: [DONE]":
                    continue
                choices = json.loads(line[5:]).get("choices")
                if choices and choices[0].get("text"):
                    yield time.perf_counter()
        finally:
            connection.close()


WORDS = ("time way day man woman life child world school state family student group country problem hand part place case week system "
         "program question work number night point home water room mother area money story fact month right study book eye job word").split()


def prose(words, seed):
    """Plain words, so that whatever a model of random weights repeats of them is whole text."""
    dice = random.Random(seed)
    return " ".join(dice.choice(WORDS) for _ in range(words))


class ServerSide:
    def __init__(self, template, ready="/health"):
        self.template, self.ready, self.turn = template, ready, 0

    def version(self):
        program = shlex.split(self.template)[0]
        said = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", timeout=60)
        return " ".join((said.stdout + said.stderr).split())[:120]

    def offers(self, row):
        return row.kind in ("start", "memory") or row.streams > 1 or (row.kind == "prefill" and row.depth > 0)

    def measure(self, row, model, threads):
        self.turn += 1
        context = row.streams * 1024 if row.streams > 1 else 2048 if row.depth == 0 else (row.depth + row.tokens + 256) // 256 * 256
        with Started(self.template, self.ready, model=model, threads=threads, context=context, slots=row.streams) as server:
            if row.kind in ("start", "memory"):
                value, raw = self.first_word(server, row, model, context)
            elif row.kind == "prefill":
                value, raw = self.behind(server, row)
            else:
                value, raw = self.together(server, row)
            return Run(value, shlex.join(server.command), raw)

    def first_word(self, server, row, model, context):
        first = next(iter(server.words("the time of the day", 2)))
        seen = memory(server.process.pid)
        file, cache = pathlib.Path(model).stat().st_size, cache_bytes(model, context)
        raw = {"first_token_s": first - server.began, "file_bytes": file, "cache_bytes": cache, **seen}
        return (raw["first_token_s"] if row.kind == "start" else (seen["VmHWM"] - file - cache) / 1e6), raw

    def behind(self, server, row):
        """A prompt is read and kept; the next one continues it, so that only what is new is read."""
        whole = server.tokens(row.depth + row.tokens, self.turn)
        for part in (whole[:row.depth], whole):
            answer, connection = server.open("/completion", {"prompt": part, "n_predict": 1, "cache_prompt": True, "temperature": 0})
            said = json.loads(answer.read())
            connection.close()
        times = said.get("timings") or {}
        if not row.tokens <= times.get("prompt_n", 0) <= row.tokens + 64:
            raise Failed(f"the server read {times.get('prompt_n')} tokens where {row.tokens} are new")
        return 1e3 * times["prompt_n"] / times["prompt_ms"], times

    def together(self, server, row):
        """Words a second of all streams, in a window in which all of them write."""
        stamps, stopping = [[] for _ in range(row.streams)], threading.Event()

        def stream(number):
            for moment in server.words(prose(16, 1000 * self.turn + number), 900):
                stamps[number].append(moment)
                if stopping.is_set():
                    return
        threads = [threading.Thread(target=stream, args=(n,), daemon=True) for n in range(row.streams)]
        for thread in threads:
            thread.start()
        deadline = time.perf_counter() + WORDS_S
        while not all(stamps) and time.perf_counter() < deadline:
            time.sleep(0.01)
        if not all(stamps):
            raise Failed(f"{sum(not s for s in stamps)} streams got no word")
        begin = time.perf_counter()
        time.sleep(COUNTED_S)
        end = time.perf_counter()
        alive = sum(t.is_alive() for t in threads)
        stopping.set()
        for thread in threads:
            thread.join(30)
        if alive < row.streams:
            raise Failed(f"{row.streams - alive} streams ended before the window did")
        words = [sum(begin <= s < end for s in each) for each in stamps]
        return sum(words) / (end - begin), {"words": words, "seconds": end - begin}
