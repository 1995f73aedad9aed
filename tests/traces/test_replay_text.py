"""Text replay: approximate windows whose accepted tokens do not depend on the window size."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import SMALL, text_trace

from policies.errors import UserError
from traces.acceptance import acceptance_profile, leading_matches, uniform_draws
from traces.replay import Replay, open_replay, passes

LONG = dataclasses.replace(SMALL, requests=4, tokens=400)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text")


@pytest.fixture(scope="module")
def replay(folder: Path) -> Replay:
    return open_replay(text_trace(folder / "trace", LONG), acceptance=0.7, seed=3)


def test_acceptance_is_needed_and_the_message_shows_how(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"need acceptance=, e\.g\. acceptance=0\.75"):
        open_replay(text_trace(tmp_path / "trace"))


@pytest.mark.parametrize("acceptance", [-0.1, 1.5, [], [0.5, 2.0], float("nan")])
def test_impossible_acceptance_is_refused(tmp_path: Path, acceptance: object) -> None:
    with pytest.raises(UserError, match=r"probability in 0\.\.1"):
        open_replay(text_trace(tmp_path / "trace"), acceptance=acceptance)  # type: ignore[arg-type]


def test_facts(replay: Replay) -> None:
    assert (replay.kind, replay.fixed_gamma, replay.approximate) == ("text", None, True)
    assert replay.gamma_limit >= 16
    window = replay.window(0, replay.first(0), 2)
    assert window.approximate


def test_windows_are_the_next_text_rows(folder: Path, replay: Replay) -> None:
    trace_rows = open_replay(text_trace(folder / "same", LONG), acceptance=0.0)
    first, end = replay.first(1), replay.end(1)
    assert end - first == LONG.tokens
    window = replay.window(1, first + 3, 4)
    for j in range(5):
        row = trace_rows.window(1, first + 3 + j, 0)
        np.testing.assert_array_equal(window.experts[j], row.experts[0])
        assert window.tokens[j] == row.tokens[0]


def test_windows_are_clipped_at_the_end_of_the_text(replay: Replay) -> None:
    end = replay.end(0)
    window = replay.window(0, end - 2, 8)
    assert window.gamma == 1
    assert len(window.tokens) == len(window.experts) == 2
    last = replay.window(0, end - 1, 8)
    assert (last.gamma, last.accepted, last.committed) == (0, 0, 1)


@pytest.mark.parametrize("gamma", [0, 1, 2, 4, 8])
def test_all_tokens_are_committed(replay: Replay, gamma: int) -> None:
    windows = list(passes(replay, gamma))
    assert sum(w.committed for w in windows) == LONG.tokens * LONG.requests
    assert all(w.committed == w.accepted + 1 for w in windows)


@settings(deadline=None, max_examples=40)
@given(offset=st.integers(0, LONG.tokens - 20), small=st.integers(0, 8), large=st.integers(0, 8))
def test_acceptance_does_not_depend_on_gamma(
    replay: Replay, offset: int, small: int, large: int
) -> None:
    small, large = sorted((small, large))
    start = replay.first(2) + offset
    wide = replay.window(2, start, large)
    assert replay.window(2, start, small).accepted == min(wide.accepted, small)


def test_a_draw_belongs_to_its_text_position(replay: Replay) -> None:
    """With one probability, a token accepted from one start is accepted from the next start too."""
    first = replay.first(0)
    for start in range(first, first + 100):
        if replay.window(0, start, 4).accepted >= 2:
            assert replay.window(0, start + 1, 4).accepted >= 1


def test_draft_i_is_judged_by_the_draw_of_position_t_plus_i(replay: Replay) -> None:
    first = replay.first(1)
    draws = uniform_draws(3, 1, np.arange(first + LONG.tokens))
    for start in range(first, first + 200):
        accepted = 0
        while accepted < 4 and draws[start + 1 + accepted] < 0.7:
            accepted += 1
        assert replay.window(1, start, 4).accepted == accepted


def test_the_seed_and_the_request_matter(folder: Path, replay: Replay) -> None:
    def accepted(which: Replay, request: int) -> list[int]:
        first = which.first(request)
        return [which.window(request, first + i, 4).accepted for i in range(100)]

    again = open_replay(text_trace(folder / "again", LONG), acceptance=0.7, seed=3)
    other = open_replay(text_trace(folder / "other", LONG), acceptance=0.7, seed=4)
    assert accepted(replay, 0) == accepted(again, 0)
    assert accepted(replay, 0) != accepted(other, 0)
    assert accepted(replay, 0) != accepted(replay, 1)


def test_acceptance_has_the_asked_rate(replay: Replay) -> None:
    windows = [w for w in passes(replay, 4) if w.gamma == 4]
    accepted = sum(w.accepted for w in windows)
    rejected = sum(w.accepted < w.gamma for w in windows)
    assert accepted / (accepted + rejected) == pytest.approx(0.7, abs=0.04)


def test_a_list_gives_conditional_probabilities_by_position(tmp_path: Path) -> None:
    replay = open_replay(text_trace(tmp_path / "trace", LONG), acceptance=[1.0, 0.5, 0.0])
    accepted = np.array(
        [
            replay.window(request, replay.first(request) + i, 4).accepted
            for request in replay.request_ids
            for i in range(LONG.tokens - 5)
        ]
    )
    assert set(accepted.tolist()) == {1, 2}
    assert (accepted == 2).mean() == pytest.approx(0.5, abs=0.05)


def test_gamma_beyond_the_limit_is_refused(replay: Replay) -> None:
    with pytest.raises(UserError, match="gamma 65 is outside"):
        replay.window(0, replay.first(0), 65)


def test_acceptance_profile_repeats_its_last_entry() -> None:
    assert acceptance_profile(0.5, 3).tolist() == [0.5, 0.5, 0.5]
    assert acceptance_profile([0.9, 0.4], 4).tolist() == [0.9, 0.4, 0.4, 0.4]
    assert acceptance_profile([0.9, 0.4, 0.3], 2).tolist() == [0.9, 0.4]
    assert acceptance_profile(1, 1).tolist() == [1.0]


@given(st.lists(st.booleans(), min_size=1, max_size=9))
def test_leading_matches(flags: list[bool]) -> None:
    expected = 0
    while expected < len(flags) and flags[expected]:
        expected += 1
    assert int(leading_matches(np.array(flags))) == expected


@given(seed=st.integers(-(1 << 40), 1 << 70), request=st.integers(0, 1 << 31))
def test_draws_are_uniform_numbers_keyed_by_position(seed: int, request: int) -> None:
    positions = np.arange(50)
    draws = uniform_draws(seed, request, positions)
    assert ((draws >= 0) & (draws < 1)).all()
    assert len(np.unique(draws)) == 50
    np.testing.assert_array_equal(draws[7:], uniform_draws(seed, request, positions[7:]))


def test_draws_cover_the_unit_interval_evenly() -> None:
    draws = np.concatenate([uniform_draws(1, request, np.arange(500)) for request in range(40)])
    counts, _ = np.histogram(draws, bins=20, range=(0, 1))
    assert counts.std() < 3 * np.sqrt(len(draws) / 20)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.03
