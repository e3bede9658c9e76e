"""The frames of a stream: their fields, their order, and that they add up to the whole answer."""
import http.client
import json
import time

import pytest

import models
from server import Server

CHAT = {"messages": [{"role": "user", "content": "The river"}], "max_tokens": 6, "temperature": 0}
TEXT = {"prompt": "The river keeps", "max_tokens": 6, "temperature": 0}


def text_of(frame, route):
    choice = frame["choices"][0]
    return (choice["delta"].get("content") or "") if "chat" in route else choice["text"]


@pytest.mark.parametrize("route, body", [("/v1/chat/completions", CHAT), ("/v1/completions", TEXT)])
class TestOpenAiStreams:
    def test_joined_frames_are_the_whole_answer(self, steady, route, body):
        whole = steady.ok(route, body)["choices"][0]
        frames = steady.stream(route, {**body, "stream": True})
        assert frames[-1] == "[DONE]"
        joined = "".join(text_of(f, route) for f in frames[:-1] if f["choices"])
        assert joined == (whole["message"]["content"] if "chat" in route else whole["text"])

    def test_each_frame_has_the_same_id_and_one_finish_reason_ends_them(self, steady, route, body):
        frames = [f for f in steady.stream(route, {**body, "stream": True}) if f != "[DONE]"]
        assert len({(f["id"], f["model"], f["created"]) for f in frames}) == 1
        reasons = [f["choices"][0]["finish_reason"] for f in frames if f["choices"]]
        assert all(r is None for r in reasons[:-1]) and reasons[-1] == "length"

    @pytest.mark.parametrize("options", [{"stream_options": {"include_usage": True}}, {"stream_options": {"include_usage": False}},
                                         {"stream_options": {}}, {"stream_options": None}, {}])
    def test_usage_comes_when_it_is_asked_for(self, steady, route, body, options):
        frames = [f for f in steady.stream(route, {**body, "stream": True, **options}) if f != "[DONE]"]
        if (options.get("stream_options") or {}).get("include_usage"):
            assert frames[-1]["choices"] == [] and all(f["usage"] is None for f in frames[:-1])
            whole = steady.ok(route, body)["usage"]
            for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
                assert frames[-1]["usage"][name] == whole[name]
        else:
            assert all(f["choices"] for f in frames) and not any(f.get("usage") for f in frames)

    def test_the_phase_record_rides_in_the_last_frame(self, steady, route, body):
        frames = [f for f in steady.stream(route, {**body, "stream": True}) if f != "[DONE]"]
        assert "timings" in frames[-1] and "cadans" in frames[-1]
        assert not any("timings" in f or "cadans" in f for f in frames[:-1])


def test_a_stop_string_is_never_sent_not_even_in_part(steady):
    """The model repeats " river", and the stop string spans three of those tokens."""
    body = {"prompt": "The river", "max_tokens": 20, "temperature": 0}
    free = steady.ok("/v1/completions", body)["choices"][0]["text"]
    assert free.count(" river") >= 4, free
    stopped = steady.ok("/v1/completions", {**body, "stop": ["er river ri"]})["choices"][0]
    assert stopped["finish_reason"] == "stop" and stopped["text"] == free[:free.index("er river ri")]
    frames = steady.stream("/v1/completions", {**body, "stop": ["er river ri"], "stream": True})
    assert "".join(f["choices"][0]["text"] for f in frames[:-1] if f["choices"]) == stopped["text"]


def test_a_stop_string_that_never_completes_is_sent_whole(steady):
    body = {"prompt": "The river", "max_tokens": 5, "temperature": 0}
    free = steady.ok("/v1/completions", body)["choices"][0]["text"]
    near = steady.ok("/v1/completions", {**body, "stop": [" riverbank", " river river river river river river"]})["choices"][0]
    assert near["text"] == free and near["finish_reason"] == "length"


def test_completion_tokens_count_to_the_token_that_completes_the_stop_string(steady):
    answer = steady.ok("/v1/completions", {"prompt": "The river", "max_tokens": 20, "temperature": 0, "stop": "er river ri", "return_token_ids": True})
    assert answer["usage"]["completion_tokens"] == 3 == len(answer["choices"][0]["token_ids"])


def test_several_choices_are_told_apart(steady):
    body = {"prompt": "The river", "max_tokens": 4, "n": 3, "temperature": 1, "seed": 3}
    whole = [c["text"] for c in sorted(steady.ok("/v1/completions", body)["choices"], key=lambda c: c["index"])]
    joined = ["", "", ""]
    for frame in steady.stream("/v1/completions", {**body, "stream": True}):
        for choice in [] if frame == "[DONE]" else frame["choices"]:
            joined[choice["index"]] += choice["text"]
    assert joined == whole


