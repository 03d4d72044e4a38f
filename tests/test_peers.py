"""The comparison with transformers: what needs no transformers."""

import pytest

from paged_tutorial.peers import TASKS, one_round, paged_tutorial_engine


def test_a_round_counts_prompt_tokens_for_prefill_and_new_tokens_for_decoding():
    def ask(prompts, count):
        assert len(prompts) == 4 and {len(prompt) for prompt in prompts} == {30}
        return [0.5 + 0.1 * step for step in range(count)]

    assert one_round(ask, 4, 30, 1) == pytest.approx(4 * 30 / 0.5)
    assert one_round(ask, 4, 30, 9) == pytest.approx(4 / 0.1)


def test_steps_that_are_missing_are_noticed():
    with pytest.raises(RuntimeError, match="9 steps expected, 8 came"):
        one_round(lambda prompts, count: [0.1] * (count - 1), 1, 5, 9)


def test_our_engine_reports_a_moment_for_every_token():
    clocked = paged_tutorial_engine()
    prompts = [[5, 6, 7] * 12, [8, 9, 10] * 12]
    for _ in range(2):
        stamps = clocked(prompts, 3)
        assert len(stamps) == 3 and stamps == sorted(stamps)
    assert {title for title, *_ in TASKS} >= {"prefill of 320", "decode, batch 16"}
