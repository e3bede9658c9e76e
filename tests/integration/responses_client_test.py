"""OpenAI's official client holds a conversation over the responses route, streamed and not."""
import json

import jsonschema
import pytest

import models
from integration.tools_test import LIGHT, SCHEMAS, TEMPLATES, WEATHER
from server import Server

TOOLS = [{"type": "function", "name": "get_weather", "description": "The weather of a city.", "parameters": WEATHER, "strict": True},
         {"type": "function", "name": "set_light", "parameters": LIGHT, "strict": True}, {"type": "function", "name": "now", "parameters": {}, "strict": True}]
ASK = [{"role": "user", "content": "How is the weather, and put the light on"}]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client():
    import openai
    with Server(models.tiny("llama3", "q8_0", untied=True), "--context", 2048, "--chat-template", TEMPLATES / "hermes.jinja") as server:
        with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as made:
            yield made


def ask(client, stream, seed, **body):
    body = dict(model="default", max_output_tokens=400, extra_body={"seed": seed}, **body)
    if not stream:
        return client.responses.create(**body)
    last = None
    for event in client.responses.create(**body, stream=True):
        last = event
    assert last.type in ("response.completed", "response.incomplete")
    return last.response


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_with_tools(client, stream):
    talked = 0
    for seed in range(6):
        items = list(ASK)
        for turn in range(2):
            answer = ask(client, stream, seed * 10 + turn, input=items, tools=TOOLS, tool_choice="required", instructions="Be brief.")
            calls = [item for item in answer.output if item.type == "function_call"]
            if answer.status != "completed":
                break
            assert calls and answer.usage.output_tokens > 0
            talked += 1
            items += [item.model_dump(exclude_none=True) for item in answer.output]
            for call in calls:
                jsonschema.validate(json.loads(call.arguments), SCHEMAS[call.name])
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": json.dumps({"ok": call.name})})
    assert talked >= 6


def test_streamed_is_the_same_as_whole_and_the_helper_agrees(client):
    for seed in range(4):
        whole = client.responses.create(model="default", input="Hello", max_output_tokens=20, extra_body={"seed": seed})
        with client.responses.stream(model="default", input="Hello", max_output_tokens=20, extra_body={"seed": seed}) as events:
            text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert text == whole.output_text and whole.usage.input_tokens > 0


def test_text_of_a_form(client):
    schema = {"type": "object", "properties": {"room": {"enum": ["hall", "attic"]}, "on": {"type": "boolean"}}, "required": ["room", "on"], "additionalProperties": False}
    for seed in range(4):
        answer = client.responses.create(model="default", input="Light?", text={"format": {"type": "json_schema", "name": "light", "schema": schema, "strict": True}},
                                         max_output_tokens=300, extra_body={"seed": seed})
        if answer.status == "completed":
            jsonschema.validate(json.loads(answer.output_text), schema)
