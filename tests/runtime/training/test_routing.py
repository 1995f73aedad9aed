"""Routing statistics on hand-made routing, and the two router losses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from runtime.training import routing_statistics as statistics
from runtime.training.locality import balance_loss, locality_loss, locality_weight
from runtime.training.network import Network, initialise
from runtime.training.recipe import Schedule, TargetRecipe
from tests.runtime.training.tiny_texts import TINY_TARGET


def routing_of(tokens: list[list[int]]) -> np.ndarray:
    return np.array(tokens, dtype=np.uint8)[None, :, None, :]


def test_reuse_counts_shared_experts():
    assert statistics.reuse(routing_of([[0, 1], [1, 2], [2, 1], [5, 6]])) == pytest.approx(0.5)


def test_lru_by_hand():
    # Capacity 3: 0, 1 miss; 1 hits, 2 misses; 0 hits, 3 evicts 1; 2 hits first, then 1 misses.
    routing = routing_of([[0, 1], [1, 2], [0, 3], [1, 2]])
    assert statistics.lru_hit_rate(routing, 3) == pytest.approx(3 / 8)


def test_lru_refuses_less_than_one_token():
    with pytest.raises(ValueError, match="capacity 1"):
        statistics.lru_hit_rate(routing_of([[0, 1]]), 1)


def test_shuffling_keeps_tokens_and_lowers_locality():
    walk = [[step // 10, step // 10 + 1] for step in range(200)]
    routing = routing_of(walk)
    shuffled = statistics.shuffled_tokens(routing, 0)
    assert sorted(map(tuple, shuffled[0, :, 0])) == sorted(map(tuple, routing[0, :, 0]))
    assert statistics.lru_hit_rate(shuffled, 4) < statistics.lru_hit_rate(routing, 4)


def test_distinct_and_entropy():
    routing = routing_of([[0, 1], [0, 1], [2, 3], [3, 2]])
    assert statistics.distinct_per_window(routing, 2) == 2
    assert statistics.distinct_per_window(routing, 4) == 4
    assert statistics.entropy(routing, 4) == pytest.approx([1.0])


def test_router_losses_are_in_range():
    network = Network(TINY_TARGET)
    initialise(network, 0)
    network(torch.randint(0, 320, (2, 30), generator=torch.Generator().manual_seed(0)))
    block = network.expert_blocks()[0]
    assert 0.9 <= balance_loss(block).item() <= TINY_TARGET.experts
    assert 0 <= locality_loss(block, 2).item() <= 2
    block.router_logits = torch.randn(1, 8).repeat(60, 1) + torch.arange(60)[:, None].gt(29) * 1.0
    assert locality_loss(block, 2).item() < 1.1


def test_locality_weight_ramps():
    recipe = TargetRecipe(
        schedule=Schedule(10, 1.0, 0, 0.5), locality_first_step=2, locality_full_step=6
    )
    weights = [locality_weight(recipe, step) / recipe.locality_weight for step in (0, 2, 4, 6, 9)]
    assert weights == pytest.approx([0, 0, 0.5, 1, 1])
