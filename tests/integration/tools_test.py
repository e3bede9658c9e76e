"""Tools from outside: official clients hold a conversation with two tools, streamed and not, through each model's own call format."""
import json
import subprocess

import jsonschema
import pytest

import models
from server import Server

TEMPLATES = models.HERE / "integration" / "tool_templates"
WEATHER = {"type": "object", "properties": {"city": {"enum": ["Ghent", "Lyon", "Köln"]}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
           "required": ["city", "days"], "additionalProperties": False}
LIGHT = {"type": "object", "properties": {"room": {"type": "string", "pattern": "^[a-z]{1,8}$"}, "on": {"type": "boolean"}}, "required": ["room", "on"],
         "additionalProperties": False}
SCHEMAS = {"get_weather": WEATHER, "set_light": LIGHT, "now": {"type": "object", "maxProperties": 0}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": WEATHER}},
         {"type": "function", "function": {"name": "set_light", "description": "Switches a light.", "parameters": LIGHT}},
         {"type": "function", "function": {"name": "now", "description": "The time."}}]
MESSAGES = [{"role": "user", "content": "How is the weather, and put the light on"}]
STYLES = ["hermes", "llama3", "mistral", "mistral_args", "gpt_oss", "function_gemma", "gemma4", "none"]
ONE_CALL = ("llama3", "gpt_oss")   # styles with one call an answer
SEEDS = range(6)
# Whose random weights call more than once, or call at all instead of thinking without an end; else the first.
WEIGHTS = {"hermes": 2, "mistral_args": 3, "gpt_oss": 2, "function_gemma": 3, "gemma4": 6}


def serve(style, context):
    return Server(models.tiny("llama3", "q8_0", untied=True, seed=WEIGHTS.get(style, 1)), "--context", context, "--chat-template", TEMPLATES / f"{style}.jinja")


@pytest.fixture(scope="module", params=STYLES)
def server(request):
    with serve(request.param, 2048) as started:
        started.style = request.param
        yield started


def check_call(name, arguments, given=SCHEMAS):
    jsonschema.validate(arguments, given[name])


def chat(server, **more):
    return server.ok("/v1/chat/completions", {"messages": MESSAGES, "tools": TOOLS, "max_tokens": 400, **more})["choices"][0]


def joined(frames):
    """(content, calls by index, finish reasons) of a stream, after checking what each delta may hold."""
    content, calls, finishes = "", {}, []
    for frame in frames:
        if frame == "[DONE]" or not frame["choices"]:
            continue
        choice = frame["choices"][0]
        finishes.append(choice["finish_reason"])
        content += choice["delta"].get("content") or ""
        for delta in choice["delta"].get("tool_calls", []):
            if delta["index"] not in calls:
                assert delta["index"] == len(calls), "indices count from 0"
                assert delta["type"] == "function" and delta["id"] and delta["function"]["name"]
                calls[delta["index"]] = {"id": delta["id"], "name": delta["function"]["name"], "arguments": ""}
            else:
                assert "id" not in delta and "type" not in delta and "name" not in delta["function"], "these come once"
            calls[delta["index"]]["arguments"] += delta["function"]["arguments"]
    return content, [calls[i] for i in sorted(calls)], finishes


@pytest.mark.parametrize("seed", SEEDS)
def test_a_required_call_fits_its_schema_streamed_and_not(server, seed):
    body = {"tool_choice": "required", "seed": seed}
    whole = chat(server, **body)
    assert whole["finish_reason"] in ("tool_calls", "length")
    calls = whole["message"].get("tool_calls", [])
    if whole["finish_reason"] == "tool_calls":
        assert calls and whole["message"]["content"] is None
        for call in calls:
            check_call(call["function"]["name"], json.loads(call["function"]["arguments"]))
    assert len({call["id"] for call in calls}) == len(calls)
    frames = server.stream("/v1/chat/completions", {"messages": MESSAGES, "tools": TOOLS, "max_tokens": 400, "stream": True, **body})
    content, streamed, finishes = joined(frames)
    assert content == "" and [(c["name"], c["arguments"]) for c in streamed] == [(c["function"]["name"], c["function"]["arguments"]) for c in calls]
    assert finishes[-1] == whole["finish_reason"] and set(finishes[:-1]) <= {None} and frames[-1] == "[DONE]"


def test_one_by_name_is_that_one_and_one_at_a_time_is_one(server):
    seen = set()
    for seed in SEEDS:
        for name in SCHEMAS:
            answer = chat(server, seed=seed, tool_choice={"type": "function", "function": {"name": name}}, parallel_tool_calls=False)
            if answer["finish_reason"] == "tool_calls":
                [call] = answer["message"]["tool_calls"]
                assert call["function"]["name"] == name
                check_call(name, json.loads(call["function"]["arguments"]))
                seen.add(name)
    assert seen == set(SCHEMAS)


def test_several_calls_come_with_indices_of_their_own(server):
    if server.style in ONE_CALL:
        pytest.skip("this format has one call an answer")
    most = 0
    for seed in range(30):
        most = max(most, len(chat(server, seed=seed, tool_choice="required", tools=TOOLS[2:]).get("message", {}).get("tool_calls", [])))
    assert most >= 2


def test_without_a_must_it_may_be_words(server):
    """A model with random weights says words; they may be cut by their number, and are what they are without tools."""
    for seed in SEEDS:
        answer = chat(server, seed=seed, max_tokens=30)
        assert answer["finish_reason"] in ("stop", "length", "tool_calls")
        frames = server.stream("/v1/chat/completions", {"messages": MESSAGES, "tools": TOOLS, "max_tokens": 30, "stream": True, "seed": seed})
        assert joined(frames)[0] == (answer["message"]["content"] or "")
        none = chat(server, seed=seed, max_tokens=30, tool_choice="none")
        assert "tool_calls" not in none["message"] and none["finish_reason"] != "tool_calls"


def test_tools_and_their_results_are_in_the_prompt(server):
    calls = [{"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Ghent", "days": 2}'}}]
    messages = MESSAGES + [{"role": "assistant", "content": None, "tool_calls": calls}, {"role": "tool", "tool_call_id": "abcdefghi", "content": "sunny <|im_end|>"}]
    prompt = server.ok("/apply-template", {"messages": messages, "tools": TOOLS})["prompt"]
    for part in ("get_weather", "set_light", "Ghent", "sunny <|im_end|>", "maximum"):
        assert part in prompt, prompt
    assert '"{\\"city' not in prompt, "arguments are an object to the template"
    without = server.ok("/apply-template", {"messages": MESSAGES})["prompt"]
    assert "get_weather" not in without
    ids = server.ok("/tokenize", {"messages": messages, "tools": TOOLS})["tokens"]
    end = server.ok("/tokenize", {"content": "<|im_end|>"})["tokens"]
    turns = server.ok("/tokenize", {"messages": [{**m, "content": "x"} for m in messages], "tools": TOOLS})["tokens"]
    assert sum(i == end[0] for i in ids) == sum(i == end[0] for i in turns), "what a tool returns is no control token"
    assert chat(server, messages=messages, max_tokens=5)


def test_ollama_gets_arguments_as_objects(server):
    """That it must call is said by tool_choice, which this route takes beside what Ollama's clients send."""
    body = {"messages": [{"role": "user", "content": "Light"}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "now", "arguments": {}}}]},
                         {"role": "tool", "content": "noon", "tool_name": "now"}], "tools": TOOLS, "options": {"num_predict": 300, "temperature": 1}}
    seen = 0
    for seed in SEEDS:
        asked = {**body, "options": {**body["options"], "seed": seed}, "tool_choice": "required"}
        whole = server.ok("/api/chat", {**asked, "stream": False})
        parts = server.stream("/api/chat", asked)
        streamed = [call["function"] for part in parts for call in part["message"].get("tool_calls", [])]
        assert streamed == [call["function"] for call in whole["message"].get("tool_calls", [])]
        assert [call["index"] for call in streamed] == list(range(len(streamed)))
        for call in streamed:
            seen += 1
            check_call(call["name"], call["arguments"])
        assert whole["done_reason"] in ("stop", "length") and parts[-1]["done"]
        words = server.ok("/api/chat", {**asked, "stream": False, "tool_choice": "auto"})
        assert words["message"]["role"] == "assistant"
    assert seen >= len(SEEDS) // 2


