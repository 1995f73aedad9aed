"""Generated routing: form, statistics that follow the law, popularity caches by hand."""

from pathlib import Path

import numpy as np
import pytest

from traces.caches import hit_rates
from traces.check import check_trace
from traces.manifest import ModelInfo
from traces.popularity_caches import frequency_hit_rate, static_hit_rate
from traces.reader import open_trace
from traces.rows import FILLER
from traces.synthetic_routing import (
    RoutingLaw,
    generate_routing,
    predict_next_layers,
    text_of,
)
from traces.writer import TraceWriter

MODEL = ModelInfo("generated", 4, 32, 4, 1)
UNIFORM = RoutingLaw(zipf=0.0, topic=0.0, memory=0.0, keep=0.0)


def reuse(law: RoutingLaw) -> float:
    experts = generate_routing(law, MODEL, 800, seed=1).experts
    return float((experts[1:, :, :, None] == experts[:-1, :, None, :]).any(axis=-1).mean())


def test_rows_hold_distinct_experts_by_falling_weight() -> None:
    routed = generate_routing(RoutingLaw(1.0, 1.0, 0.97, 0.3), MODEL, 50, seed=0)
    assert routed.experts.shape == (50, 4, 4)
    ordered = np.sort(routed.experts, axis=2)
    assert (ordered[..., 1:] > ordered[..., :-1]).all() and ordered.max() < 32
    assert (np.diff(routed.weights, axis=2) <= 0).all()
    assert routed.weights.astype(float).sum(axis=2) == pytest.approx(1.0, abs=0.01)


def test_seed_decides() -> None:
    one, same, other = (generate_routing(UNIFORM, MODEL, 30, seed).experts for seed in (3, 3, 4))
    assert (one == same).all() and (one != other).any()


def test_reuse_follows_keep() -> None:
    # Uniform: 4 of 32 by chance. Kept with 0.5, and by chance among the others.
    assert reuse(UNIFORM) == pytest.approx(4 / 32, abs=0.02)
    kept = RoutingLaw(0.0, 0.0, 0.0, 0.5)
    assert reuse(kept) == pytest.approx(0.5 + 0.5 * 2 / 30, abs=0.03)


def test_popularity_follows_zipf_and_topic_gives_locality() -> None:
    skewed = generate_routing(RoutingLaw(1.5, 0.0, 0.0, 0.0), MODEL, 600, seed=0).experts
    flat = generate_routing(UNIFORM, MODEL, 600, seed=0).experts
    assert static_hit_rate(skewed, 32, 6) > 2 * static_hit_rate(flat, 32, 6)
    topic = generate_routing(RoutingLaw(0.0, 2.0, 0.98, 0.0), MODEL, 600, seed=0).experts
    assert hit_rates(topic, 32, 0.2)[0] > 1.5 * hit_rates(flat, 32, 0.2)[0]


def test_popularity_caches_by_hand() -> None:
    experts = np.array([[[0]], [[1]], [[1]], [[0]], [[1]]], np.uint16)
    assert static_hit_rate(experts, 3, 1) == pytest.approx(3 / 5)  # expert 1
    # Held before each row: none, 0, 0 (a tie), 1, 0 (a tie). Only row 3 would need 0: no hit.
    assert frequency_hit_rate(experts, 3, 1) == 0.0
    assert frequency_hit_rate(experts, 3, 2) == pytest.approx(3 / 5)


def test_predictions_have_the_given_accuracy() -> None:
    experts = generate_routing(UNIFORM, MODEL, 500, seed=0).experts
    predicted = predict_next_layers(experts, 32, 0.8, seed=0)
    right = (predicted[0, :, :-1] == experts[:, 1:]).mean()
    assert right == pytest.approx(0.8 + 0.2 / 32, abs=0.02)
    assert (predicted[0, :, -1] == FILLER).all() and (predicted[2, :, 1:] == FILLER).all()


def test_the_trace_is_valid(tmp_path: Path) -> None:
    routed = generate_routing(UNIFORM, MODEL, 21, seed=0)
    manifest, rows = text_of(routed, MODEL, 2, 100, 0.9, seed=0)
    with TraceWriter(tmp_path / "trace", manifest) as writer:
        writer.append(rows)
    trace = open_trace(tmp_path / "trace")
    assert not check_trace(trace.path).problems
    batch = trace.load()
    assert len(batch) == 20 and batch.start.tolist() == [*range(100, 110)] * 2
