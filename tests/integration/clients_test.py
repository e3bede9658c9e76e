"""The official clients of both dialects, in Python and in JavaScript, streaming and not."""
import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
NODE, CLIENTS = ROOT / ".venv" / "bin" / "node", ROOT / "tests" / "clients"
MESSAGES = [{"role": "user", "content": "The river"}]
pytestmark = pytest.mark.slow


def script(name, server):
    if not NODE.exists():
        pytest.skip("Node is not installed (tools/setup test)")
    result = subprocess.run([str(NODE), str(CLIENTS / name), server.url], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def openai_npm(steady):
    return script("openai_client.mjs", steady)


@pytest.fixture(scope="module")
def ollama_npm(steady):
    return script("ollama_client.mjs", steady)


class TestOpenAiInJavaScript:
    def test_chats(self, openai_npm):
        chat = openai_npm["chat"]
        assert chat["role"] == "assistant" and chat["finish"] == "length" and chat["usage"]["completion_tokens"] == 6
        assert chat["usage"]["total_tokens"] == chat["usage"]["prompt_tokens"] + 6

    def test_streams_the_same_text(self, openai_npm):
        assert openai_npm["stream"]["text"] == openai_npm["chat"]["text"] == openai_npm["helper"]
        assert openai_npm["stream"]["finish"] == ["length"]

    def test_gets_the_usage_frame(self, openai_npm):
        assert openai_npm["stream"]["usage_choices"] == 0
        assert openai_npm["stream"]["usage"]["total_tokens"] == openai_npm["chat"]["usage"]["total_tokens"]

    def test_completes(self, openai_npm):
        assert " river" in openai_npm["completion"]["text"] and len(openai_npm["completion"]["logprobs"]["token_logprobs"]) == 6

    def test_gets_logprobs_of_a_chat(self, openai_npm):
        assert len(openai_npm["logprobs"]) == 3
        assert all(t["logprob"] <= 0 and t["top"] == 2 and isinstance(t["bytes"], list) for t in openai_npm["logprobs"])

    def test_sees_errors_as_its_own_kinds(self, openai_npm):
        assert openai_npm["missing"] == {"status": 404, "code": "model_not_found", "kind": "NotFoundError"}
        assert openai_npm["long"] == {"status": 400, "code": "context_length_exceeded", "kind": "BadRequestError"}

    def test_goes_on_after_a_cut_stream(self, openai_npm):
        assert openai_npm["after_cut"] == 1


class TestOllamaInJavaScript:
    def test_lists_and_shows(self, ollama_npm):
        assert ollama_npm["list"] == ollama_npm["ps"] and ollama_npm["list"][0].endswith(":latest") and ollama_npm["version"]
        assert ollama_npm["show"]["family"] == "llama" and ollama_npm["show"]["keys"] > 3

    def test_chats_with_durations(self, ollama_npm):
        chat = ollama_npm["chat"]
        assert chat["done"] is True and chat["done_reason"] == "length" and chat["eval_count"] == 6
        for name in ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_duration"):
            assert isinstance(chat[name], int)

    def test_streams_the_same_text(self, ollama_npm):
        assert ollama_npm["stream"]["text"] == ollama_npm["chat"]["message"]["content"]
        assert ollama_npm["stream"]["done"][-1] is True and not any(ollama_npm["stream"]["done"][:-1])

    def test_generates(self, ollama_npm):
        assert ollama_npm["generate_stream"] == ollama_npm["generate"]["response"] != ""

    def test_sees_a_missing_model(self, ollama_npm):
        assert ollama_npm["missing"]["status"] == 404 and "no-such-model" in ollama_npm["missing"]["message"]


class TestOpenAiInPython:
    @pytest.fixture
    def client(self, steady):
        import openai
        with openai.OpenAI(base_url=steady.url + "/v1", api_key="none", max_retries=0) as client:
            yield client

    def test_chats_and_streams_the_same(self, client):
        model = client.models.list().data[0].id
        body = dict(model=model, messages=MESSAGES, max_tokens=6, temperature=0)
        whole = client.chat.completions.create(**body)
        frames = list(client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True}))
        assert "".join(f.choices[0].delta.content or "" for f in frames if f.choices) == whole.choices[0].message.content
        assert frames[-1].usage.total_tokens == whole.usage.total_tokens and whole.usage.prompt_tokens_details.cached_tokens >= 0

    def test_completes_and_streams_the_same(self, client):
        body = dict(model="default", prompt="The river", max_tokens=6, temperature=0)
        assert "".join(f.choices[0].text for f in client.completions.create(**body, stream=True)) == client.completions.create(**body).choices[0].text

    def test_sees_errors_as_its_own_kinds(self, client):
        import openai
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="no-such-model", messages=MESSAGES)
        with pytest.raises(openai.BadRequestError):
            client.completions.create(model="default", prompt=[10**9])

    def test_reads_the_answer_in_strict_mode(self, client):
        """Every field of the answer is one that the client's own types know, or one that interfaces of ours name."""
        whole = client.chat.completions.create(model="default", messages=MESSAGES, max_tokens=2)
        assert set(whole.model_extra or {}) <= {"timings", "cadans", "prompt_token_ids"}


