"""launch=early: residents run before the decision, and nothing else changes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch
from conftest import LoadedPair
from offload_setup import ForcedPolicy, fast_standin, flat_costs, tiny_engine

from policies.api import Copy, LayerPlan, Routing, View
from policies.session import Session
from runtime.device import COMPUTE
from runtime.engine_settings import EngineSettings
from runtime.hazards import HazardChecker
from runtime.layer_executor import LayerExecutor, Started
from runtime.lossless import prove_lossless
from runtime.prompts import Prompt
from runtime.slot_table import SlotTable
from runtime.standin import StandIn, standin

TOKENS = 16
SECOND = 1_000_000_000


class Late(ForcedPolicy):
    """Decides after all that was started before is done."""

    device: StandIn

    def enter_layer(self, routing: Routing, view: View) -> LayerPlan:
        self.device.join(self.device.stream(COMPUTE))
        return super().enter_layer(routing, view)


class Restless(ForcedPolicy):
    """Overwrites slots as soon as a layer lets go of them."""

    def leave_layer(self, layer: int, view: View) -> tuple[Copy, ...]:
        slots = self._victims(view, set())
        absent = self.random_.permutation(np.flatnonzero(view.expert_slot < 0))
        pairs = zip(absent.tolist(), slots, strict=False)
        return tuple(Copy(expert, slot) for expert, slot in pairs)[: view.credits]


def texts_of(engine: Any, prompts: list[Prompt]) -> list[list[int]]:
    return [[t for block in engine.generate(p.tokens, TOKENS) for t in block] for p in prompts]


@pytest.mark.parametrize("kind", [ForcedPolicy, Restless])
@pytest.mark.parametrize("preference", ["GPU", "FETCH", "STREAM"])
def test_texts_equal_plain_decoding_without_hazards(
    preference: str, kind: type[ForcedPolicy], tiny: LoadedPair, tiny_prompts: list[Prompt]
) -> None:
    checker = HazardChecker()
    device = fast_standin(checker, rate=20e6)
    policy = kind(preference)
    with tiny_engine(tiny.path, policy, device, slots=8, launch_early=True) as engine:
        texts = texts_of(engine, tiny_prompts)
    prompts = [prompt.tokens for prompt in tiny_prompts]
    assert prove_lossless(tiny.target, prompts, texts, engine.settings, TOKENS).identical
    assert checker.hazards == []
    log = engine.runlog()
    assert log.info.notes["launch"] == "early"
    assert (preference == "STREAM" and kind is ForcedPolicy) or np.concatenate(
        log.layers["hit"].to_list()
    ).any()


@pytest.mark.parametrize("early", [True, False])
def test_residents_start_before_the_decision_only_when_early(early: bool, tiny: LoadedPair) -> None:
    device, policy = standin(1e9, 0, early=early), Late("GPU")
    policy.device = device
    with tiny_engine(tiny.path, policy, device, slots=24, launch_early=early) as engine:
        texts_of(engine, [Prompt("one", (10, 20, 30))])
    layers = engine.runlog().layers
    resident = layers[[bool(hit.any()) for hit in layers["hit"]]]
    assert len(resident) > 10
    assert ((resident["gpu_begin_ns"] < resident["t2_ns"]) == early).all()
    assert (resident["gpu_begin_ns"] >= resident["t1_ns"]).all()
    assert (layers["t1_ns"] >= layers["t0_ns"]).all()
    assert (layers["join_ns"] >= layers["gpu_end_ns"]).all()


def test_a_reader_that_is_not_declared_is_reported(
    tiny: LoadedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule bites: without it a slot is overwritten while an early kernel reads it."""

    def forget(self: LayerExecutor, started: Started, active: Iterable[int]) -> None:
        slots = [started.table[e] for e in active if e in started.table]
        self._device.has_read(started.event, [("slot", slot) for slot in slots])

    monkeypatch.setattr(LayerExecutor, "chosen", forget)
    checker = HazardChecker()
    device = fast_standin(checker)
    with tiny_engine(tiny.path, Restless("FETCH"), device, slots=8, launch_early=True) as engine:
        texts_of(engine, [Prompt("one", (10, 20, 30))])
    assert "write after read" in {hazard.kind for hazard in checker.hazards}


