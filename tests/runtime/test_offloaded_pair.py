"""The trained pair under offloading: real routing, real drafts, all proofs at once."""

from conftest import LoadedPair
from offload_setup import flat_costs

from policies.zoo.spac import spac
from runtime.engine import OffloadedEngine
from runtime.engine_settings import EngineSettings, slots_of_ratio
from runtime.hazards import HazardChecker
from runtime.lossless import prove_lossless
from runtime.observation_replay import prove_observation_replay
from runtime.plans import plans_of
from runtime.standin import standin
from traces.metrics import metrics

TOKENS = 32


def test_spac_on_the_trained_pair(trained: LoadedPair) -> None:
    checker, costs = HazardChecker(), flat_costs()
    facts = trained.target.facts
    slots = slots_of_ratio(0.17, len(facts.moe_layers), facts.experts)
    prompts = [[40, 41, 42, 43], [300, 20, 7]]
    with OffloadedEngine(
        trained.path / "target", trained.path / "draft", standin(400e6, 5_000, checker), spac(),
        costs, EngineSettings(slots=slots),
    ) as engine:  # fmt: skip
        texts = [[t for block in engine.generate(one, TOKENS) for t in block] for one in prompts]
    assert prove_lossless(trained.target, prompts, texts, engine.settings, TOKENS).identical
    log = engine.runlog()
    shape = engine.session.shape
    replay = prove_observation_replay(spac(), shape, costs, engine.observations, plans_of(log))
    assert replay.identical, replay.first_difference
    assert checker.hazards == []
    figures = metrics(log)
    assert figures.committed_tokens == 2 * (TOKENS - 1)
    assert figures.tokens_per_pass > 1.0
    assert figures.hit_rate_per_expert > 0.1
