"""A part of prove/tokenizer_lines.py: 3,000 lines for every vocabulary."""
import pytest

import models
from prove import tokenizer_lines as proof


@pytest.mark.slow
def test_our_token_ids_are_those_of_the_tokenizers_library():
    if models.npm_vocabulary("llama3_2") is None:
        pytest.skip("the vocabularies are not installed (tools/setup test)")
    status, said = proof.run(3000, seed=77)
    print(said)
    assert status == 0, said[-3000:]
