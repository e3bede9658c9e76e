"""Where the time went: the receipt sums, the dialects agree, the client's own stop-watch too."""
import json
import time

import pytest

CAUSES = {"parse", "tokenize", "queue", "load", "restore", "transfer", "preempted", "own_prefill", "others_prefill", "own_decode", "others_decode",
          "speculation_waste", "recompute", "sample_and_text", "mask", "client_slow", "scheduler"}
BODY = {"prompt": [5] * 300, "max_tokens": 12, "ignore_eos": True, "temperature": 0}


def test_the_receipt_sums_to_the_total_exactly(steady):
    for stream in (False, True):
        record = last(steady, stream)["cadans"]
        assert set(record["receipt_ns"]) == CAUSES
        assert sum(record["receipt_ns"].values()) == record["total_ns"]
        assert all(isinstance(v, int) and v >= 0 for v in record["receipt_ns"].values())


def last(server, stream, body=BODY):
    if not stream:
        return server.ok("/v1/completions", body)
    return [f for f in server.stream("/v1/completions", {**body, "stream": True}) if f != "[DONE]"][-1]


def test_an_answer_that_does_not_stream_has_no_first_token_time(steady):
    record = last(steady, False)["cadans"]
    assert record["ttft_ns"] is None and record["gap_ns"] is None
    assert last(steady, True)["cadans"]["ttft_ns"] > 0


@pytest.mark.real_model
def test_an_answer_of_several_writes_has_gaps(smollm2):
    """A tiny model's whole answer can leave in one write, which has no gap; a real one's words take milliseconds each."""
    gaps = last(smollm2, True, {**BODY, "max_tokens": 48})["cadans"]["gap_ns"]
    assert 0 < gaps["p50"] <= gaps["p99"] <= gaps["max"]


def test_the_record_can_be_asked_for_by_id(steady):
    answer = last(steady, False)
    status, record = steady.get(f"/cadans/v1/requests/{answer['id']}")
    assert status == 200 and record == answer["cadans"]
    assert steady.get("/cadans/v1/requests/no-such-request")[0] == 404


def test_the_request_id_is_in_the_header_and_the_clients_own_is_kept_beside_it(steady):
    status, headers, body = steady.request("POST", "/v1/completions", json.dumps(BODY).encode(),
                                           {"Content-Type": "application/json", "x-request-id": "mine-1"})
    answer = json.loads(body)
    assert status == 200 and headers["x-request-id"] == answer["id"] != "mine-1"
    assert answer["cadans"]["client_request_id"] == "mine-1"


def test_timings_are_those_of_the_engine(steady):
    timings = last(steady, False)["timings"]
    assert timings["prompt_n"] + timings["cache_n"] == 300 and timings["predicted_n"] == 12
    assert timings["prompt_ms"] > 0 and timings["predicted_ms"] > 0
    assert abs(timings["prompt_per_second"] - timings["prompt_n"] / timings["prompt_ms"] * 1e3) < 0.02 * timings["prompt_per_second"]


def test_a_rate_without_a_divisor_is_left_out(steady):
    answer = last(steady, False, {**BODY, "max_tokens": 1})
    assert "predicted_per_second" not in answer["timings"] and answer["cadans"]["output_tokens_per_second"] is None
    answer = last(steady, False, {**BODY, "max_tokens": 0})
    assert "NaN" not in json.dumps(answer) and "predicted_per_second" not in answer["timings"]


def test_ollamas_durations_add_up(steady):
    answer = steady.ok("/api/generate", {"prompt": "The river keeps its own time", "stream": False, "options": {"num_predict": 9}})
    for name in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "prompt_eval_count", "eval_count"):
        assert isinstance(answer[name], int) and answer[name] >= 0
    assert answer["load_duration"] == 0
    assert answer["prompt_eval_duration"] + answer["eval_duration"] <= answer["total_duration"]


def test_a_stop_watch_at_the_client_agrees_on_the_first_token(steady):
    worst = 0
    for _ in range(10):
        begin, first = time.monotonic_ns(), None
        for frame in steady.frames("/v1/completions", {**BODY, "stream": True}):
            if frame != "[DONE]" and frame["choices"] and frame["choices"][0]["text"] and first is None:
                first = time.monotonic_ns() - begin
            if frame != "[DONE]" and "cadans" in frame and "ttft_ns" in frame["cadans"]:
                record = frame["cadans"]
        worst = max(worst, abs(first - record["ttft_ns"]))
    assert worst < 20e6, f"{worst / 1e6} ms"   # the proof of 2 ms needs a machine that does nothing else
