"""Home Assistant's two integrations, by the shapes of their messages: what they send, and how little of a frame they read.

Source  homeassistant/components/{llama_cpp,ollama} of home-assistant/core, 2026: the set-up's probe, the loop over tools, and the reading
        of streams, which looks at the first call of a frame, at no words beside one, and at nothing in the frame that finishes
"""
import json

import jsonschema
import pytest

import models
from integration.tools_test import LIGHT, TEMPLATES
from server import Server

SET_AREA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "domain": {"type": "array", "items": {"enum": ["light", "fan"]}, "maxItems": 2},
                                             "brightness": {"type": "integer", "minimum": 0, "maximum": 100, "nullable": True}}, "required": []}
TOOLS = [{"type": "function", "function": {"name": "HassTurnOn", "parameters": SET_AREA, "description": "Turns on a device"}},
         {"type": "function", "function": {"name": "HassLight", "parameters": LIGHT}}, {"type": "function", "function": {"name": "GetLiveContext", "parameters": {"type": "object", "properties": {}}}}]
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
TALK = [{"role": "system", "content": "You control a house."}, {"role": "user", "content": "Put the light on"}]


@pytest.fixture(scope="module", params=["hermes", "llama3", "mistral", "none"])
def server(request):
    with Server(models.tiny("llama3", "q8_0", untied=True), "--context", 4096, "--chat-template", TEMPLATES / f"{request.param}.jinja") as started:
        yield started


def test_the_probe_of_the_set_up_passes(server):
    body = {"model": "default", "messages": [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": "What is the capital of France?"}],
            "tools": [{"type": "function", "function": {"name": "test_function", "description": "Test function.", "parameters": {"type": "object", "properties": {}}}}], "max_tokens": 3}
    assert server.ok("/v1/chat/completions", body)["choices"][0]["finish_reason"] in ("stop", "length")
    frames = server.stream("/v1/chat/completions", {**body, "stream": True})
    assert frames[-1] == "[DONE]" and frames[-2]["choices"][0]["finish_reason"]


def as_home_assistant_reads(frames):
    """(words, calls as (id, name, arguments)) of a stream."""
    words, calls, current = "", [], None
    for frame in frames:
        if frame == "[DONE]" or not frame["choices"]:
            continue
        choice = frame["choices"][0]
        if choice["finish_reason"]:
            break
        delta = choice["delta"]
        found = delta.get("tool_calls")
        if current is None and not found:
            words += delta.get("content") or ""
            continue
        if not found:
            continue
        if current is not None and found[0]["index"] == current["index"]:
            current["arguments"] += found[0]["function"]["arguments"]
            continue
        current = {"index": found[0]["index"], "id": found[0]["id"], "name": found[0]["function"]["name"], "arguments": found[0]["function"]["arguments"]}
        calls.append(current)
    return words, [(call["id"], call["name"], json.loads(call["arguments"]) if call["arguments"] else {}) for call in calls]


@pytest.mark.parametrize("choice", ["required", "auto"])
def test_the_loop_of_the_llama_cpp_integration(server, choice):
    """It always asks with auto; a model with random weights calls when it must, so that is asked too."""
    rounds = 0
    for seed in range(4):
        messages = list(TALK)
        for turn in range(3):
            body = {"model": "default", "messages": messages, "tools": TOOLS, "tool_choice": choice, "max_tokens": 300, "top_p": 1, "temperature": 1, "user": "conversation-1", "seed": seed * 10 + turn}
            whole = server.ok("/v1/chat/completions", body)["choices"][0]
            if whole["finish_reason"] == "length":
                break
            words, calls = as_home_assistant_reads(server.stream("/v1/chat/completions", {**body, "stream": True}))
            assert words == (whole["message"]["content"] or "")
            assert [(name, arguments) for _, name, arguments in calls] == [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in whole["message"].get("tool_calls", [])]
            if not calls:
                break
            rounds += 1
            for _, name, arguments in calls:
                jsonschema.validate(arguments, SCHEMAS[name])
            messages.append({"role": "assistant", "content": words, "tool_calls": [{"type": "function", "id": i, "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls]})
            messages += [{"role": "tool", "tool_call_id": i, "content": json.dumps({"data": {"success": True}, "error": None})} for i, _, _ in calls]
    assert rounds >= 4 or choice == "auto"


def test_the_loop_of_the_ollama_integration(server):
    """Results come back without a name and without an id; a thought that was not had is null."""
    messages = TALK + [{"role": "assistant", "content": None, "thinking": None, "tool_calls": [{"function": {"name": "HassLight", "arguments": {"room": "hall", "on": True}}}, {"function": {"name": "GetLiveContext", "arguments": {}}}]},
                       {"role": "tool", "content": json.dumps({"data": 1, "error": None})}, {"role": "tool", "content": json.dumps({"data": 2, "error": None})}]
    for keep_alive in (-1, "300s"):
        parts = server.stream("/api/chat", {"model": "default", "messages": messages, "tools": TOOLS, "stream": True, "keep_alive": keep_alive, "think": None, "format": None,
                                            "options": {"num_ctx": 4096, "num_predict": 60}})
        assert parts[-1]["done"] and all("content" in part["message"] for part in parts)
        for part in parts:
            for call in part["message"].get("tool_calls", []):
                jsonschema.validate(call["function"]["arguments"], SCHEMAS[call["function"]["name"]])


def test_a_task_with_a_structure(server):
    structure = {"type": "object", "properties": {"summary": {"type": "string", "maxLength": 20}, "count": {"type": "number", "nullable": True}}, "required": ["summary"]}
    for seed in range(4):
        answer = server.ok("/v1/chat/completions", {"messages": TALK, "max_tokens": 300, "seed": seed, "response_format": {"type": "json_schema", "json_schema": {"name": "task", "strict": True, "schema": structure}}})["choices"][0]
        if answer["finish_reason"] == "stop":
            jsonschema.validate(json.loads(answer["message"]["content"]), structure)
        ollama = server.ok("/api/chat", {"messages": TALK, "stream": False, "format": structure, "options": {"seed": seed, "num_predict": 300}})
        if ollama["done_reason"] == "stop":
            jsonschema.validate(json.loads(ollama["message"]["content"]), structure)
