"""Finished requests outlive the process, hold no prompt, and a damaged file is no trouble."""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import time

import pytest

import models
from server import Server

BODY = {"prompt": "The river keeps its own time", "max_tokens": 4, "ignore_eos": True, "temperature": 0}


def serve(state, *flags):
    return Server(models.tiny("llama", "f32"), *flags, env={"XDG_STATE_HOME": str(state)})


def database(state):
    return pathlib.Path(state) / "cadans" / "history.db"


def answers(server):
    """Not while the serving process is being started again: then nobody listens."""
    try:
        return server.get("/health/live")[0] == 200
    except ConnectionError:
        return False


def until(true_within, seconds=10):
    deadline = time.monotonic() + seconds
    while not true_within():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def without_text(record):
    miss = record["cache_miss"]
    return {**record, "cache_miss": miss and {**miss, "text": None}}


def test_a_record_can_be_asked_for_after_a_restart(tmp_path):
    with serve(tmp_path) as server:
        answer = server.ok("/v1/completions", {**BODY, "user": "anna", "priority": "interactive"})
        assert server.get(f"/cadans/v1/requests/{answer['id']}")[1] == answer["cadans"]
        assert answer["cadans"]["client"] == "anna" and answer["cadans"]["class"] == "interactive"
        assert abs(answer["cadans"]["unix_ms"] / 1e3 - time.time()) < 60
    with serve(tmp_path) as server:
        for name in (answer["id"], "latest"):
            status, record = server.get(f"/cadans/v1/requests/{name}")
            assert status == 200 and record == without_text(answer["cadans"])
        assert server.get("/cadans/v1/requests/no-such-request")[0] == 404


def test_records_survive_a_kill(tmp_path):
    with serve(tmp_path) as server:
        ids = [server.ok("/v1/completions", BODY)["id"] for _ in range(20)]
        until(lambda: count(tmp_path) == 20)
        os.kill(serving_process(server), signal.SIGKILL)
        until(lambda: "starting the serving process again" in server.said())
        until(lambda: answers(server))
        until(server.alive, 60)
        assert all(server.get(f"/cadans/v1/requests/{i}")[1]["id"] == i for i in ids)


def serving_process(server):
    return int(subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=True).stdout)


def count(state):
    with sqlite3.connect(database(state)) as base:
        return base.execute("SELECT COUNT(*) FROM request").fetchone()[0]


@pytest.mark.parametrize("prompts", ["off", "on"])
def test_prompts_are_kept_only_when_asked_for(tmp_path, prompts):
    secret = "An orchard of quinces"
    with serve(tmp_path, "--history-prompts", prompts) as server:
        server.ok("/v1/completions", {**BODY, "prompt": secret + " " + secret})
        answer = server.ok("/v1/completions", {**BODY, "prompt": secret + " in May"})
    kept = b"".join(path.read_bytes() for path in database(tmp_path).parent.glob("history.db*"))
    assert answer["id"].encode() in kept
    assert (b"quince" in kept) == (prompts == "on")
    if prompts == "on":
        with serve(tmp_path) as server:
            assert secret in server.get(f"/cadans/v1/requests/{answer['id']}")[1]["prompt"]


def test_without_history_nothing_is_written(tmp_path):
    with serve(tmp_path, "--history", "off") as server:
        answer = server.ok("/v1/completions", BODY)
        assert server.get("/cadans/v1/requests/latest")[1]["id"] == answer["id"]
    assert not database(tmp_path).exists()


def test_a_damaged_file_is_set_aside_and_said(tmp_path):
    with serve(tmp_path) as server:
        server.ok("/v1/completions", BODY)
    database(tmp_path).write_bytes(b"this is no database" * 1000)
    with serve(tmp_path) as server:
        until(lambda: "set aside" in server.said())
        answer = server.ok("/v1/completions", BODY)
    assert list(database(tmp_path).parent.glob("history.db.damaged-*"))
    with serve(tmp_path) as server:
        assert server.get(f"/cadans/v1/requests/{answer['id']}")[0] == 200


def test_a_folder_that_cannot_be_written_costs_no_answer(tmp_path):
    database(tmp_path).mkdir(parents=True)   # a folder stands where the file should be
    with serve(tmp_path) as server:
        answer = server.ok("/v1/completions", BODY)
        assert server.get(f"/cadans/v1/requests/{answer['id']}")[1] == answer["cadans"]
        until(lambda: "kept in memory only" in server.said())


def test_the_file_keeps_its_size_limit(tmp_path):
    with serve(tmp_path, "--history-size", "256K") as server:
        for _ in range(400):
            last = server.ok("/v1/completions", {**BODY, "max_tokens": 1})["id"]
    assert 10 < count(tmp_path) < 400 and database(tmp_path).stat().st_size < 2 * 256 * 1024
    with serve(tmp_path) as server:
        assert json.dumps(server.get(f"/cadans/v1/requests/{last}")[1])
