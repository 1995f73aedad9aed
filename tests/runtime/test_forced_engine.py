"""Forced routing: the engine follows the trace on random weights, and plans as the simulator does.

The plans themselves are compared in tests/parity.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from offload_setup import ForcedPolicy, fast_standin, flat_costs

from policies.errors import UserError
from policies.zoo.lru_cpu import lru_cpu
from policies.zoo.spac import spac
from runtime.device import Memory
from runtime.engine_settings import EngineSettings
from runtime.forced_engine import ForcedEngine
from runtime.model_shape import ModelShape, model_shape
from runtime.random_model import RandomModel, fitting, random_model
from traces.manifest import ModelInfo
from traces.mapped_replay import MappedReplay
from traces.metrics import metrics
from traces.reader import open_trace
from traces.replay import Replay, open_replay
from traces.runlog_schema import DECODE_PHASE
from traces.synthetic import SyntheticShape, random_dense, synthetic_manifest
from traces.writer import TraceWriter

torch.set_num_threads(1)
SYNTHETIC = SyntheticShape(layers=3, experts=8, top_k=2, requests=2, tokens=8, weights=True)
SHAPE = model_shape(
    "tiny", 3, 8, 2, hidden=16, expert_width=12, layer_parameters=1200, pass_parameters=800,
    key_width=8, distinct=2, draft_layers=2, draft_parameters=200,
)  # fmt: skip
SETTINGS = EngineSettings(slots=6, staging=2, gamma=3)


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    path = tmp_path_factory.mktemp("forced") / "trace"
    with TraceWriter(path, synthetic_manifest(SYNTHETIC, "dense", 4)) as writer:
        writer.append(random_dense(SYNTHETIC, 4, seed=5))
    return open_replay(open_trace(path))


def mapped(replay: Replay, shape: ModelShape = SHAPE) -> MappedReplay:
    return MappedReplay(replay, shape.info(torch.float32))


@pytest.fixture
def model() -> RandomModel:
    device = fast_standin()
    yield random_model(SHAPE, torch.float32, device, slots=6, staging=2)
    device.close()


def test_the_log_holds_the_routing_of_the_trace(model: RandomModel, replay: Replay) -> None:
    played = mapped(replay)
    engine = ForcedEngine(model, played, lru_cpu(), flat_costs(), SETTINGS)
    told: list[int] = []
    with engine:
        engine.play(told.append)
    log = engine.runlog()
    decode = log.passes[log.passes["phase"] == DECODE_PHASE]
    assert len(decode) == len(log.passes)  # prompts are not played
    ends = {request: played.end(request) - played.first(request) for request in played.request_ids}
    assert sum(told) == sum(ends.values()) == decode["committed"].sum()
    assert decode.groupby("request")["warmup"].first().tolist() == [True, False]
    for row in decode.itertuples():
        window = played.window(row.request, row.start_position, row.gamma)
        assert (row.accepted, row.committed, row.rows) == (
            window.accepted, window.committed, window.gamma + 1,
        )  # fmt: skip
        layers = log.layers[log.layers["pass_index"] == row.pass_index]
        for layer in layers.itertuples():
            chosen, counts = np.unique(window.experts[:, layer.layer], return_counts=True)
            assert chosen.tolist() == list(layer.experts) and counts.tolist() == list(layer.counts)
    assert metrics(log).tokens_per_second > 0


def test_one_model_serves_engine_after_engine(model: RandomModel, replay: Replay) -> None:
    played = MappedReplay(replay, SHAPE.info(torch.float32), requests=1)
    rates = []
    for policy in (lru_cpu(), spac(), ForcedPolicy("STREAM")):
        with ForcedEngine(model, played, policy, flat_costs(), SETTINGS) as engine:
            engine.play()
        rates.append(metrics(engine.runlog()).hit_rate_per_expert)
        assert engine.session.ledger.expert_slot.shape == (24,)
    assert rates[0] > 0 and rates[2] == 0


def test_layers_share_weights_and_are_counted_as_their_own(model: RandomModel) -> None:
    assert model.shape.distinct == 2 and "2 distinct layers used in turn for 3" in model.note
    layers = model.target.module.model.layers
    first, last = (layers[n].self_attn.q_proj.weight for n in (0, 2))
    assert first.data_ptr() == last.data_ptr()
    assert model.arena.layout.total == 24 and len(model.arena.rows) == 16
    assert model.arena.gate_up(17).data_ptr() == model.arena.gate_up(1).data_ptr()
    assert model.arena.gate_up(8).data_ptr() != model.arena.gate_up(0).data_ptr()


def test_a_shape_has_the_parameters_it_was_made_of() -> None:
    """Qwen3-30B-A3B: the public config has 32 query heads, 4 key heads of 128."""
    shape = model_shape(
        "qwen3-30b-a3b", 48, 128, 8, hidden=2048, expert_width=768,
        layer_parameters=38_281_728 // 2, pass_parameters=622_333_952 // 2,
        key_width=98_304 // 48 // 2 // 2,
    )  # fmt: skip
    assert (shape.heads, shape.key_heads, shape.head_width) == (32, 4, 128)
    assert shape.layout(torch.bfloat16).expert_bytes == 9_437_184
    assert shape.vocabulary in (151_936, 151_937)


def test_layers_are_reused_when_memory_is_short() -> None:
    layer = SHAPE.experts * SHAPE.layout(torch.float32).row_bytes
    whole = replace(SHAPE, distinct=3)
    assert fitting(whole, torch.float32, layer * 100).distinct == 3
    assert fitting(whole, torch.float32, layer * 3).distinct == 2
    with pytest.raises(UserError, match=r"one layer of tiny needs .* GiB"):
        fitting(whole, torch.float32, layer)


def test_what_does_not_fit_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    device = fast_standin()
    monkeypatch.setattr(device, "memory", lambda: Memory(10**9, 1000))
    with pytest.raises(UserError, match="device memory"):
        random_model(SHAPE, torch.float32, device, slots=6, staging=2)
    device.close()


@pytest.mark.parametrize(
    ("settings", "policy", "words"),
    [
        (replace(SETTINGS, gamma=5), ForcedPolicy("CPU"), "goes up to 4"),
        (SETTINGS, ForcedPolicy("CPU", needs=("next_layer_1",)), "needs next_layer_1"),
    ],
)
def test_what_the_trace_cannot_serve_is_refused(
    model: RandomModel, replay: Replay, settings: EngineSettings, policy: ForcedPolicy, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        ForcedEngine(model, mapped(replay), policy, flat_costs(), settings)


def test_a_trace_of_another_shape_must_be_mapped(model: RandomModel, replay: Replay) -> None:
    other = MappedReplay(replay, ModelInfo("other", 4, 8, 2, 1))
    with pytest.raises(UserError, match="map it first"):
        ForcedEngine(model, other, lru_cpu(), flat_costs(), SETTINGS)