def test_the_same_seed_gives_the_same_text():
    with Server(models.tiny("llama", "f32", untied=True)) as server:
        body = {"prompt": "The river", "max_tokens": 16, "temperature": 1.5, "return_token_ids": True}
        first, second, other, drawn = (server.ok("/v1/completions", {**body, **seed})["choices"][0]["token_ids"]
                                       for seed in ({"seed": 99}, {"seed": 99}, {"seed": 100}, {}))
    assert first == second and len({tuple(first), tuple(other), tuple(drawn)}) == 3


def test_token_ids_of_frames_add_up(steady):
    body = {"prompt": [334, 5, 6], "max_tokens": 7, "temperature": 0, "return_token_ids": True}
    whole = steady.ok("/v1/completions", body)["choices"][0]
    assert whole["prompt_token_ids"] == [334, 5, 6] and len(whole["token_ids"]) == 7
    frames = [f for f in steady.stream("/v1/completions", {**body, "stream": True}) if f != "[DONE]" and f["choices"]]
    assert sum((f["choices"][0].get("token_ids") or [] for f in frames), []) == whole["token_ids"]


def test_every_line_of_broken_bytes_is_valid_utf8_and_joins_to_the_whole():
    """Random tokens of a toy vocabulary break characters all the time."""
    body = {"prompt": "The", "max_tokens": 200, "temperature": 2, "seed": 5, "ignore_eos": True}
    with Server(models.tiny("llama", "f32", untied=True)) as server:
        whole = server.ok("/v1/completions", body)["choices"][0]["text"]
        frames = server.stream("/v1/completions", {**body, "stream": True})
    assert "".join(f["choices"][0]["text"] for f in frames[:-1] if f["choices"]) == whole


def test_progress_frames_come_only_when_asked_for(steady):
    body = {"prompt": [334] * 700, "max_tokens": 2, "stream": True, "stream_options": {"include_progress": True}}
    frames = [f for f in steady.stream("/v1/completions", body) if f != "[DONE]"]
    progress = [f["cadans"]["progress"] for f in frames if "progress" in (f.get("cadans") or {})]
    assert progress and all({"phase", "computed", "total", "cached", "seconds_left", "queue_place"} <= set(p) for p in progress)
    computed = [p["computed"] for p in progress]
    assert computed == sorted(computed) and all(p["total"] == 700 for p in progress)


FORETOLD = ["x-cadans-queue-place", "x-cadans-first-token-ms", "x-cadans-finish-ms"]


def foretold(server, prompt_tokens, words, **more):
    """What the header of an answer foretells: place, first token, finish; and the open connection."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = {"prompt": [5 + prompt_tokens % 7] * prompt_tokens, "max_tokens": words, "ignore_eos": True, **more}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    assert reply.status == 200
    return [int(reply.headers[name]) for name in FORETOLD], connection


def test_the_header_foretells_place_first_token_and_finish():
    with Server(models.tiny("gemma3", "f32"), "--max-running", 1) as server:
        alone = {}
        for tokens, words, stream in ((30, 5, False), (1500, 5, True), (1500, 1000, True)):
            alone[tokens, words], connection = foretold(server, tokens, words, stream=stream)
            connection.close()
        assert all(place == 0 and 0 <= first <= finish for place, first, finish in alone.values()), alone
        assert alone[30, 5][1] < alone[1500, 5][1] <= alone[1500, 1000][1] < alone[1500, 1000][2]
        # Of equal prompts the last one waits for all before it.
        line = [foretold(server, 1500, 500, stream=True) for _ in range(4)]
        time.sleep(0.3)
        (place, first, _), last = foretold(server, 1500, 5, stream=True)
        for _, connection in [*line, (None, last)]:
            connection.close()
    assert place >= 2 and first > 2 * alone[1500, 5][1], (place, first, alone)


def test_keep_alive_comments_and_headers_come_before_the_first_word():
    """Headers go out at admission: they arrive while a prompt of 900 rows is computed one row at a time."""
    with Server(models.tiny("gemma3", "f32"), "--prefill-chunk", 1) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        begin = time.monotonic()
        connection.request("POST", "/v1/completions", json.dumps({"prompt": [5] * 1500, "max_tokens": 1, "stream": True}),
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        headers_after = time.monotonic() - begin
        reply.read()
        whole = time.monotonic() - begin
        connection.close()
    assert reply.status == 200 and headers_after < max(0.25, whole / 3)
