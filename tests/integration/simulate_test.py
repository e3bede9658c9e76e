"""cadans simulate and the record that a server keeps for it."""
import json
import threading
import time

import pytest

import models
from server import ROOT, Server, run

EXCERPTS = ROOT / "src" / "sim" / "testing"
SPREAD = {"p50", "p90", "p99", "max"}


def records(*arguments):
    result = run("simulate", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_every_record_has_what_scripts_read():
    for record in records("--trace", EXCERPTS / "azure_conv_excerpt.csv", "--capacity", "--seed", 7):
        assert record["requests"] == 40 and record["seed"] == 7 and record["trace"] == "azure_conv_excerpt.csv"
        assert set(record["ttft_ms"]) == set(record["gap_ms"]) == SPREAD
        assert record["stalls_per_1000"] >= 0 and record["goodput_rps"] >= 0
        assert record["capacity_rps"] > 0 and record["rule"] == "sarathi" and "built-in" in record["fit"]


def test_a_seed_below_0_is_wrong_usage():
    wrong = run("simulate", "--load", "poisson:requests=1", "--seed", "-1")
    assert wrong.returncode == 2 and "--seed" in wrong.stderr + wrong.stdout


def test_a_capacity_that_no_rate_bounds_is_no_number():
    small = ("--load", "poisson:requests=1,prompt=20,output=2", "--policy", "static-chunk", "--capacity")
    assert records(*small)[0]["capacity_rps"] is None
    assert "no rate breaks the rule" in run("simulate", *small).stdout


def test_the_rate_scales_time_and_refused_rows_are_counted():
    slow = records("--trace", EXCERPTS / "azure_conv_excerpt.csv", "--rate", 0.001)[0]
    fast = records("--trace", EXCERPTS / "azure_conv_excerpt.csv", "--rate", 100, "--queue", 0, "--max-running", 1)[0]
    assert slow["refused"] == 0 and fast["refused"] > 0 and slow["requests"] == fast["requests"] == 40


def test_a_cached_prefix_is_found_in_a_trace_with_hashes():
    with_cache = records("--trace", EXCERPTS / "mooncake_excerpt.jsonl", "--rate", 0.001)[0]
    without = records("--trace", EXCERPTS / "mooncake_excerpt.jsonl", "--rate", 0.001, "--no-cache")[0]
    assert with_cache["cached_tokens"] > 0 == without["cached_tokens"]


@pytest.mark.parametrize("arguments, word", [(("--load", "flood"), "poisson"), (("--trace", "/nowhere/x"), "/nowhere/x"),
                                             (("--load", "poisson", "--slo", "never"), "--slo"), (("--load", "poisson", "--policy", "luck"), "luck"),
                                             (("--replay", str(EXCERPTS / "azure_conv_excerpt.csv")), "record"),
                                             (("--load", "poisson", "--fit", str(EXCERPTS / "azure_conv_excerpt.csv")), "cost table"),
                                             (("--load", "poisson:requests=20000,rate=1e-6"), "thirty years"),
                                             (("--load", "poisson:requests=50", "--rate", "1e-9"), "thirty years")])
def test_bad_input_is_told_in_one_line(arguments, word):
    result = run("simulate", *arguments)
    assert result.returncode == 1 and word in result.stderr and not result.stdout


def test_a_recorded_run_makes_every_plan_again(tmp_path):
    """Method: a server with few pages, eight clients at once that share beginnings, one that leaves; then the replay."""
    tape = tmp_path / "tape.jsonl"
    with Server(models.tiny("llama", "q4_0"), "--record", tape, "--max-running", 3, "--prefill-chunk", 24, "--threads", 1) as server:
        def ask(number):
            for turn in range(3):
                body = {"prompt": [7, 8, 9] * 20 + [5 + number] * (10 * turn + 1), "max_tokens": 12, "ignore_eos": number % 2 == 0, "seed": number}
                if number == 3:
                    body = {**body, "echo": True, "logprobs": 1}
                server.ok("/v1/completions", body)
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.stop() == 0
    record = records("--replay", tape)[0]
    assert record["end"] == "closed" and record["requests"] == 24
    assert record["plans"] == record["plans_matched"] > 24 and record["first_difference"] is None
    assert "7,8,9" not in tape.read_text()
    assert tape.stat().st_mode & 0o077 == 0
    assert record["reading_steps"]["steps"] + record["writing_steps"]["steps"] == record["plans"]
    assert record["reading_steps"]["measured_of_predicted"] > 0 and record["between_steps_ms"]["p50"] >= 0
    fitted = records("--trace", tape, "--fit", tape)[0]
    assert fitted["requests"] == 24 and str(tape) in fitted["fit"]
    again = records("--trace", tape, "--policy", "cadence,fixed-batch")
    assert [each["requests"] for each in again] == [24, 24]
    assert {each["prefill_chunk"] for each in again} == {24} and "when the record began" in again[0]["fit"]


def test_a_record_that_cannot_be_written_stops_the_start():
    result = run("serve", "--model", models.tiny("llama", "q4_0"), "--port", 0, "--record", "/nowhere/tape")
    assert result.returncode == 1 and "/nowhere/tape" in result.stderr


def test_a_record_on_a_full_disk_is_told_once():
    with Server(models.tiny("llama", "f32"), "--record", "/dev/full") as server:
        for _ in range(3):
            server.ok("/v1/completions", {"prompt": [5] * 20, "max_tokens": 4})
            time.sleep(1.1)     # what is filled goes to the writer once a second
        assert server.stop() == 0
        assert server.said().count("the record /dev/full has stopped") == 1
