"""A small part of prove/teacher_forced.py: 4 prompts, 16 tokens after each, 200 tokens of text."""
import pytest

import models
from prove import teacher_forced as proof

# With so few positions one more or less is chance.
CHANCE = 2


@pytest.mark.slow
@pytest.mark.real_model
@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_our_best_token_is_the_references(name, record_property):
    found = proof.compare(models.real(name), [5, 16, 64, 120], 16, 200, kl_part=200)
    for figure, value in vars(found).items():
        record_property(figure, value)
    print(found)
    assert found.positions == 64
    assert found.worst_margin < proof.MARGIN
    assert found.ours <= proof.POSITIONS * found.peers + CHANCE
    assert found.kl - found.peer_kl <= proof.KL
