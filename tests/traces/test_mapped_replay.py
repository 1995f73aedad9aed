"""Routing carried over to another shape keeps its structure; what cannot be carried is refused."""

from pathlib import Path

import numpy as np
import pytest
from trace_samples import dense_trace

from policies.errors import UserError
from traces.manifest import ModelInfo
from traces.mapped_replay import MappedReplay, mapping_note
from traces.replay import Replay, open_replay, passes
from traces.rows import FILLER
from traces.synthetic import SyntheticShape

SHAPE = SyntheticShape(lookahead=2, weights=True)
WIDE = ModelInfo("wide", 6, 32, 4, 1)


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    return open_replay(dense_trace(tmp_path / "trace", shape=SHAPE))


def test_the_same_shape_changes_nothing_but_the_prompt(replay: Replay) -> None:
    same = MappedReplay(replay, replay.model)
    for mine, theirs in zip(passes(same, 3), passes(replay, 3), strict=True):
        np.testing.assert_array_equal(mine.experts, theirs.experts)
        np.testing.assert_array_equal(mine.weights, theirs.weights)
        np.testing.assert_array_equal(mine.next_layer, theirs.next_layer)
        assert (mine.accepted, mine.committed) == (theirs.accepted, theirs.committed)
    assert len(same.prompt(0)) == 0 and same.prefill(0) is None


def test_each_expert_becomes_two_and_layers_repeat(replay: Replay) -> None:
    wide = MappedReplay(replay, WIDE)
    for mine, theirs in zip(passes(wide, 3), passes(replay, 3), strict=True):
        assert mine.experts.shape == (4, 6, 4) and mine.experts.max() < 32
        for layer in range(6):
            own, source = mine.experts[:, layer], theirs.experts[:, layer % 4]
            np.testing.assert_array_equal(own // 2, np.tile(source, 2))
            assert all(len(set(row)) == 4 for row in own.tolist())
        assert mine.weights is not None and theirs.weights is not None
        np.testing.assert_allclose(
            mine.weights[:, 0].sum(-1), theirs.weights[:, 0].sum(-1), rtol=2e-3
        )
        assert mine.next_layer is not None and theirs.next_layer is not None
        # The last layer of the trace knows no next one, so its stand-ins do not either.
        assert (mine.next_layer[0, :, 3] == FILLER).all()
        np.testing.assert_array_equal(
            mine.next_layer[0, :, 4] // 2, np.tile(theirs.next_layer[0, :, 0], 2)
        )


def test_a_smaller_top_k_keeps_the_first_choices(replay: Replay) -> None:
    narrow = MappedReplay(replay, ModelInfo("narrow", 2, 16, 1, 1), requests=1)
    assert len(narrow.request_ids) == 1
    mine, theirs = next(passes(narrow, 2)), next(passes(replay, 2))
    np.testing.assert_array_equal(mine.experts, theirs.experts[:, :2, :1])


def test_arrays_say_the_same_as_windows(replay: Replay) -> None:
    wide = MappedReplay(replay, WIDE)
    request = wide.request_ids[1]
    arrays = wide.arrays(request)
    window = wide.window(request, arrays.first + 2, 4)
    begin = int(arrays.begin[2])
    np.testing.assert_array_equal(arrays.experts[begin : begin + 5], window.experts)
    assert arrays.next_layer is not None and arrays.prefill is None
    np.testing.assert_array_equal(arrays.next_layer[:, begin : begin + 5], window.next_layer)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ModelInfo("odd", 4, 24, 2, 1), "no multiple of the trace's 16"),
        (ModelInfo("few", 4, 8, 2, 1), "no multiple"),
        (ModelInfo("many", 4, 16, 3, 1), "stand for 2 at most"),
    ],
)
def test_what_cannot_be_carried_over_is_refused(
    replay: Replay, model: ModelInfo, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        MappedReplay(replay, model)


def test_the_note_tells_both_shapes(replay: Replay) -> None:
    assert mapping_note(replay.model, replay.model) == "routing as recorded"
    assert "4 layers x 16 experts (top-2) carried over to 6 x 32" in mapping_note(
        replay.model, WIDE
    )
