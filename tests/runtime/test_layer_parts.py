"""The small parts of a layer: row groups, predictions, router message, pace."""

import time

import numpy as np
import pytest
import torch
from conftest import LoadedPair
from offload_setup import fast_standin, flat_costs

from runtime.next_layers import NextLayers, horizon_of
from runtime.pace import Pace, extended
from runtime.router_message import RouterChannel
from runtime.routing_capture import RoutingCapture
from runtime.row_groups import group_choices
from traces.rows import FILLER


def test_choices_are_grouped_by_expert_in_ascending_order() -> None:
    groups = group_choices(np.array([[3, 1], [1, 0], [3, 0]]))
    assert list(groups.items()) == [(0, [3, 5]), (1, [1, 2]), (3, [0, 4])]


@pytest.mark.parametrize("seed", range(5))
def test_every_choice_is_in_exactly_one_group(seed: int) -> None:
    random = np.random.default_rng(seed)
    experts = np.array([random.permutation(9)[:4] for _ in range(7)])
    rebuilt = np.full_like(experts, -1)
    for expert, choices in group_choices(experts).items():
        rebuilt.ravel()[choices] = expert
    assert np.array_equal(rebuilt, experts)


def test_predictions_are_what_the_recorder_stores(tiny: LoadedPair) -> None:
    seen: list[torch.Tensor] = []
    routers = tiny.target.routers
    hooks = [
        router.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
        for router in routers
    ]
    with RoutingCapture(routers, lookahead=3) as capture:
        tiny.target.prefill([7, 8, 9, 10])
        recorded = capture.take().next_layer
    for hook in hooks:
        hook.remove()
    predictor = NextLayers(routers, 3, tiny.target.facts.top_k)
    assert recorded is not None
    for layer, hidden in enumerate(seen):
        predicted = predictor.predict(layer, hidden.reshape(4, -1))
        assert predicted is not None
        assert np.array_equal(predicted.numpy(), recorded[:, :, layer])
    assert (recorded[:, :, -1] == FILLER).all()


@pytest.mark.parametrize(
    ("needs", "horizon"),
    [
        (set(), 0),
        ({"router_mass"}, 0),
        ({"next_layer_1"}, 1),
        ({"next_layer_1", "next_layer_3"}, 3),
    ],
)
def test_the_horizon_follows_from_the_needs(needs: set[str], horizon: int) -> None:
    assert horizon_of(frozenset(needs)) == horizon
    assert horizon > 0 or NextLayers([], horizon, 2).predict(0, torch.zeros(1, 4)) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("predict", [False, True])
def test_a_router_message_arrives_as_it_was_sent(dtype: torch.dtype, predict: bool) -> None:
    device = fast_standin()
    channel = RouterChannel(device)
    for rows in (1, 5, 400):  # the last is larger than the ring's first buffers
        experts, weights = torch.randint(9, (rows, 3)), torch.rand(rows, 3).to(dtype)
        hidden = torch.randn(rows, 64).to(dtype)
        predicted = torch.randint(9, (2, rows, 3)) if predict else None
        message = channel.post(experts, weights, predicted, hidden).wait()
        assert np.array_equal(message.experts, experts.numpy())
        assert np.array_equal(message.weights, weights.float().numpy())
        assert torch.equal(message.hidden, hidden)
        if predicted is None:
            assert message.predicted is None
        else:
            assert np.array_equal(message.predicted, predicted.numpy())
    device.close()


def test_the_pace_stretches_work_and_late_ends_do_not_add_up() -> None:
    pace = Pace(flat_costs())
    begin = time.monotonic_ns()
    until = begin
    for _ in range(100):
        until = pace.gpu_expert(until, rows=2)
    assert until - begin >= 100 * 5_000
    assert pace.overruns or until - begin == 100 * 5_000
    assert time.monotonic_ns() >= until


def test_without_costs_nothing_waits() -> None:
    pace, begin = Pace(None), time.monotonic_ns()
    pace.dense(begin, 5, 7)
    pace.draft_step(begin)
    pace.head(begin)
    assert pace.gpu_expert(begin, 5) >= begin


def test_a_table_continues_in_proportion_beyond_its_end() -> None:
    table = np.array([0, 10, 20], np.int64)
    assert [extended(table, rows) for rows in (0, 1, 2, 4)] == [0, 10, 20, 40]
