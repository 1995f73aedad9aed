"""The engine on real trace directories of each kind, through open_replay."""

from pathlib import Path

import pytest

from policies import parts
from policies.composed import ComposedPolicy
from policies.errors import UserError
from simulator.exact_bound import lower_bound
from simulator.reference import simulate
from simulator.settings import SimulationSettings
from tests.simulator.audit import audit
from tests.simulator.scenes import round_costs
from traces.manifest import Kind
from traces.metrics import metrics
from traces.reader import open_trace
from traces.replay import Replay, open_replay
from traces.synthetic import SyntheticShape, markov_text, random_dense, synthetic_manifest
from traces.writer import TraceWriter

SHAPE = SyntheticShape(layers=3, experts=8, top_k=2, requests=2, tokens=12, lookahead=1)


def replay_of(path: Path, kind: Kind) -> Replay:
    """A dense or text trace on disk, opened."""
    gamma_max = 2 if kind == "dense" else 0
    rows = random_dense(SHAPE, gamma_max, 0) if kind == "dense" else markov_text(SHAPE, 0)
    with TraceWriter(path, synthetic_manifest(SHAPE, kind, gamma_max)) as writer:
        writer.append(rows)
    return open_replay(open_trace(path), None if kind == "dense" else 0.7)


def next_layer() -> ComposedPolicy:
    return ComposedPolicy("ahead", parts.Recency(), parts.ByResidency(), parts.NextLayer(1))


@pytest.mark.parametrize("kind", ["dense", "text"])
@pytest.mark.parametrize("gamma", [0, 2])
def test_a_recorded_run_is_lawful_and_measurable(tmp_path: Path, kind: Kind, gamma: int) -> None:
    replay, costs = replay_of(tmp_path / "trace", kind), round_costs()
    chosen = SimulationSettings(gamma=gamma, slots=8)
    log = simulate(replay, next_layer(), costs, chosen, path=tmp_path / "run")
    audit(log, costs, chosen)
    figures = metrics(log)
    assert figures.committed_tokens == SHAPE.tokens  # of the second request: the first is warm-up
    assert figures.approximate == (kind == "text")
    assert figures.hit_rate_per_expert > 0
    assert figures.prefetches == int((log.copies["pass_index"] >= counted_from(log)).sum())
    bound = lower_bound(replay, costs, chosen, requests=[1])
    assert bound <= round(figures.decode_seconds * 1e9)


def counted_from(log) -> int:  # type: ignore[no-untyped-def]
    """First decode pass outside warm-up."""
    passes = log.passes
    return int(passes["pass_index"][(passes["phase"] == 1) & ~passes["warmup"]].min())


def test_predictions_make_residents(tmp_path: Path) -> None:
    """Synthetic predictions are perfect, so prefetching them beats not doing so."""
    replay, costs = replay_of(tmp_path / "trace", "dense"), round_costs(copy_ns=50)
    chosen = SimulationSettings(gamma=1, slots=12)
    still = ComposedPolicy("still", parts.Recency(), parts.ByResidency(), parts.Still())
    ahead = metrics(simulate(replay, next_layer(), costs, chosen))
    assert ahead.hit_rate_per_expert > 0.5
    assert metrics(simulate(replay, still, costs, chosen)).hit_rate_per_expert == 0


def test_a_text_trace_has_no_drafted_tokens(tmp_path: Path) -> None:
    replay = replay_of(tmp_path / "trace", "text")
    with pytest.raises(UserError, match=r"gamma=\d+"):
        simulate(replay, next_layer(), round_costs(), SimulationSettings(replay.gamma_limit + 1, 8))
