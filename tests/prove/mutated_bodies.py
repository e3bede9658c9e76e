"""10,000 mutated request bodies: no crash, no hang, no 500, and the next good request is answered as before.

Bodies of every route are damaged by bytes, by JSON structure and by hostile values, with a seed, and posted to a server built
with the address and undefined-behaviour sanitizers.  make test: 1,000 against the release build.
"""
import collections
import copy
import json
import random
import subprocess

from server import ROOT, Server

CHAT = {"model": "default", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "The river 🙂"}], "max_tokens": 3,
        "temperature": 0.7, "top_p": 0.9, "top_k": 5, "min_p": 0.01, "seed": 3, "stop": ["\n", "river"], "n": 1, "stream": False, "logprobs": True,
        "top_logprobs": 3, "presence_penalty": 0.1, "frequency_penalty": 0.1, "logit_bias": {"5": 1.5}, "user": "u", "stream_options": {"include_usage": True}}
TEXT = {"model": "default", "prompt": "The river", "max_tokens": 3, "temperature": 0, "logprobs": 2, "echo": True, "n": 1, "stop": "x", "seed": 1,
        "repeat_penalty": 1.1, "ignore_eos": True, "return_token_ids": True, "priority": "normal", "add_special": True, "parse_special": False}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "string", "pattern": "^[a-z]{2,5}$"}, "c": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
          "required": ["a"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "r"}]
BLOCKS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]},
          {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "r"}]}]}]
