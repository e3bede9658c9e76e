"""Clients that leave: compute stops, pages come back, counters reconcile.

A small fraction of prove/client_cuts.py runs here.
"""
import time

import pytest

import models
from prove import client_cuts
from server import Server


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_random_cuts_leave_nothing_behind(family):
    with Server(models.tiny(family, "q8_0"), "--prefill-chunk", 32, "--context", 2000) as server:
        cuts, problems = client_cuts.cut(server, count=50, seed=1)
    assert cuts == 50 and not problems


def test_a_cut_stream_stops_within_half_a_second():
    with Server(models.tiny("gemma3", "f32"), "--context", 2000) as server:
        client_cuts.open_and_cut(server, {"prompt": [5] * 20, "max_tokens": 1900, "ignore_eos": True, "stream": True}, after_bytes=400)
        begin = time.monotonic()
        while client_cuts.running(server) and time.monotonic() - begin < 5:
            time.sleep(0.02)
        assert time.monotonic() - begin < 0.75
        metrics = server.metrics()
        assert metrics['cadans_requests_total{outcome="cancelled"}'] == 1


def test_a_step_is_the_requests_that_it_read_for_also_when_that_left_meanwhile():
    """One who leaves while the first step reads the prompt did not wait in the queue, and what was read is counted."""
    with Server(models.real("smollm2"), "--context", 2048, "--prefix-cache", "off") as server:
        client_cuts.open_and_cut(server, {"prompt": [5] * 1500, "max_tokens": 5, "stream": True}, after_seconds=0.05)
        begin = time.monotonic()
        while client_cuts.running(server) and time.monotonic() - begin < 20:
            time.sleep(0.02)
        record = server.get("/cadans/v1/requests/latest")[1]
        receipt = record["receipt_ns"]
        assert sum(receipt.values()) == record["total_ns"]
        assert receipt["own_prefill"] > receipt["queue"] and record["computed_tokens"] > 0, record
        assert server.metrics()['cadans_prompt_tokens_total{source="computed"}'] == record["computed_tokens"]
