"""20,000 answers drawn at temperature 1 under schemas: none fails an independent validator.

Models with random weights and real ones are asked for answers under every schema of tests/grammar/schemas.json, many at once,
each with a seed of its own, and PyPI's jsonschema judges each complete answer, formats included. An answer that its number of
tokens cuts is counted and not judged; a model with random weights closes few of its strings. make test: 1,000 answers.
"""
import collections
import concurrent.futures
import json

import jsonschema

import models
from server import ROOT, Server

INPUTS = ["tests/grammar/schemas.json"]
CASES = json.loads((ROOT / "tests/grammar/schemas.json").read_text())["kept"]
TOKENS = 400      # of one answer at most
AT_ONCE = 16


def answers(server, count, seed, choices=4):
    """(complete answers judged, cut ones, what failed) of `count` complete answers."""
    judged, cut, failed = collections.Counter(), 0, []

    def ask(number):
        case = CASES[number % len(CASES)]
        body = {"prompt": "The river keeps", "max_tokens": TOKENS, "temperature": 1, "seed": seed * 1_000_000 + number, "n": choices,
                "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": case["schema"]}}}
        return case, server.ok("/v1/completions", body)["choices"]

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(0, count * 8, 70):
            for case, texts in pool.map(ask, range(first, first + 70)):
                validator = jsonschema.Draft202012Validator(case["schema"], format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
                for choice in texts:
                    if choice["finish_reason"] == "length":
                        cut += 1
                        continue
                    judged[case["name"]] += 1
                    try:
                        validator.validate(json.loads(choice["text"]))
                    except (ValueError, jsonschema.ValidationError) as error:
                        failed.append(f"{case['name']}: {choice['text'][:300]!r}: {str(error).splitlines()[0]}")
            if sum(judged.values()) >= count:
                break
    return judged, cut, failed


def served():
    """(label, file, complete answers looked for) of each model."""
    for family, weight_type in [("llama3", "q4_0"), ("qwen3", "q8_0"), ("gemma3", "q4_k"), ("llama", "f32")]:
        yield f"random weights, {family} {weight_type}", models.tiny(family, weight_type, untied=True), 4500
    for name in ("smollm2", "gemma3"):
        yield f"real weights, {name}", models.real(name), 1500


def prove(evidence):
    total = collections.Counter()
    for number, (label, path, count) in enumerate(served()):
        with Server(path, "--context", 512, "--queue", 256) as server:
            judged, cut, failed = answers(server, count, number + 1)
            total += judged
            evidence.row(label, answers=sum(judged.values()), schemas=len(judged), fail=len(failed), cut=cut)
            for each in failed[:5]:
                evidence.require(False, each)
    evidence.row("together", answers=sum(total.values()), schemas=len(total))
    evidence.require(sum(total.values()) >= 20_000, "fewer than 20,000 answers")
    evidence.require(len(total) == len(CASES), f"no complete answer under {sorted({c['name'] for c in CASES} - set(total))}")
