"""cadans run, bench and inspect, as a person and as a script use them."""
import json
import signal
import subprocess
import time

import pytest

import models
from server import BINARY, run


def test_inspect_says_what_the_file_holds():
    result = run("inspect", models.tiny("gemma3", "q4_k"))
    assert result.returncode == 0
    for word in ("gemma3", "Q4_K", "512", "with --kv-type q8"):
        assert word in result.stdout


def test_inspect_json_is_one_document():
    result = run("inspect", models.tiny("qwen3", "q8_0"), "--json")
    assert result.returncode == 0 and isinstance(json.loads(result.stdout), dict)


def test_inspect_of_an_unknown_family_names_it_and_the_known_ones(tmp_path):
    data = models.tiny("llama", "f32").read_bytes().replace(b"llama", b"lxmzq")
    path = tmp_path / "odd.gguf"
    path.write_bytes(data)
    result = run("inspect", path)
    said = result.stdout + result.stderr
    assert result.returncode == 1 and "lxmzq" in said and "qwen3" in said


def test_bench_json_is_one_array_of_medians():
    result = run("bench", "--model", models.tiny("llama", "q4_0"), "--prompt", "32,64", "--generate", "8", "--batch", "1,2", "--threads", "1", "--repeat", "3", "--json")
    assert result.returncode == 0, result.stderr
    records = json.loads(result.stdout)
    assert {r["phase"] for r in records} == {"prefill", "decode"}
    for record in records:
        assert {"phase", "tokens", "depth", "batch", "threads", "isa", "model", "weights", "tokens_per_second"} <= set(record)
        speed = record["tokens_per_second"]
        assert 0 < speed["min"] <= speed["median"] <= speed["max"]
        assert "share_of_peak" in record or "share_of_bandwidth" in record


def test_bench_leaves_out_a_phase_that_is_0():
    result = run("bench", "--model", models.tiny("llama", "q4_0"), "--prompt", "0", "--generate", "4", "--repeat", "1", "--json")
    assert result.returncode == 0 and {r["phase"] for r in json.loads(result.stdout)} == {"decode"}


def test_bench_says_which_instruction_set_ran():
    result = run("bench", "--model", models.tiny("llama", "q4_0"), "--prompt", "16", "--generate", "0", "--repeat", "1", "--json", env={"CADANS_ISA": "scalar"})
    assert result.returncode == 0 and {r["isa"] for r in json.loads(result.stdout)} == {"scalar"}


def test_bench_table_is_for_people():
    result = run("bench", "--model", models.tiny("llama", "q4_0"), "--prompt", "16", "--generate", "4", "--repeat", "1")
    assert result.returncode == 0 and "tokens" in result.stdout.lower()


def test_run_answers_one_prompt_and_ends():
    result = run("run", models.tiny("llama", "f32", mix="0.1"), "The river", "--max-tokens", "5", "--temperature", "0")
    assert result.returncode == 0 and result.stdout.strip() != "" or "\n" in result.stdout


def test_run_json_is_one_document_on_stdout_and_nothing_else():
    result = run("run", models.tiny("llama", "f32"), "The river", "--max-tokens", "5", "--json")
    assert result.returncode == 0 and isinstance(json.loads(result.stdout), dict)


def test_run_reads_turns_from_a_pipe_until_its_end():
    result = subprocess.run([str(BINARY), "run", str(models.tiny("llama", "f32")), "--max-tokens", "4"], input="The river\nkeeps\n", text=True,
                            errors="replace", capture_output=True, timeout=60)
    assert result.returncode == 0


def test_run_of_a_bad_model_is_1(tmp_path):
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"nothing")
    result = run("run", path, "hi")
    assert result.returncode == 1 and "bad.gguf" in result.stderr


@pytest.mark.real_model
def test_run_chats_with_the_default_model():
    result = run("run", models.real("smollm2"), "What is the capital of France? One word.", "--temperature", "0", "--max-tokens", "24")
    assert result.returncode == 0 and "Paris" in result.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_bench_with_130(number):
    process = subprocess.Popen([str(BINARY), "bench", "--prompt", "4000", "--repeat", "1000", "--json", "--model", str(models.tiny("llama", "f32"))],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(1)
    process.send_signal(number)
    out = process.communicate(timeout=30)[0]
    assert (process.returncode, out) == (130, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_conversation_with_130(number):
    process = subprocess.Popen([str(BINARY), "run", str(models.tiny("llama", "f32"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    while b"Ctrl-D" not in process.stderr.readline():
        pass
    process.send_signal(number)
    assert process.wait(30) == 130


def test_run_stops_when_nobody_reads_its_answer():
    process = subprocess.Popen([str(BINARY), "run", str(models.tiny("gemma3", "f32")), "The river"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    process.stdout.close()
    assert process.wait(30) == 130


@pytest.mark.parametrize("arguments", [["inspect", "--json"], ["bench", "--prompt", "4", "--generate", "0", "--repeat", "1", "--json", "--model"]])
def test_output_that_cannot_be_written_is_1(arguments):
    with open("/dev/full", "w") as full:
        result = subprocess.run([str(BINARY), *arguments, str(models.tiny("llama", "f32"))], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 1 and "written" in result.stderr


@pytest.mark.parametrize("arguments, word", [(("nosuch",), "nosuch"), (("bench", "--prompt", "4294967295"), "--prompt"),
                                             (("bench", "--prompt", "1", "--depth", "4294967295"), "--depth"), (("bench", "--generate", "4294967295"), "--generate"),
                                             (("bench", "--kv-memory", "much"), "much"), (("run", "smollm2", "hi", "--threads", "100000"), "--threads"),
                                             (("run", "smollm2", "hi", "--context", "4294967295"), "--context"),
                                             (("simulate", "--load", "poisson", "--queue", "4294967280"), "--queue")])
def test_wrong_usage_is_2_and_says_where(arguments, word):
    result = run(*arguments)
    assert result.returncode == 2 and word in result.stderr and not result.stdout


def test_bench_refuses_what_its_memory_cannot_hold():
    result = run("bench", "--model", models.tiny("llama", "q4_0"), "--prompt", "0", "--generate", "32", "--batch", "256", "--repeat", "1", "--kv-memory", "1M")
    assert result.returncode == 1 and "--kv-memory" in result.stderr and not result.stdout


def test_inspect_finds_a_model_by_its_name(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "known.gguf").symlink_to(models.tiny("llama", "q4_0"))
    assert run("inspect", "known", env={"CADANS_HOME": str(tmp_path)}).returncode == 0
