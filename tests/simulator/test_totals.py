"""Sums made while a run is played equal the metrics of its whole log."""

from dataclasses import replace

import pytest

from policies.composed import ComposedPolicy
from policies.errors import UserError
from policies.parts import AdmitMisses, ByResidency, Recency
from policies.zoo import ZOO
from simulator.compiled import simulate_compiled
from simulator.settings import SimulationSettings
from simulator.totals import Totals, simulate_totals
from tests.simulator.scenarios import long_costs, scenario
from traces.metrics import Metrics, metrics
from traces.synthetic_replay import BankReplay, BankShape

POLICIES = ("spac", "lru_cpu", "lru_fetch", "stream_active", "fiddler", "all_cpu")
SHAPE = BankShape(layers=6, experts=32, top_k=4, requests=3, tokens=300)
SETTINGS = SimulationSettings(gamma=4, slots=48)


def assert_equal(totals: Totals, whole: Metrics) -> None:
    counts = {
        "passes": whole.passes,
        "committed_tokens": whole.committed_tokens,
        "bytes_demand": whole.bytes_demand,
        "bytes_stream": whole.bytes_stream,
        "bytes_prefetch": whole.bytes_prefetch,
    }
    assert {name: getattr(totals, name) for name in counts} == counts
    experts, second = max(totals.active_experts, 1), 1e9
    ratios = [
        (whole.decode_seconds, totals.decode_ns / second),
        (whole.draft_seconds, totals.draft_ns / second),
        (whole.tokens_per_second, totals.tokens_per_second),
        (whole.mean_gamma, totals.proposed_tokens / totals.passes),
        (whole.hit_rate_per_expert, totals.hit_rate_per_expert),
        (whole.hit_rate_per_token, totals.token_hits / totals.token_uses),
        (whole.share_gpu, totals.on_gpu / experts),
        (whole.share_cpu, totals.on_cpu / experts),
        (whole.share_fetch, totals.fetched / experts),
        (whole.share_stream, totals.streamed / experts),
        (whole.active_experts_per_layer, totals.active_experts / totals.layers),
        (whole.gpu_stall_seconds, totals.gpu_stall_ns / second),
        (whole.cpu_stall_seconds, totals.cpu_stall_ns / second),
        (whole.gpu_idle_seconds, totals.gpu_idle_ns / second),
        (whole.cpu_idle_seconds, totals.cpu_idle_ns / second),
        (whole.decision_seconds, totals.decision_ns / second),
    ]
    expected, found = zip(*ratios, strict=True)
    assert found == pytest.approx(expected, rel=1e-12)
    if totals.proposed_tokens:
        assert totals.accepted_tokens / totals.proposed_tokens == whole.acceptance_proposed


@pytest.mark.parametrize("name", POLICIES)
def test_totals_are_those_of_the_log(name: str) -> None:
    replay, costs = BankReplay(SHAPE), long_costs(8)
    whole = metrics(simulate_compiled(replay, ZOO[name](), costs, SETTINGS))
    assert whole.passes > 100 and whole.decode_seconds > 0.0
    assert_equal(simulate_totals(replay, ZOO[name](), costs, SETTINGS), whole)


@pytest.mark.parametrize("seed", range(6))
def test_totals_of_traces_with_prefill_and_awkward_costs(seed: int, tmp_path) -> None:
    run = scenario(seed, tmp_path)
    settings = replace(run.settings, warmup_requests=0)
    policy = ComposedPolicy("lru", Recency(), ByResidency(), AdmitMisses(), quota="pool")
    whole = metrics(simulate_compiled(run.replay, policy, run.costs, settings))
    assert_equal(simulate_totals(run.replay, policy, run.costs, settings), whole)


def test_a_run_without_a_counted_pass_is_refused() -> None:
    replay = BankReplay(replace(SHAPE, requests=1, tokens=4))
    with pytest.raises(UserError, match="no decode pass outside warm-up"):
        simulate_totals(replay, ZOO["lru_cpu"](), long_costs(8), SETTINGS)
