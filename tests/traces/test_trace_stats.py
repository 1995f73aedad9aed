"""trace_stats on traces whose figures are known, and the same text seen through all kinds."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from trace_samples import cut_windows, dense_trace, text_trace, write_trace

from traces.acceptance import leading_matches
from traces.replay import open_replay, passes
from traces.rows import DECODE
from traces.stats import trace_stats
from traces.synthetic import SyntheticShape, random_dense, synthetic_manifest
from traces.text_rows import text_rows

SHAPE = SyntheticShape(
    layers=3, experts=20, top_k=2, requests=4, tokens=60, acceptance=0.6, reuse=0.5
)
GAMMA_MAX = 4


def test_counts(tmp_path: Path) -> None:
    stats = trace_stats(dense_trace(tmp_path / "trace", GAMMA_MAX, SHAPE))
    assert (stats.kind, stats.workload, stats.requests) == ("dense", "synthetic", 4)
    assert stats.tokens == 4 * 60
    assert stats.prompt_tokens == 4 * SHAPE.prompt_tokens
    assert stats.rows == stats.prompt_tokens + stats.tokens * (GAMMA_MAX + 1)
    assert len(stats.entropy) == len(stats.entropy_within_request) == 3
    assert all(
        w <= m + 1e-9 for w, m in zip(stats.entropy_within_request, stats.entropy, strict=True)
    )


def test_acceptance_by_position_over_all_starts(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace", GAMMA_MAX, SHAPE)
    batch = trace.load()
    accepted = leading_matches(batch.match[batch.phase == DECODE].reshape(-1, GAMMA_MAX + 1))
    for position, found in enumerate(trace_stats(trace).positions, start=1):
        assert found.position == position
        assert found.reached == sum(a >= position - 1 for a in accepted)
        assert found.accepted == sum(a >= position for a in accepted)
        assert found.acceptance_reached == pytest.approx(found.accepted / found.reached)
        assert found.acceptance_proposed == pytest.approx(found.accepted / len(accepted))
        assert found.acceptance_reached == pytest.approx(0.6, abs=0.12)


def test_passes_are_those_of_the_replay(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace", GAMMA_MAX, SHAPE)
    stats = trace_stats(trace)
    assert [found.gamma for found in stats.passes] == [1, 2, 4]
    for found in stats.passes:
        windows = list(passes(open_replay(trace), found.gamma))
        accepted = sum(w.accepted for w in windows)
        rejected = sum(w.accepted < w.gamma for w in windows)
        assert found.passes == len(windows)
        assert found.tokens_per_pass == pytest.approx(stats.tokens / len(windows))
        assert found.acceptance_reached == pytest.approx(accepted / (accepted + rejected))
        assert found.acceptance_proposed == pytest.approx(accepted / found.gamma / len(windows))


def test_windows_grow_with_gamma_and_are_exact(tmp_path: Path) -> None:
    stats = trace_stats(dense_trace(tmp_path / "trace", GAMMA_MAX, SHAPE))
    assert [w.gamma for w in stats.windows] == [0, 1, 2, 4]
    assert stats.windows[0].distinct_experts == SHAPE.top_k
    sizes = [w.distinct_experts for w in stats.windows]
    assert sizes == sorted(sizes)
    assert not any(w.approximate for w in stats.windows)


def test_windows_of_a_text_trace_are_approximate(tmp_path: Path) -> None:
    stats = trace_stats(text_trace(tmp_path / "trace", SHAPE))
    assert [w.gamma for w in stats.windows] == [0, 1, 2, 4, 8]
    assert [w.approximate for w in stats.windows] == [False, True, True, True, True]
    assert stats.passes == () and stats.positions == ()
    with_acceptance = trace_stats(text_trace(tmp_path / "again", SHAPE), acceptance=0.8)
    assert [found.gamma for found in with_acceptance.passes] == [1, 2, 4, 8]
    assert with_acceptance.passes[0].acceptance_reached == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("gamma", [0, 2, 4])
def test_dense_and_windowed_traces_of_one_text_agree(tmp_path: Path, gamma: int) -> None:
    batch = random_dense(SHAPE, GAMMA_MAX, seed=5)
    dense = write_trace(tmp_path / "dense", synthetic_manifest(SHAPE, "dense", GAMMA_MAX), batch)
    cut = cut_windows(batch, GAMMA_MAX, gamma)
    real = write_trace(tmp_path / "real", synthetic_manifest(SHAPE, "windowed", gamma), cut)
    one, other = trace_stats(dense), trace_stats(real)
    np.testing.assert_array_equal(
        text_rows(batch, dense.manifest).token, text_rows(cut, real.manifest).token
    )
    assert one.reuse_from_previous == other.reuse_from_previous
    assert one.caches == other.caches
    assert one.entropy == other.entropy
    assert one.repeated_4grams == other.repeated_4grams
    if gamma:
        assert other.passes == tuple(found for found in one.passes if found.gamma == gamma)


def test_shuffling_destroys_locality_but_not_popularity(tmp_path: Path) -> None:
    stats = trace_stats(dense_trace(tmp_path / "trace", GAMMA_MAX, SHAPE))
    assert [found.ratio for found in stats.caches] == [0.10, 0.17, 0.25, 0.50]
    for found in stats.caches:
        assert found.lru > found.lru_shuffled
        assert found.belady >= found.lru
        assert found.belady_shuffled >= found.lru_shuffled


def test_statistics_are_deterministic_and_json(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace", GAMMA_MAX, SHAPE)
    first, second = trace_stats(trace), trace_stats(trace)
    assert first == second
    assert json.loads(json.dumps(dataclasses.asdict(first)))["tokens"] == 240


def test_another_seed_changes_the_shuffle_only(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace", GAMMA_MAX, SHAPE)
    first, second = trace_stats(trace, seed=0), trace_stats(trace, seed=1)
    assert [c.lru for c in first.caches] == [c.lru for c in second.caches]
    assert [c.lru_shuffled for c in first.caches] != [c.lru_shuffled for c in second.caches]


def test_short_texts_have_no_repeated_4grams(tmp_path: Path) -> None:
    shape = dataclasses.replace(SHAPE, tokens=2)
    assert math.isnan(trace_stats(dense_trace(tmp_path / "trace", 1, shape)).repeated_4grams)
