"""Shuffled nulls: every marginal stays, order goes."""

from pathlib import Path

import numpy as np
import pytest
from trace_samples import dense_trace, text_trace, windowed_trace

from policies.errors import UserError
from traces.check import check_trace
from traces.locality import reuse_from_previous
from traces.reader import Trace, open_trace
from traces.rows import RowBatch
from traces.shuffled import WITHIN, write_shuffled
from traces.synthetic import SyntheticShape
from traces.text_rows import TextRows, committed_rows, text_rows

SHAPE = SyntheticShape(
    layers=3, experts=32, requests=4, tokens=150, reuse=0.6, weights=True, lookahead=1
)
EVERY_WAY = pytest.mark.parametrize("within", WITHIN)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return dense_trace(tmp_path_factory.mktemp("real") / "dense", gamma_max=2, shape=SHAPE)


def text_of(trace: Trace) -> TextRows:
    return text_rows(trace.load(), trace.manifest)


@EVERY_WAY
def test_marginals_stay_and_order_goes(real: Trace, within: str, tmp_path: Path) -> None:
    null = write_shuffled(real, tmp_path / "null", within, seed=1)
    before, after = text_of(real), text_of(null)
    assert after.experts.shape == before.experts.shape
    for layer in range(SHAPE.layers):
        counts = [
            np.bincount(one.experts[:, layer].ravel(), minlength=32) for one in (before, after)
        ]
        np.testing.assert_array_equal(*counts)
    chance = SHAPE.top_k / SHAPE.experts
    assert reuse_from_previous(before) > 0.55
    assert reuse_from_previous(after) == pytest.approx(chance, abs=0.03)
    np.testing.assert_array_equal(after.token, before.token)
    assert check_trace(null.path).ok


def test_what_each_way_keeps(real: Trace, tmp_path: Path) -> None:
    nulls = {way: text_of(write_shuffled(real, tmp_path / way, way, seed=1)) for way in WITHIN}
    before = text_of(real)

    def rows(text: TextRows, request: int | None = None) -> list[tuple[int, ...]]:
        own = text.request == request if request is not None else slice(None)
        return sorted(map(tuple, text.experts[own].reshape(-1, 6).tolist()))

    assert rows(nulls["trace"]) == rows(before) == rows(nulls["request"]) != rows(nulls["layer"])
    for request in range(4):
        assert rows(nulls["request"], request) == rows(before, request)
    assert rows(nulls["trace"], 0) != rows(before, 0)


def test_weights_and_predictions_go_with_their_experts(real: Trace, tmp_path: Path) -> None:
    text = committed_rows(real.load(), real.manifest)

    def pairs(rows: RowBatch) -> list[tuple[float, ...]]:
        assert rows.router_weights is not None
        both = np.concatenate([rows.experts, rows.router_weights.astype(np.float64)], axis=2)
        return sorted(map(tuple, both.reshape(len(rows), -1).tolist()))

    null = write_shuffled(real, tmp_path / "null", "trace", seed=1)
    moved = null.load()
    assert null.manifest.columns == real.manifest.columns
    assert pairs(moved) == pairs(text)
    assert moved.next_layer is not None
    np.testing.assert_array_equal(moved.next_layer[0][:, :-1], moved.experts[:, 1:])
    apart = write_shuffled(real, tmp_path / "apart", "layer", seed=1)
    assert apart.manifest.columns == ("router_weights",)


@EVERY_WAY
def test_the_same_seed_gives_the_same_bytes(real: Trace, within: str, tmp_path: Path) -> None:
    digests = [
        write_shuffled(real, tmp_path / name, within, seed).digest
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert digests[0] == digests[1] != digests[2]


def test_the_manifest_says_what_it_is(real: Trace, tmp_path: Path) -> None:
    manifest = write_shuffled(real, tmp_path / "null", "request", seed=7).manifest
    assert (manifest.kind, manifest.draft, manifest.gamma_max) == ("text", None, 0)
    assert manifest.notes["synthetic"] == "shuffled within request"
    assert (manifest.notes["seed"], manifest.notes["shuffled from"]) == ("7", real.digest)


def test_text_and_windowed_traces(tmp_path: Path) -> None:
    for name, trace in (
        ("text", text_trace(tmp_path / "text")),
        ("windowed", windowed_trace(tmp_path / "windowed", gamma=2)),
    ):
        null = write_shuffled(trace, tmp_path / f"{name} null", "trace", seed=0)
        assert check_trace(null.path).ok
        assert len(null.load()) == len(text_of(trace).token)


def test_refusals(real: Trace, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="within=rows: expected one of trace, request, layer"):
        write_shuffled(real, tmp_path / "null", "rows", seed=0)
    write_shuffled(real, tmp_path / "null", "trace", seed=0)
    with pytest.raises(UserError, match="never overwritten"):
        write_shuffled(open_trace(real.path), tmp_path / "null", "trace", seed=0)
