"""Templates given on the command line: they take the place of what a model's file has."""
import json

import pytest

import models
from server import Server, run

ASK = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def plain(tmp_path):
    """Writes a template that begins with a word and knows no turns."""
    def write(word):
        path = tmp_path / f"{word}.jinja"
        path.write_text(word + ":{% for m in messages %}{{ m['content'] }}{% endfor %}")
        return path
    return write


def prompt(server, model):
    return server.ok("/apply-template", {**ASK, "model": model})["prompt"]


def test_one_for_all_and_one_for_one(plain):
    path = models.tiny("llama", "q8_0")
    with Server([f"a={path}", f"b={path}"], "--chat-template", f"b={plain('only')}", "--chat-template", plain("all")) as server:
        assert (prompt(server, "a"), prompt(server, "b")) == ("all:hi", "only:hi")
    with Server([f"a={path}", f"b={path}"], "--chat-template", f"b={plain('only')}") as server:
        assert prompt(server, "b") == "only:hi" and prompt(server, "a").startswith("<|im_start|>user\nhi"), "the other keeps its own"


def test_the_configuration_and_the_environment_name_them_too(plain, tmp_path):
    path = models.tiny("llama", "q8_0")
    settings = tmp_path / "cadans.toml"
    settings.write_text(f"chat-template = ['{plain('all')}', 'b={plain('only')}']\n")
    with Server([f"a={path}", f"b={path}"], "--config", settings) as server:
        assert (prompt(server, "a"), prompt(server, "b")) == ("all:hi", "only:hi")
    with Server(path, env={"CADANS_CHAT_TEMPLATE": str(plain("all"))}) as server:
        assert prompt(server, "default") == "all:hi"


def test_run_takes_one(plain):
    path, counts = models.tiny("llama", "q8_0"), []
    for flags in ([], ["--chat-template", plain("w" * 200)]):
        result = run("run", *flags, path, "hi", "--max-tokens", "2", "--json")
        assert result.returncode == 0, result.stderr
        counts.append(json.loads(result.stdout)["prompt_tokens"])
    assert counts[1] > counts[0] + 20


def test_what_cannot_be_used_is_named(plain, tmp_path):
    path, broken = models.tiny("llama", "q8_0"), tmp_path / "broken.jinja"
    broken.write_text("{% for m in messages %}")
    for flag, words in ((broken, ["broken.jinja"]), (f"c={plain('all')}", ["'c'", "--chat-template"]), (tmp_path / "none.jinja", ["none.jinja"])):
        result = run("serve", "--model", f"a={path}", "--chat-template", flag, "--port", "0")
        assert result.returncode == 1 and all(word in result.stderr for word in words), result.stderr


def test_a_file_whose_own_is_broken_can_be_served_with_another(plain, tmp_path):
    path = tmp_path / "odd.gguf"
    path.write_bytes(models.tiny("llama", "q8_0").read_bytes().replace(b"{% endfor %}", b"{% endfox %}"))
    result = run("serve", "--model", path, "--port", "0")
    assert result.returncode == 1 and "--chat-template" in result.stderr, result.stderr
    with Server(path, "--chat-template", plain("all")) as server:
        assert prompt(server, "odd") == "all:hi"


# B32: templates that refuse some conversations. To one that knows no tools their results are told as words of the user.

GEMMA2 = ("{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('No system role here') }}{% endif %}"
          "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles take turns: user, assistant, user') }}{% endif %}"
          "<start_of_turn>{{ m['role'] }}\n{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}")
SAYS = {"gemma2": (GEMMA2, {"system": "No system role here", "two of a user": "take turns", "assistant first": "take turns", "developer": "No system role here"}),
        "mistral": ((models.HERE / "integration" / "tool_templates" / "mistral.jinja").read_text(), {"a result without a call": "Tool call IDs should be"})}
U, A = {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}
CONVERSATIONS = {
    "plain": [U, A, U], "system": [{"role": "system", "content": "s"}, U], "developer": [{"role": "developer", "content": "d"}, U], "two of a user": [U, U], "assistant first": [A, U],
    "a result without a call": [U, A, {"role": "tool", "tool_call_id": "x", "content": "r"}], "parts": [{"role": "user", "content": [{"type": "text", "text": "p"}]}],
    "no such role": [{"role": "wizard", "content": "w"}], "null": [{"role": "user", "content": None}], "none": [],
}
REFUSED_ANYWAY = {"no such role", "null", "none"}   # by the dialect, before any template


@pytest.mark.parametrize("kind", SAYS)
def test_what_a_template_refuses_is_told_with_its_words_and_the_place(kind, tmp_path):
    source, refusals = SAYS[kind]
    path = tmp_path / "strict.jinja"
    path.write_text(source)
    with Server(models.tiny("llama", "q8_0"), "--chat-template", path) as server:
        for name, messages in CONVERSATIONS.items():
            status, answer = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1})
            ollama = server.post("/api/chat", {"messages": messages, "stream": False, "options": {"num_predict": 1}})
            if name in refusals:
                assert status == ollama[0] == 400 and refusals[name] in answer["error"]["message"], (name, answer)
                assert answer["error"]["param"].startswith("messages["), (name, answer)
                assert refusals[name] in str(ollama[1]), (name, ollama)
            elif name in REFUSED_ANYWAY:
                assert status == 400 and answer["error"]["param"].startswith("messages"), (name, answer)
            else:
                assert status == 200, (name, answer)
            assert server.ok("/v1/chat/completions", {"messages": [U], "max_tokens": 1})["choices"]
