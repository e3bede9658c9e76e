"""cadans plan: placements of the phases on boxes, as a person and as a script ask for them."""
import json

import pytest

import models
from server import ROOT, run

EXCERPTS = ROOT / "src" / "sim" / "testing"
LOAD = ("--load", "poisson:requests=60,prompt=200,output=15")


def plan(*arguments):
    result = run("plan", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_every_placement_has_what_scripts_read():
    document = plan("--trace", EXCERPTS / "azure_conv_excerpt.csv", "--boxes", "1,3", "--seed", 7)
    assert document["trace"] == "azure_conv_excerpt.csv" and document["requests"] == 40 and document["seed"] == 7
    assert document["kv_token_bytes"] == 32768 and document["layers"] == 16 and document["link_bits_per_second"] == 1e9
    assert [p["boxes"] for p in document["plans"]] == [1, 3]
    names = [[each["placement"] for each in p["placements"]] for p in document["plans"]]
    assert names == [["1 shared"], ["3 shared", "1 prefill + 2 decode", "2 prefill + 1 decode"]]
    for found in document["plans"]:
        assert found["choice"] in [each["placement"] for each in found["placements"]] and found["advice"].endswith(".")
        for each in found["placements"]:
            assert each["shared"] + each["prefill"] + each["decode"] == found["boxes"]
            assert each["goodput_rps"] > 0 and each["goodput_rps_per_box"] == pytest.approx(each["goodput_rps"] / found["boxes"])
            assert each["slo_attained"] >= 0.9 and each["at_rps"] == each["goodput_rps"]
            assert 0 < each["tightest_slo"] <= 64 and each["tightest_at_rps"] > 0
            assert 0 <= each["link_busy"] <= 1 and (each["exposed_ms"] > 0) == (each["prefill"] > 0)


def test_the_same_question_has_the_same_answer():
    assert plan(*LOAD, "--seed", 3) == plan(*LOAD, "--seed", 3)


def test_a_person_gets_a_table_and_a_sentence():
    result = run("plan", *LOAD)
    assert result.returncode == 0, result.stderr
    assert "2 shared" in result.stdout and "1 prefill + 1 decode" in result.stdout
    assert result.stdout.strip().splitlines()[-1].startswith("With 2 boxes: ")
    assert "1 Gbit/s, 32768 bytes a token" in result.stdout


def test_over_a_link_that_is_far_too_slow_nobody_splits():
    found = plan(*LOAD, "--link", "1M")["plans"][0]
    assert found["choice"] == "2 shared" and "do not split" in found["advice"]
    assert found["placements"][1]["exposed_ms"] > 1000


def test_boxes_that_one_might_buy_are_typed_in():
    document = plan(*LOAD, "--box", '{"name": "small", "price": 100}', "--box", '{"name": "big", "compute": 6, "memory_speed": 3, "memory": "8G", "price": 300}')
    placements = {each["placement"]: each for each in document["plans"][0]["placements"]}
    assert set(placements) == {"2 small shared", "2 big shared", "1 small prefill + 1 small decode", "1 small prefill + 1 big decode",
                               "1 big prefill + 1 small decode", "1 big prefill + 1 big decode"}
    assert placements["2 big shared"]["goodput_rps"] > 2 * placements["2 small shared"]["goodput_rps"]
    mixed = placements["1 big prefill + 1 small decode"]
    assert mixed["price"] == 400 and mixed["goodput_rps_per_price"] == pytest.approx(mixed["goodput_rps"] / 400)
    assert (mixed["box"], mixed["decode_box"]) == ("big", "small")


def test_what_a_box_measured_of_itself_is_its_card(tmp_path):
    fit = tmp_path / "here.json"
    measured = run("bench", "--model", models.tiny("llama", "q4_0"), "--fit", "--json")
    assert measured.returncode == 0, measured.stderr
    fit.write_text(measured.stdout)
    cost = json.loads(measured.stdout)["cost"]
    assert cost["kv_token_bytes"] > 0 and cost["layers"] > 0
    document = plan(*LOAD, "--fit", fit, "--box", fit, "--rate", 5)
    assert document["kv_token_bytes"] == cost["kv_token_bytes"] and document["layers"] == cost["layers"]
    assert document["plans"][0]["placements"][0]["box"] == "here" and document["plans"][0]["placements"][0]["tightest_at_rps"] == 5
    assert plan(*LOAD, "--fit", fit, "--kv-bytes", 9, "--layers", 2)["kv_token_bytes"] == 9


def test_progress_goes_to_stderr():
    result = run("plan", *LOAD, "--json")
    assert "cadans plan:" in result.stderr and json.loads(result.stdout)


@pytest.mark.parametrize("arguments, word", [(("--load", "flood"), "poisson"), (("--trace", "/nowhere/x"), "/nowhere/x"), ((*LOAD, "--slo", "never"), "--slo"),
                                             ((*LOAD, "--policy", "luck"), "static-chunk"), ((*LOAD, "--link", "fast"), "--link"),
                                             ((*LOAD, "--box", '{"speed": 2}'), "speed"), ((*LOAD, "--box", "/nowhere/card"), "/nowhere/card"),
                                             ((*LOAD, "--box", "{}", "--box", '{"name": "box 1"}'), "box 1"),
                                             ((*LOAD, "--fit", str(EXCERPTS / "azure_conv_excerpt.csv")), "cost table")])
def test_bad_input_is_told_in_one_line(arguments, word):
    result = run("plan", *arguments)
    assert result.returncode == 1 and word in result.stderr and not result.stdout and result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [(), (*LOAD, "--trace", "x"), (*LOAD, "--boxes", "0"), (*LOAD, "--requests", "0"), (*LOAD, "--layers", "0")])
def test_wrong_usage_is_2(arguments):
    assert run("plan", *arguments).returncode == 2


def test_help_teaches():
    said = run("plan", "--help").stdout
    for word in ("goodput", "--box", "memory_speed", "--slo-ttft", "bench --model FILE --fit"):
        assert word in said, word
