"""A tenth of prove/mutated_bodies.py, against the release build."""
import pytest

import models
from prove import mutated_bodies as proof
from server import Server


@pytest.mark.parametrize("part", range(4))
def test_no_mutated_body_breaks_the_server(part):
    with Server(models.tiny("llama", "q8_0"), "--context", 256) as server:
        statuses, problems = proof.post_all(server, range(100_000 + part * 250, 100_250 + part * 250))
        assert not problems, problems[:10]
        assert sum(statuses.values()) == 250
        assert server.stop() == 0