def test_a_schema_that_cannot_be_kept_names_its_tool(server):
    bad = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "string", "pattern": "(?<=a)b"}}}}}
    status, answer = server.post("/v1/chat/completions", {"messages": MESSAGES, "tools": [TOOLS[0], bad]})
    assert status == 400 and answer["error"]["param"] == "tools[1].function.parameters#/properties/x/pattern", answer
    assert server.post("/api/chat", {"messages": MESSAGES, "tools": [bad]})[0] == 400


def test_the_same_call_in_company_and_alone(server):
    import concurrent.futures
    ask = lambda seed: (lambda m: [(c["function"]["name"], c["function"]["arguments"]) for c in m.get("tool_calls", [])])(chat(server, seed=seed, tool_choice="required")["message"])
    alone = [ask(seed) for seed in range(8)]
    assert sum(map(len, alone)) >= 4
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, list(range(8)) * 2)) == alone * 2


# Official clients.

def answer_of(name, arguments):
    return json.dumps({"tool": name, "given": arguments, "result": "fine"})


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_the_openai_client_holds_a_conversation(server, stream):
    import openai
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
        talked = 0
        for seed in range(4):
            messages = list(MESSAGES)
            for turn in range(3):
                body = dict(model="default", messages=messages, tools=TOOLS, tool_choice="required" if turn < 2 else "auto", seed=seed + turn, max_tokens=400)
                if stream:
                    with client.chat.completions.stream(**body, stream_options={"include_usage": True}) as events:
                        for _ in events:
                            pass
                        try:
                            answer = events.get_final_completion()
                        except openai.LengthFinishReasonError:   # words without an end
                            break
                else:
                    answer = client.chat.completions.create(**body)
                choice = answer.choices[0]
                assert answer.usage.completion_tokens > 0
                if choice.finish_reason != "tool_calls":
                    break
                talked += 1
                messages.append(choice.message.model_dump(exclude_none=True))
                for call in choice.message.tool_calls:
                    arguments = json.loads(call.function.arguments)
                    check_call(call.function.name, arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": answer_of(call.function.name, arguments)})
        assert talked >= 4


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_the_ollama_client_holds_a_conversation(server, stream):
    """Its own way in and its own types; only that it must call is put into its request, for it has no word for that.

    Its types leave some of a schema out (minimum, pattern, …): what it sends is what arguments are held to.
    """
    import ollama
    client = ollama.Client(host=server.url)
    talked = 0
    for seed in range(16):   # a string of random weights seldom ends, and this client's schemas have no longest
        if talked >= 3:
            break
        messages = [{"role": "user", "content": "How is the weather, and put the light on"}]
        for turn in range(2):
            asked = ollama._types.ChatRequest(model="default", messages=messages, tools=TOOLS, options={"seed": seed * 10 + turn, "temperature": 1, "num_predict": 300}, stream=stream)
            sent = {**asked.model_dump(exclude_none=True), "tool_choice": "required"}
            given = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in sent["tools"]}
            got = client._request(ollama.ChatResponse, "POST", "/api/chat", json=sent, stream=stream)
            parts = list(got) if stream else [got]
            if parts[-1].done_reason != "stop":
                break
            calls = [call for part in parts for call in part.message.tool_calls or []]
            assert calls
            talked += 1
            messages.append({"role": "assistant", "content": "".join(part.message.content or "" for part in parts), "tool_calls": [call.model_dump() for call in calls]})
            for call in calls:
                check_call(call.function.name, dict(call.function.arguments), given)
                messages.append({"role": "tool", "content": answer_of(call.function.name, {}), "tool_name": call.function.name})
    assert talked >= 3
    plain = client.chat(model="default", messages=messages[:1], tools=TOOLS, options={"num_predict": 20})
    assert plain.message.role == "assistant"


@pytest.mark.slow
def test_the_npm_clients_hold_conversations(server):
    node, clients = models.HERE.parent / ".venv" / "bin" / "node", models.HERE / "clients"
    if not node.exists():
        pytest.skip("Node is not installed (tools/setup test)")
    result = subprocess.run([str(node), str(clients / "tools_client.mjs"), server.url, json.dumps(TOOLS)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    whole = [turn for turn in seen["turns"] if turn["finish"] == "tool_calls"]
    assert len(whole) >= 2
    for turn in whole:
        assert turn["calls"] == turn["streamed"] != []
        for call in turn["calls"]:
            check_call(call["name"], json.loads(call["arguments"]))
    for talk in seen["ollama"]:
        assert talk["whole"] == talk["streamed"] and talk["text"].split() == talk["pieces"].split()
        for call in talk["whole"]:
            check_call(call["name"], call["arguments"])
    assert sum(len(talk["whole"]) for talk in seen["ollama"]) >= 2
