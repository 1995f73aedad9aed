"""RequestArrays tell every pass as window() does: the compiled loop and the reference cut alike."""

from pathlib import Path

import numpy as np
import pytest

from tests.traces.trace_samples import dense_trace, text_trace, windowed_trace
from traces.acceptance import leading_draws
from traces.replay import Replay, open_replay
from traces.synthetic import SyntheticShape
from traces.synthetic_replay import BankReplay, BankShape

SHAPE = SyntheticShape(requests=2, prompt_tokens=3, tokens=14, lookahead=2, weights=True)


def replays(kind: str, folder: Path) -> Replay:
    if kind == "dense":
        return open_replay(dense_trace(folder / kind, 3, SHAPE))
    if kind == "windowed":
        return open_replay(windowed_trace(folder / kind, 3, 3, SHAPE))
    if kind == "text":
        return open_replay(text_trace(folder / kind, SHAPE), acceptance=[0.9, 0.5], seed=3)
    return BankReplay(BankShape(layers=2, experts=8, top_k=2, requests=2, tokens=20, bank=4))


@pytest.mark.parametrize("kind", ["dense", "windowed", "text", "bank"])
@pytest.mark.parametrize("wish", [0, 1, 3])
def test_the_stated_rule_gives_the_windows(kind: str, wish: int, tmp_path: Path) -> None:
    replay = replays(kind, tmp_path)
    if replay.fixed_gamma is not None and wish != replay.fixed_gamma:
        pytest.skip(f"recorded at gamma {replay.fixed_gamma} alone")
    checked = 0
    for request in replay.request_ids:
        first, end = replay.first(request), replay.end(request)
        arrays = replay.arrays(request)
        assert arrays.first == first and len(arrays.begin) == end - first
        # Text can begin anywhere; a windowed recording only where it did.
        starts = [start for start in range(first, end) if arrays.begin[start - first] >= 0]
        assert starts[0] == first
        for start in starts:
            window = replay.window(request, start, wish)
            place = start - first
            gamma = min(wish, arrays.gamma_limit[place])
            accepted = min(arrays.longest[place], gamma, end - start)
            committed = min(accepted + 1, arrays.commit_limit[place])
            assert (window.gamma, window.accepted, window.committed) == (gamma, accepted, committed)
            rows = slice(arrays.begin[place], arrays.begin[place] + gamma + 1)
            np.testing.assert_array_equal(arrays.tokens[rows], window.tokens)
            np.testing.assert_array_equal(arrays.experts[rows], window.experts)
            for ours, theirs in (
                (arrays.weights, window.weights),
                (None if arrays.next_layer is None else arrays.next_layer[:, rows], None),
            ):
                if ours is arrays.weights and ours is not None:
                    np.testing.assert_array_equal(ours[rows], theirs)
                elif ours is not None:
                    np.testing.assert_array_equal(ours, window.next_layer)
            checked += 1
        prompt = replay.prefill(request)
        assert (arrays.prefill is None) == (prompt is None)
        if prompt is not None:
            np.testing.assert_array_equal(arrays.prefill, prompt)
    assert checked >= 2 * 4


@pytest.mark.parametrize("seed", range(20))
def test_leading_draws_equal_the_plain_loop(seed: int) -> None:
    random = np.random.default_rng(seed)
    draws = random.random(int(random.integers(1, 30)))
    profile = random.choice([0.0, 0.3, 0.7, 1.0], int(random.integers(1, 9)))
    expected = []
    for place in range(len(draws)):
        length = 0
        while (
            length < len(profile)
            and place + 1 + length < len(draws)
            and draws[place + 1 + length] < profile[length]
        ):
            length += 1
        expected.append(length)
    assert leading_draws(draws, profile).tolist() == expected


def test_certain_drafts_reach_the_end_and_impossible_ones_nowhere() -> None:
    draws = np.linspace(0.0, 0.9, 5)
    assert leading_draws(draws, np.ones(3)).tolist() == [3, 3, 2, 1, 0]
    assert leading_draws(draws, np.zeros(3)).tolist() == [0] * 5
    assert leading_draws(draws[:1], np.ones(3)).tolist() == [0]
