"""What cannot be played is refused before the run, with the number and the remedy."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies import parts
from policies.api import Future, LayerPlan
from policies.composed import ComposedPolicy
from policies.errors import UserError
from policies.session import IllegalPlan
from policies.zoo.ours import ours
from simulator.foresight import future_of
from simulator.reference import simulate
from simulator.settings import RunLabels, SimulationSettings
from tests.simulator.scenes import ListReplay, Scripted, one_row, round_costs, settings
from traces.window import Window

WIDE = [[[0, 1]], [[1, 2]], [[0, 3]]]
REPLAY = ListReplay([[WIDE] * 4], experts=4, accepted=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": -1}, "gamma=-1"),
        ({"slots": 0}, "slots=0"),
        ({"staging": -2}, "staging=-2"),
        ({"launch": "soon"}, "launch=soon: must be early or late"),
        ({"lanes": "two"}, "lanes=two: must be concurrent or serial"),
        ({"requests": 0}, "requests=0"),
    ],
)
def test_settings_that_make_no_sense(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        settings(**changes)


def test_windows_that_the_trace_does_not_hold() -> None:
    with pytest.raises(UserError, match=r"gamma=3: this dense trace goes up to 2"):
        simulate(REPLAY, Scripted(), round_costs(), settings(gamma=3))
    windowed = ListReplay([[WIDE]], experts=4)
    windowed.fixed_gamma = 2
    with pytest.raises(UserError, match=r"gamma=1: .* at gamma 2"):
        simulate(windowed, Scripted(), round_costs(), settings(gamma=1))


def test_more_slots_than_experts() -> None:
    with pytest.raises(UserError, match=r"slots=5: must be 1..4"):
        simulate(REPLAY, Scripted(), round_costs(), settings(slots=5))


def test_a_cost_table_that_is_too_short() -> None:
    long = ListReplay([[one_row([0, 1])]], experts=4, prompts=[[[[0, 1]]] * 40])
    with pytest.raises(
        UserError, match=r"ends at 12 rows .* passes of 40; build it with rows_max=40"
    ):
        simulate(long, Scripted(), round_costs(), settings())


@pytest.mark.parametrize(
    ("need", "message"),
    [("router_mass", "the column router_weights"), ("next_layer_2", "the column next_layer_2")],
)
def test_needs_that_the_trace_lacks(need: str, message: str) -> None:
    policy = Scripted(needs=frozenset({need}))
    with pytest.raises(
        UserError, match=f"scripted needs {need}, and this dense trace lacks {message}"
    ):
        simulate(REPLAY, policy, round_costs(), settings())


class TextReplay(ListReplay):
    """Of kind text; `token`: that of every row."""

    kind = "text"
    token = -1

    def window(self, request: int, start: int, gamma: int) -> Window:
        window = super().window(request, start, gamma)
        return replace(window, tokens=np.full_like(window.tokens, self.token))


def test_a_text_without_tokens_serves_wishes_only() -> None:
    text = TextReplay([[WIDE]], experts=4)
    with pytest.raises(UserError, match="scripted needs draft_tokens, and this text trace lacks"):
        simulate(text, Scripted(needs=frozenset({"draft_tokens"})), round_costs(), settings())
    policy = ours()
    log = simulate(text, policy, round_costs(), settings())
    assert policy.needs == frozenset()
    assert log.info.notes["played_without"] == "draft_tokens (no tokens in the trace)"
    assert "draft_tokens" not in log.info.notes


def test_the_text_stands_in_for_drafted_tokens() -> None:
    text = TextReplay([[WIDE]], experts=4)
    text.token = 7
    policy = ours()
    log = simulate(text, policy, round_costs(), settings())
    assert policy.needs == {"draft_tokens"}
    assert "played_without" not in log.info.notes
    assert log.info.notes["draft_tokens"].endswith("approximate")
    assert (policy.state_.token_expert[7] >= 0).any(), "the token was learned from"


def test_an_illegal_plan_names_policy_and_rule() -> None:
    policy = Scripted(plans={(0, 0): LayerPlan({0: 2})})
    with pytest.raises(IllegalPlan, match="policy scripted, layer 0: an active expert has no"):
        simulate(REPLAY, policy, round_costs(), settings())


def belady(**changes: Any) -> ComposedPolicy:
    return ComposedPolicy(
        "belady", parts.NextUse(), parts.FetchMisses(bypass=True), parts.Still(), **changes
    )


def test_a_clairvoyant_needs_a_fixed_window() -> None:
    policy = belady(window=parts.Roofline())
    with pytest.raises(UserError, match=r"clairvoyant needs a fixed window .* not Roofline"):
        simulate(REPLAY, policy, round_costs(), settings(gamma=2))


class Seer(Scripted):
    """A clairvoyant in plain Python."""

    future: Future | None = None

    def foresee(self, future: Future) -> None:
        self.future = future


def test_a_clairvoyant_whose_windows_differ_from_its_future() -> None:
    with pytest.raises(UserError, match=r"chose gamma 1, but its future was made for gamma 2"):
        simulate(REPLAY, Seer(gammas=[2, 1, 2, 2]), round_costs(), settings(gamma=2))


def test_the_future_is_what_happens() -> None:
    seer = Seer()
    log = simulate(REPLAY, seer, round_costs(), settings(gamma=2))
    assert seer.future is not None
    assert len(seer.future.counts) == len(log.passes) == 2
    assert seer.future.counts[0].tolist() == [[2, 2, 1, 1]]
    assert future_of(REPLAY, [0], 0).counts.shape == (4, 1, 4)


def test_a_clairvoyant_at_its_own_window() -> None:
    policy = belady(window=parts.FixedWindow(1))
    log = simulate(REPLAY, policy, round_costs(), settings(gamma=2))
    assert log.passes["gamma"].tolist() == [1, 1]


def test_an_existing_run_log_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("kept")
    with pytest.raises(UserError, match="never overwritten"):
        simulate(REPLAY, Scripted(), round_costs(), settings(), path=tmp_path)


def test_run_json_says_what_was_played() -> None:
    labels = RunLabels("rtx4090", "code", "abc", "qwen3-30b-a3b", "measured", {"why": "test"})
    chosen = SimulationSettings(gamma=1, slots=2, launch="early", lanes="serial")
    info = simulate(REPLAY, Scripted(), round_costs(), chosen, labels).info
    assert (info.kind, info.engine, info.policy) == ("simulated", "reference", "scripted")
    assert (info.hardware, info.trace, info.trace_digest) == ("rtx4090", "code", "abc")
    assert (info.model.name, info.model.layers, info.expert_bytes) == ("qwen3-30b-a3b", 1, 1000)
    assert (info.slots, info.staging, info.decision_source) == (2, 4, "measured")
    assert info.notes["launch"] == "early" and info.notes["lanes"] == "serial"
    assert info.notes["recorded_model"] == "scene, 1 layers"
    assert info.notes["why"] == "test"
