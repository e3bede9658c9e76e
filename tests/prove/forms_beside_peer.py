"""Answers of a form beside a peer on the same file and schemas: how many are valid, how many are refused, how fast.

Each server is asked for answers under every schema of tests/grammar/schemas.json over /v1/chat/completions, with a strict
response_format at temperature 1, one at a time; PyPI's jsonschema judges each complete answer, formats included. An answer that
its number of tokens cuts is counted and not judged. tokens/s is of all answers together, with and without a schema, from
outside. Then, of ours: decoding under a schema against plain decoding, in turns, on 135M and 1B (random weights where no
model was fetched), from the server's own timings.
CADANS_PEERS names commands of other servers, one a line, as "label: program --flags" with {model} and {port} in them.
CADANS_SMALL=1 asks for little, to try the script; its page is not evidence.
"""
import collections
import contextlib
import http.client
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import time
import urllib.error
import urllib.request

import jsonschema

import models
from prove.interference import large_model
from server import HOST, ROOT, Server, free_port

INPUTS = ["tests/grammar/schemas.json", "tests/prove/interference.py"]
SMALL = bool(os.environ.get("CADANS_SMALL"))
CASES = json.loads((ROOT / "tests/grammar/schemas.json").read_text())["kept"]
SEEDS = 1 if SMALL else 4
TOKENS = 60 if SMALL else 300   # of one answer at most
PAIRS = 3 if SMALL else 15
DECODED = 60 if SMALL else 160  # tokens of one measured answer
SLOWEST = 0.97                  # of plain decoding

# Forms that do not end before the tokens do: free text, and records whose names are forced.
LONG = {
    "a long text": {"type": "object", "properties": {"text": {"type": "string", "minLength": 3000}}, "required": ["text"]},
    "a list of records": {"type": "array", "minItems": 300, "items": {"type": "object", "properties": {
        "id": {"type": "integer", "minimum": 0}, "kind": {"enum": ["miller", "farmer", "baker"]}, "open": {"type": "boolean"}}, "required": ["id", "kind", "open"]}},
}


def small_model():
    given = os.environ.get("CADANS_SMALL_MODEL")
    if given:
        return pathlib.Path(given)
    tool = models.fetcher()
    path = tool.models_folder() / tool.MODELS["smollm2"]["file"]
    return path if path.exists() else models.tiny("llama3", "q8_0", untied=True)


@contextlib.contextmanager
def peers(path):
    """(label, address) of each, one running at a time."""
    def run():
        for line in filter(str.strip, os.environ.get("CADANS_PEERS", "").splitlines()):
            label, _, command = line.partition(":")
            port = free_port()
            process = subprocess.Popen(shlex.split(command.format(model=path, port=port)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                for _ in range(300):
                    with contextlib.suppress(urllib.error.URLError, ConnectionError):
                        urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=5)
                        break
                    time.sleep(0.5)
                yield f"{label.strip()} ({' '.join(shlex.split(command)[1:])})", port
            finally:
                process.kill()
                process.wait()
    yield run()


def post(port, body):
    """(status, answer); what is no answer is status 0."""
    with contextlib.closing(http.client.HTTPConnection(HOST, port, timeout=300)) as line:
        try:
            line.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            reply = line.getresponse()
            return reply.status, json.loads(reply.read() or b"null")
        except (OSError, http.client.HTTPException, ValueError):
            return 0, None


def ask(port, schema, seed):
    form = {} if schema is None else {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}}
    return post(port, {"model": "default", "messages": [{"role": "user", "content": "The river keeps its own time. Tell of it."}], "max_tokens": TOKENS,
                       "temperature": 1, "seed": seed, "cache_prompt": True, **form})


def verdict(case, answer):
    choice = answer["choices"][0]
    if choice["finish_reason"] == "length":
        return "cut"
    try:
        jsonschema.Draft202012Validator(case["schema"], format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).validate(json.loads(choice["message"]["content"] or ""))
    except (ValueError, jsonschema.ValidationError):
        return "invalid"
    return "valid"


def table_of(port):
    """(what became of the answers, tokens/s under schemas, tokens/s without, names of cases refused or invalid)."""
    became, tokens, seconds, odd = collections.Counter(), 0, 0.0, collections.defaultdict(set)
    cases = CASES[:6] if SMALL else CASES
    for seed in range(SEEDS):
        for case in cases:
            begin = time.perf_counter()
            status, answer = ask(port, case["schema"], seed)
            if status != 200:
                became["refused" if status else "lost"] += 1
                odd["refused"].add(case["name"])
                continue
            seconds += time.perf_counter() - begin
            tokens += answer["usage"]["completion_tokens"]
            found = verdict(case, answer)
            became[found] += 1
            if found == "invalid":
                odd["invalid"].add(case["name"])
    begin, plain = time.perf_counter(), 0
    for seed in range(len(cases)):
        plain += ask(port, None, seed)[1]["usage"]["completion_tokens"]
    return became, tokens / seconds if seconds else 0.0, plain / (time.perf_counter() - begin), odd


def show(evidence, label, port):
    became, rate, plain, odd = table_of(port)
    complete = became["valid"] + became["invalid"]
    evidence.row(label, answers=sum(became.values()), complete=complete, cut=became["cut"], refused=became["refused"] + became["lost"],
                 valid_of_complete=became["valid"] / complete if complete else "none", tokens_per_s=rate, tokens_per_s_plain=plain,
                 share_of_plain=rate / plain if plain else "none")
    for kind, names in sorted(odd.items()):
        print(f"   {label}: {kind}: {', '.join(sorted(names))}", flush=True)
    return became


def decode_rate(server, schema, seed):
    form = {} if schema is None else {"json_schema": schema}
    answer = server.ok("/v1/completions", {"prompt": "The river keeps", "max_tokens": DECODED, "seed": seed, "ignore_eos": schema is None, **form})
    assert answer["usage"]["completion_tokens"] == DECODED, answer
    return answer["timings"]["predicted_per_second"]


def decode_in_turns(evidence, label, path):
    with Server(path, "--context", 4096, "--speculate", "off", ready_within=300) as server:   # guesses would hide what masks cost
        for name, schema in LONG.items():
            decode_rate(server, schema, 0), decode_rate(server, None, 0)   # the first compiles, and meets every state
            ratios = sorted(decode_rate(server, schema, seed) / decode_rate(server, None, seed) for seed in range(1, PAIRS + 1))
            ratio = statistics.median(ratios)
            evidence.row(f"{label}, {name}: decoding under the schema against plain, {PAIRS} pairs", rate_ratio=ratio,
                         spread=f"{ratios[len(ratios) // 4]:.3f} to {ratios[-1 - len(ratios) // 4]:.3f} (quartiles)")
            evidence.require(SMALL or ratio >= SLOWEST, f"{label}: decoding under a schema is at least {SLOWEST} x plain")


def prove(evidence):
    path = small_model()
    with Server(path, "--context", 2048) as server:
        ours = show(evidence, f"Cadans, {path.stem}", server.port)
    evidence.require(ours["valid"] > 0 and ours["invalid"] == 0, "every complete answer of ours is valid")
    evidence.require(ours["refused"] + ours["lost"] == 0, "no schema that is kept is refused")
    with peers(path) as running:
        for label, port in running:
            show(evidence, label, port)
    decode_in_turns(evidence, path.stem, path)
    large = large_model()
    decode_in_turns(evidence, large.stem, large)
