"""Anthropic's official client holds a conversation with tools, streamed and not."""
import json
import subprocess

import jsonschema
import pytest

import models
from integration.tools_test import LIGHT, SCHEMAS, TEMPLATES, WEATHER
from server import Server

TOOLS = [{"name": "get_weather", "description": "The weather of a city.", "input_schema": WEATHER}, {"name": "set_light", "input_schema": LIGHT},
         {"name": "now", "input_schema": {"type": "object", "properties": {}}}]
MESSAGES = [{"role": "user", "content": "How is the weather, and put the light on"}]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client():
    import anthropic
    with Server(models.tiny("llama3", "q8_0", untied=True), "--context", 2048, "--chat-template", TEMPLATES / "hermes.jinja") as server:
        with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as made:
            yield made


def ask(client, stream, **body):
    if not stream:
        return client.messages.create(model="default", max_tokens=400, **body)
    with client.messages.stream(model="default", max_tokens=400, **body) as events:
        for _ in events:
            pass
        return events.get_final_message()


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_with_tools(client, stream):
    talked = 0
    for seed in range(6):
        messages = list(MESSAGES)
        for turn in range(3):
            choice = {"type": "any" if turn < 2 else "auto"}
            answer = ask(client, stream, messages=messages, tools=TOOLS, tool_choice=choice, system="Be brief.", extra_body={"seed": seed * 10 + turn})
            assert answer.role == "assistant" and answer.usage.output_tokens > 0
            if answer.stop_reason != "tool_use":
                break
            calls = [block for block in answer.content if block.type == "tool_use"]
            assert calls and len({call.id for call in calls}) == len(calls)
            talked += 1
            for call in calls:
                jsonschema.validate(call.input, SCHEMAS[call.name])
            messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
            messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": json.dumps({"ok": call.name})} for call in calls]})
    assert talked >= 6


def test_streamed_is_the_same_as_whole(client):
    for seed in range(4):
        body = dict(messages=MESSAGES, tools=TOOLS, tool_choice={"type": "any"}, extra_body={"seed": seed})
        whole, streamed = ask(client, False, **body), ask(client, True, **body)
        shown = lambda answer: [(b.type, getattr(b, "text", None), getattr(b, "name", None), getattr(b, "input", None)) for b in answer.content]
        if whole.stop_reason == "tool_use":
            assert shown(whole) == shown(streamed)
        assert whole.stop_reason == streamed.stop_reason and whole.usage.output_tokens == streamed.usage.output_tokens


def test_counts_tokens_and_sees_errors_as_its_own_kinds(client):
    import anthropic
    few = client.messages.count_tokens(model="default", messages=MESSAGES).input_tokens
    many = client.messages.count_tokens(model="default", messages=MESSAGES, tools=TOOLS).input_tokens
    assert 5 < few < many
    answer = client.messages.create(model="default", max_tokens=3, messages=MESSAGES)
    assert answer.usage.input_tokens + answer.usage.cache_read_input_tokens == few and answer.stop_reason in ("max_tokens", "end_turn")
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(model="no-such-model", max_tokens=3, messages=MESSAGES)
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model="default", max_tokens=3, messages=[])


def test_the_npm_client_holds_a_conversation(client):
    node, script = models.HERE.parent / ".venv" / "bin" / "node", models.HERE / "clients" / "anthropic_client.mjs"
    if not node.exists():
        pytest.skip("Node is not installed (tools/setup test)")
    result = subprocess.run([str(node), str(script), str(client.base_url).rstrip("/"), json.dumps(TOOLS)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    called = [turn for turn in seen["turns"] if turn["whole"]["stop"] == "tool_use"]
    assert len(called) >= 6 and any(turn["turn"] == 1 for turn in called), "a conversation goes on behind its results"
    for turn in called:
        whole, streamed = turn["whole"], turn["streamed"]
        named = lambda answer: [(call["name"], call["input"]) for call in answer["calls"]]
        assert named(whole) == named(streamed) != [] and (whole["stop"], whole["tokens"], whole["text"]) == (streamed["stop"], streamed["tokens"], streamed["text"])
        assert len({call["id"] for call in whole["calls"]}) == len(whole["calls"])
        for call in whole["calls"]:
            jsonschema.validate(call["input"], SCHEMAS[call["name"]])
        assert (turn["first"], turn["last"]) == ("message_start", "message_stop")
    assert 3 < seen["few"] < seen["many"]
    assert seen["missing"] == {"kind": "NotFoundError", "status": 404, "type": "not_found_error"}
    assert seen["bad"] == {"kind": "BadRequestError", "status": 400, "type": "invalid_request_error"}