def test_a_plan_that_forgets_what_runs_already_ends_the_run(
    tiny: LoadedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = SlotTable.of_layer

    def without_first(self: SlotTable, layer: int) -> dict[int, int]:
        return dict(list(full(self, layer).items())[1:])

    monkeypatch.setattr(SlotTable, "of_layer", without_first)
    with (
        pytest.raises(RuntimeError, match="started early"),
        tiny_engine(tiny.path, ForcedPolicy("GPU"), slots=24, launch_early=True) as engine,
    ):
        texts_of(engine, [Prompt("one", (10, 20, 30))])


class Published:
    """Stands for transfers: what the session will be told at its next call."""

    def __init__(self) -> None:
        self.pairs: list[tuple[int, int]] = []

    def start_copy(self, expert: int, slot: int, generation: int, kind: int) -> None: ...

    def published(self) -> tuple[tuple[int, int], ...]:
        return tuple(self.pairs)

    def landed(self) -> tuple[np.ndarray, np.ndarray]:
        pairs, self.pairs = np.array(self.pairs, np.int64).reshape(-1, 2), []
        return pairs[:, 0], pairs[:, 1]


def test_the_table_shows_what_the_next_decision_finds_ready() -> None:
    backend = Published()
    shape = EngineSettings(slots=4, staging=0, launch_early=True).shape(2, 4, 2)
    session = Session(ForcedPolicy("FETCH"), shape, flat_costs(), backend)  # type: ignore[arg-type]
    table = SlotTable(session, backend)  # type: ignore[arg-type]
    session.start_pass(0)
    copies = session.enter_layer(Routing(1, np.array([[2, 3]]))).copies
    assert {copy.expert for copy in copies} == {6, 7}
    assert table.of_layer(1) == {}  # on their way is not resident
    slots = {copy.expert - 4: copy.slot for copy in copies}
    backend.pairs = [(copies[0].slot, copies[0].generation)]
    first = copies[0].expert - 4
    assert table.of_layer(1) == {first: slots[first]}
    assert table.of_layer(0) == {}
    session.leave_layer(1)
    assert table.of_layer(1) == {first: slots[first]}  # now from the ledger
    backend.pairs = [(copies[1].slot, copies[1].generation + 1)]
    assert table.of_layer(1) == {first: slots[first]}  # another filling of that slot


def test_the_same_numbers_as_late_to_the_bit(tiny: LoadedPair) -> None:
    outputs = []
    for early in (True, False):
        device = standin(1e9, 0, early=early)
        with tiny_engine(
            tiny.path, ForcedPolicy("FETCH"), device, slots=12, launch_early=early
        ) as e:
            e.listener.start_request(0, [10, 20])
            e.target.prefill([10, 20])
            e.listener.after_prefill([10, 20], 7, 0.0)
            outputs.append([])
            for window in ([7, 12, 31, 9], [3, 3, 40, 22], [14, 15, 16, 17]):
                e.listener.start_pass(window[0], 3)
                e.listener.before_verify(window)
                outputs[-1].append(e.target.forward(window))
                e.listener.end_pass(0, window[:1])
    assert all(torch.equal(a, b) for a, b in zip(*outputs, strict=True))


def test_a_closed_engine_gives_its_slots_back(tiny: LoadedPair) -> None:
    """The next one on the same GPU needs as much again."""
    with tiny_engine(tiny.path, ForcedPolicy("FETCH")) as engine:
        texts_of(engine, [Prompt("one", (10, 20, 30))])
        pool = engine._core._pool
        assert pool.rows.numel() > 0
    assert pool.rows.numel() == 0 and pool.rows.untyped_storage().nbytes() == 0
