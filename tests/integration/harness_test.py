"""A part of prove/harness.py: the requests that lm-evaluation-harness makes, and 12 questions scored as the reference does."""
import numpy as np
import pytest

import models
from prove import harness


def test_the_harness_form_of_scoring_is_answered(steady):
    """It sends lists of ids with max_tokens 1 and drops the last entry; several prompts ride in one request."""
    prompts = [[334, 458, 451], [5, 6, 7, 8]]
    answer = steady.ok("/v1/completions", {"prompt": prompts, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0, "seed": 1234})
    assert [c["index"] for c in sorted(answer["choices"], key=lambda c: c["index"])] == [0, 1]
    for choice, prompt in zip(sorted(answer["choices"], key=lambda c: c["index"]), prompts):
        logprobs = choice["logprobs"]
        assert len(logprobs["token_logprobs"]) == len(prompt) + 1 == len(logprobs["tokens"]) == len(logprobs["top_logprobs"]) == len(logprobs["text_offset"])
        alone, _ = steady.scores(prompt, top=1)
        assert logprobs["token_logprobs"][:-1] == alone
        for token, score, top in list(zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"]))[1:]:
            assert (top[token] == score) if token in top else (score < max(top.values()))


def test_echo_writes_the_prompt_before_the_answer(steady):
    answer = steady.ok("/v1/completions", {"prompt": "The river", "max_tokens": 2, "echo": True, "temperature": 0})
    assert answer["choices"][0]["text"] == "The river river river"


def test_the_same_prompt_scored_with_and_without_an_answer(steady):
    ids = [334, 458, 451, 9, 8]
    zero, _ = steady.scores(ids)
    one = steady.ok("/v1/completions", {"prompt": ids, "max_tokens": 1, "echo": True, "logprobs": 0, "temperature": 0})["choices"][0]["logprobs"]
    assert len(zero) == 5 and one["token_logprobs"][:5] == zero


@pytest.mark.slow
@pytest.mark.real_model
def test_twelve_questions_are_scored_as_the_reference_does(smollm2):
    documents = harness.questions(12)
    expected = harness.reference_scores(models.real("smollm2"), smollm2, documents)
    scores = harness.server_scores(smollm2, documents)
    assert np.sqrt(np.mean(np.square(scores - expected))) < 2 * harness.RMS
    clear = np.sort(expected, axis=1)[:, -1] - np.sort(expected, axis=1)[:, -2] > 4 * harness.RMS
    assert (scores.argmax(axis=1) == expected.argmax(axis=1))[clear].all()
