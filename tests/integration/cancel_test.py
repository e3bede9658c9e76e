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
