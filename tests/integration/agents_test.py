"""Coding agents' requests, in the shapes that public reports and sources of opencode and Cline show; the words are our own.

opencode sends OpenAI chat through the AI SDK: schemas as zod and Effect write them ($schema, safe-integer bounds, records,
additionalProperties false), results as tool messages, a small request without tools for the title. Cline sends tools with
strict false and content in parts; its Ollama provider asks /api/chat without tools and reads the two counts.
"""
import json

import jsonschema
import pytest

from integration.tools_test import joined, serve

SAFE = 2 ** 53 - 1
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def zod(required, **properties):
    return {"$schema": DRAFT, "type": "object", "properties": properties, "required": required, "additionalProperties": False}


def text(about):
    return {"description": about, "type": "string"}


OPENCODE = {
    "bash": zod(["command", "description"], command=text("What to run"), timeout={"description": "Milliseconds", "type": "integer", "exclusiveMinimum": 0, "maximum": SAFE},
                workdir=text("Where to run it"), description=text("What it does, in a few words")),
    "read": zod(["filePath"], filePath=text("The file"), offset={"type": "integer", "minimum": -SAFE, "maximum": SAFE}, limit={"type": "number"}),
    "edit": zod(["filePath", "oldString", "newString"], filePath=text("The file"), oldString=text("What stands there"), newString=text("What is to stand there"),
                replaceAll={"description": "All of them", "type": "boolean"}),
    "glob": zod(["pattern"], pattern=text("Which files"), path=text("Where")),
    "todowrite": zod(["todos"], todos={"type": "array", "items": {
        "type": "object", "properties": {"content": text("What is to be done"), "status": text("How far it is"),
                                         "priority": {"type": "string", "enum": ["high", "medium", "low"]}, "id": {"type": "string", "minLength": 1}},
        "required": ["content", "status", "priority", "id"], "additionalProperties": False}}),
    "webfetch": zod(["url", "format"], url=text("Where"), format={"default": "markdown", "type": "string", "enum": ["text", "markdown", "html"]}, timeout={"type": "number"}),
    "task": zod(["description", "prompt", "subagent_type"], description=text("A few words"), prompt=text("The task"), subagent_type=text("Who"),
                metadata={"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {}}),
    "server_search": {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Limit"}},
                      "required": ["query"], "title": "searchArguments", "$schema": "http://json-schema.org/draft-07/schema#"},
}


def cline(required, **properties):
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


CLINE = {
    "execute_command": cline(["command", "requires_approval"], command={"type": "string", "description": "What to run"},
                             requires_approval={"type": "boolean", "description": "Whether a person is asked"}, timeout={"type": "integer", "description": "Seconds"}),
    "read_file": cline(["path"], path={"type": "string", "description": "The file"}, task_progress={"type": "string", "description": "A checklist"}),
    "ask_followup_question": cline(["question", "options"], question={"type": "string", "description": "The question"},
                                   options={"type": "array", "description": "Answers to choose from", "items": {"type": "string"}}),
    "attempt_completion": cline(["result"], result={"type": "string", "description": "What was done"}),
    "c9tRxA0mcp0get_forecast": cline(["latitude"], latitude={"type": "number", "description": "Where", "minimum": -90, "maximum": 90}),
    "plan_mode_respond": cline([]),
}


def functions(schemas, **more):
    return [{"type": "function", "function": {"name": name, "description": f"Does {name}.", **more, "parameters": schema}} for name, schema in schemas.items()]


@pytest.fixture(scope="module", params=["hermes", "llama3", "gpt_oss", "none"])
def server(request):
    with serve(request.param, 12288) as started:
        started.style = request.param
        yield started


def check(calls, schemas):
    for call in calls:
        jsonschema.validate(json.loads(call["arguments"]), schemas[call["name"]])


def talk(server, body, schemas, results, rounds=3, seeds=range(5)):
    """A conversation as an agent goes on with one: streamed, and the same not streamed. How many turns had calls."""
    called = 0
    # Random weights seldom end a string, and with channels they seldom come to call ("commentary"): that they do is ours.
    liked = {'"': 6, "c": 4} if server.style == "gpt_oss" else {'"': 6}
    bias = {str(server.ok("/tokenize", {"content": text})["tokens"][0]): more for text, more in liked.items()}
    for seed in seeds:
        messages = list(body["messages"])
        for turn in range(rounds):
            asked = {**body, "messages": messages, "seed": seed * 10 + turn, "max_tokens": 500, "logit_bias": bias,
                     **({"tool_choice": "required"} if turn < rounds - 1 else {})}
            frames = server.stream("/v1/chat/completions", asked)
            assert frames[-1] == "[DONE]" and frames[-2]["usage"]["total_tokens"] > 0 and frames[-2]["choices"] == []
            content, calls, finishes = joined(frames)
            whole = server.ok("/v1/chat/completions", {k: v for k, v in {**asked, "stream": False}.items() if k != "stream_options"})["choices"][0]
            assert finishes[-1] == whole["finish_reason"]
            if finishes[-1] != "tool_calls":
                break
            assert [(c["name"], c["arguments"]) for c in calls] == [(c["function"]["name"], c["function"]["arguments"]) for c in whole["message"]["tool_calls"]]
            check(calls, schemas)
            called += 1
            messages.append({"role": "assistant", "content": content, "tool_calls": [
                {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls]})
            messages += results(calls)
    return called


def test_opencode(server):
    body = {"model": "default", "temperature": 1, "top_p": 1, "tools": functions(OPENCODE), "tool_choice": "auto", "stream": True, "stream_options": {"include_usage": True},
            "messages": [{"role": "system", "content": "You help with code."}, {"role": "system", "content": "<env>\n  Platform: linux\n</env>"},
                         {"role": "user", "content": "Which tests fail?"}]}
    results = lambda calls: [{"role": "tool", "tool_call_id": call["id"], "content": "<file>\n00001| a\n</file>"} for call in calls]
    assert talk(server, body, OPENCODE, results) >= 2
    title = server.stream("/v1/chat/completions", {"model": "default", "max_tokens": 20, "stream": True, "stream_options": {"include_usage": True}, "messages": [
        {"role": "system", "content": "You name conversations."}, {"role": "user", "content": "Name this one:\n"}, {"role": "user", "content": "Which tests fail?"}]})
    assert title[-1] == "[DONE]"


def test_cline(server):
    body = {"model": "default", "temperature": 1, "tools": functions(CLINE, strict=False), "tool_choice": "auto", "parallel_tool_calls": False, "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "system", "content": "You help with code."},
                         {"role": "user", "content": [{"type": "text", "text": "<task>\nList the files\n</task>"}, {"type": "text", "text": "<environment_details>\n# Time\nnow\n</environment_details>"}]}]}

    def results(calls):
        assert len(calls) == 1
        return [{"role": "tool", "tool_call_id": calls[0]["id"], "content": "[read_file] Result:\na"},
                {"role": "user", "content": [{"type": "text", "text": "<environment_details>\n# Time\nlater\n</environment_details>"}]}]
    assert talk(server, body, CLINE, results) >= 2


def test_clines_ollama_provider(server):
    asked = {"model": "default", "stream": True, "options": {"num_ctx": 2048, "num_predict": 30}, "messages": [
        {"role": "system", "content": "Tools are called as <read_file><path>…</path></read_file>."}, {"role": "user", "content": "List the files", "images": []}]}
    lines = server.stream("/api/chat", asked)
    assert all(isinstance(line["message"]["content"], str) for line in lines)
    assert lines[-1]["done"] and lines[-1]["prompt_eval_count"] > 10 and 1 <= lines[-1]["eval_count"] <= 30