class TestOllamaInPython:
    @pytest.fixture
    def client(self, steady):
        import ollama
        return ollama.Client(host=steady.url)

    def test_chats_and_streams_the_same(self, client):
        model = client.list().models[0].model
        body = dict(model=model, messages=MESSAGES, options={"temperature": 0, "num_predict": 6})
        whole = client.chat(**body)
        parts = list(client.chat(**body, stream=True))
        assert "".join(p.message.content for p in parts) == whole.message.content and parts[-1].eval_count == 6
        assert whole.total_duration >= whole.prompt_eval_duration + whole.eval_duration

    def test_generates_by_name_with_and_without_latest(self, client):
        name = client.list().models[0].model.removesuffix(":latest")
        texts = {client.generate(model=m, prompt="The river", options={"temperature": 0, "num_predict": 6}).response for m in (name, name + ":latest")}
        assert len(texts) == 1

    def test_sees_a_missing_model(self, client):
        import ollama
        with pytest.raises(ollama.ResponseError) as error:
            client.chat(model="no-such-model", messages=MESSAGES)
        assert error.value.status_code == 404


@pytest.mark.real_model
class TestTheDefaultModel:
    QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]

    def test_answers_the_openai_client(self, smollm2):
        import openai
        with openai.OpenAI(base_url=smollm2.url + "/v1", api_key="none") as client:
            answer = client.chat.completions.create(model="default", messages=self.QUESTION, max_tokens=20, temperature=0)
        assert "Paris" in answer.choices[0].message.content

    def test_answers_the_ollama_client(self, smollm2):
        import ollama
        client = ollama.Client(host=smollm2.url)
        answer = client.chat(model=client.list().models[0].model, messages=self.QUESTION, options={"temperature": 0, "num_predict": 20, "repeat_penalty": 1})   # 1.1 is its default
        assert "Paris" in answer.message.content and answer.eval_count > 0

    def test_answers_the_npm_clients(self, smollm2):
        assert script("openai_client.mjs", smollm2)["chat"]["text"] and script("ollama_client.mjs", smollm2)["chat"]["message"]["content"]

    def test_answers_curl(self, smollm2):
        result = subprocess.run(["curl", "-sS", smollm2.url + "/v1/chat/completions", "-H", "Content-Type: application/json", "-d",
                                 json.dumps({"messages": self.QUESTION, "max_tokens": 20, "temperature": 0})], capture_output=True, text=True, timeout=60)
        assert "Paris" in json.loads(result.stdout)["choices"][0]["message"]["content"]

    def test_ends_by_itself_with_stop(self, smollm2):
        answer = smollm2.ok("/v1/chat/completions", {"messages": self.QUESTION, "temperature": 0, "max_tokens": 200})
        assert answer["choices"][0]["finish_reason"] == "stop" and "<|im_end|>" not in answer["choices"][0]["message"]["content"]


@pytest.mark.real_model
def test_a_model_without_a_template_completes_and_says_so_about_chat():
    import models
    from server import Server
    with Server(models.real("gemma3"), "--context", "2048") as server:
        assert server.ok("/v1/completions", {"prompt": "The capital of France is", "max_tokens": 3, "temperature": 0})["choices"][0]["text"]
        status, answer = server.post("/v1/chat/completions", {"messages": TestTheDefaultModel.QUESTION})
        assert status == 400 and "template" in answer["error"]["message"]