ITEMS = [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}, {"type": "reasoning", "summary": []},
         {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": "r"}]
ANTHROPIC = {"model": "default", "max_tokens": 3, "system": [{"type": "text", "text": "s"}], "messages": BLOCKS, "stop_sequences": ["x"], "temperature": 0.5, "metadata": {"user_id": "u"},
             "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "thinking": {"type": "disabled"}}
RESPONSES = {"model": "default", "instructions": "s", "input": ITEMS, "max_output_tokens": 3, "temperature": 0, "tool_choice": "required", "store": False, "reasoning": {"effort": "low"},
             "tools": [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True}], "text": {"format": {"type": "text"}}}
CORPUS = [
    ("/v1/messages", ANTHROPIC), ("/v1/messages", {**ANTHROPIC, "stream": True}), ("/v1/messages/count_tokens", ANTHROPIC),
    ("/v1/messages", {"model": "default", "max_tokens": 3, "messages": BLOCKS[:1], "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}}),
    ("/v1/responses", RESPONSES), ("/v1/responses", {**RESPONSES, "stream": True}),
    ("/v1/responses", {"model": "default", "max_output_tokens": 3, "input": "hi", "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}}),
    ("/v1/chat/completions", {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}}),
    ("/v1/completions", {**TEXT, "regex": "(ab|[c-e]{2,4})+x?"}), ("/v1/completions", {**TEXT, "grammar": 'root ::= "a" x*\nx ::= [b-d] | "é"'}),
    ("/v1/completions", {**TEXT, "guided_grammar": 'start: "a" x* [N ~ 1..2]\nx: /[b-d]+/i | x "é"\n%import common.INT -> N\n%ignore " "'}),
    ("/v1/embeddings", {"model": "default", "input": ["The river", "b"], "encoding_format": "base64", "user": "u"}), ("/v1/embeddings", {"input": [[5, 6], [7]]}),
    ("/api/embed", {"model": "default", "input": ["The river", "b"], "keep_alive": "5m"}), ("/api/embeddings", {"prompt": "The river"}),
    ("/v1/chat/completions", {**CHAT, "messages": TALK, "tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}),
    ("/api/chat", {"messages": TALK, "tools": [TOOL], "stream": False, "options": {"num_predict": 3}}),
    ("/api/generate", {"prompt": "The river", "format": SCHEMA, "stream": False, "options": {"num_predict": 3}}),
    ("/v1/chat/completions", CHAT), ("/v1/chat/completions", {**CHAT, "stream": True}), ("/v1/completions", TEXT), ("/v1/completions", {**TEXT, "stream": True}),
    ("/v1/completions", {**TEXT, "prompt": [5, 6, 7]}), ("/v1/completions", {**TEXT, "prompt": [[5, 6], [7]]}), ("/v1/completions", {**TEXT, "prompt": ["a", "b"]}),
    ("/api/chat", {"model": "m", "messages": [{"role": "user", "content": "The river"}], "stream": False, "options": {"num_predict": 3, "temperature": 0, "num_ctx": 64, "stop": ["a"]}, "keep_alive": "5m"}),
    ("/api/generate", {"prompt": "The river", "system": "s", "stream": False, "raw": True, "options": {"num_predict": 3, "top_k": 4, "seed": 2}}),
    ("/api/show", {"model": "default"}), ("/tokenize", {"content": "The river", "add_special": True, "with_pieces": True}), ("/detokenize", {"tokens": [5, 6, 7]}),
    ("/tokenize", {"prompt": "The", "add_special_tokens": True}), ("/apply-template", {"messages": CHAT["messages"]}),
]
HOSTILE = [None, True, False, 0, -1, 1, 2**31, 2**32, 2**53, 2**63, 2**64, -2**63, 1e308, -1e308, 1e-320, 0.1, "", "a", "\0", "\ud83d", "\u202e", "ß" * 300, "%s%n",
           "<|im_end|>", "../../x", [], [[]], {}, [None], [1, "a", {}], {"": ""}, {"a": {"a": {"a": []}}}, "9" * 400, [0] * 1000, ["x"] * 50, "default:latest"]
NAMES = ["prompt", "messages", "role", "content", "n", "stop", "stream", "tools", "images", "format", "suffix", "options", "num_ctx", "think", "template", "context",
         "grammar", "json_schema", "response_format", "regex", "tool_choice", "tool_calls", "$ref", "anyOf", "pattern", "properties", "input_schema", "logit_bias", "best_of", "max_completion_tokens", "chat_template", "chat_template_kwargs", "__proto__", ""]
SLOW = 20   # seconds


def places(node, path=()):
    """Every place of a document: (container, key)."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else []
    for key, value in list(items):
        yield node, key
        yield from places(value, path + (key,))


def change_structure(dice, document):
    for _ in range(dice.choice([1, 1, 1, 2, 4])):
        spots = list(places(document))
        if not spots:
            break
        node, key = dice.choice(spots)
        how = dice.randrange(6)
        if how <= 2:
            node[key] = copy.deepcopy(dice.choice(HOSTILE))
        elif how == 3:
            del node[key]
        elif how == 4 and isinstance(node, dict):
            node[dice.choice(NAMES)] = copy.deepcopy(dice.choice(HOSTILE))
        else:
            other, other_key = dice.choice(spots)
            node[key] = copy.deepcopy(other[other_key])
    return json.dumps(document, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")


def change_bytes(dice, body):
    body = bytearray(body)
    for _ in range(dice.choice([1, 1, 2, 8, 40])):
        if not body:
            break
        at = dice.randrange(len(body))
        how = dice.randrange(7)
        if how == 0:
            body[at] = dice.randrange(256)
        elif how == 1:
            del body[at:at + dice.choice([1, 2, 10])]
        elif how == 2:
            body[at:at] = dice.choice([b"{", b"[", b'"', b"\\", b"\xff", b"\xed\xa0\x80", b"\\ud800", b",", b":", b"1e999", b"\0", b"//", b"\xef\xbb\xbf"])
        elif how == 3:
            body = body[:at]
        elif how == 4:
            body[at:at] = body[at:at + 30]
        elif how == 5:
            body[at:at] = dice.choice([b"[", b'{"a":']) * dice.choice([3, 200, 5000])
        else:
            body[at] ^= 1 << dice.randrange(8)
    return bytes(body)


def mutated(seed):
    dice = random.Random(seed)
    path, document = dice.choice(CORPUS)
    body = json.dumps(document).encode()
    if dice.random() < 0.7:
        body = change_structure(dice, json.loads(body))
    if dice.random() < 0.4:
        body = change_bytes(dice, body)
    return path, body


def post_all(server, seeds):
    """(count of each status, list of what went wrong)."""
    good = {"prompt": [9, 8, 7], "max_tokens": 6, "temperature": 0, "logprobs": 1, "ignore_eos": True}
    expected = server.ok("/v1/completions", good)["choices"]
    statuses, problems = collections.Counter(), []
    for count, seed in enumerate(seeds):
        path, body = mutated(seed)
        try:
            status, _, answer = server.request("POST", path, body, {"Content-Type": "application/json"}, timeout=SLOW)
        except OSError as error:
            problems.append(f"seed {seed}: {path}: {type(error).__name__} {error}")
            if server.process.poll() is not None:
                problems.append(f"the server ended with {server.process.returncode}: {server.said()[-1500:]}")
                return statuses, problems
            continue
        statuses[status] += 1
        if status >= 500 or status < 200:
            problems.append(f"seed {seed}: {path}: {status} {answer[:200]!r} for {body[:200]!r}")
        elif status != 200 and b'"error"' not in answer:
            problems.append(f"seed {seed}: {path}: {status} without an error body")
        if count % 200 == 199 and server.ok("/v1/completions", good)["choices"] != expected:
            problems.append(f"seed {seed}: the good request is answered otherwise")
    if server.metrics().get("cadans_engine_restarts_total"):
        problems.append("the engine was restarted")
    return statuses, problems


def sanitized(target, path):
    """Builds a target with the address and undefined-behaviour sanitizers; its path."""
    if not (ROOT / "build/dev/build.ninja").exists():
        subprocess.run(["cmake", "--preset", "dev"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", "build/dev", "--quiet", target], cwd=ROOT, check=True)
    return ROOT / "build/dev" / path


def prove(evidence):
    import models
    binary = sanitized("cadans", "cadans")
    server = Server(models.tiny("llama", "q8_0"), "--context", 256, env={"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1"})
    server.command[0] = str(binary)
    with server:
        for part in range(10):
            statuses, problems = post_all(server, range(part * 1000, part * 1000 + 1000))
            evidence.row(f"seeds {part * 1000} to {part * 1000 + 999}", **{f"status_{s}": n for s, n in sorted(statuses.items())}, problems=len(problems))
            for problem in problems[:5]:
                evidence.require(False, problem)
            if server.process.poll() is not None:
                return
        code = server.stop()
        evidence.require(code == 0, f"the server ended with {code} (a leak or a sanitizer's finding): {server.said()[-1500:]}")
