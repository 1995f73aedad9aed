"""One decision layer, two worlds: in logical time simulator and runtime make identical plans."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.logical_time import prove_logical_time
from policies.zoo.all_cpu import all_cpu
from policies.zoo.binary_prefetch import binary_prefetch
from policies.zoo.lru_cpu import lru_cpu
from policies.zoo.lru_fetch import lru_fetch
from policies.zoo.ours import ours
from policies.zoo.spac import spac
from policies.zoo.static_hot import static_hot
from runtime.engine_settings import EngineSettings
from runtime.prompts import Prompt
from runtime.standin import standin
from runtime.tiny import TinyShape, make_tiny_pair

torch.set_num_threads(1)

PROMPTS = [
    Prompt(f"prompt {n}", tuple((7 * n + 11 * place) % 58 + 6 for place in range(length)))
    for n, length in enumerate((3, 8, 13))
]
POLICIES: dict[str, Callable[[], Any]] = {
    "all_cpu": all_cpu,
    "lru_cpu": lru_cpu,
    "lru_fetch": lru_fetch,
    "binary_prefetch": binary_prefetch,
    "static_hot": static_hot,
    "ours": ours,  # its window follows the acceptance of the last passes, over requests
    "spac": spac,
    "spac by mass": lambda: spac(signal="mass"),
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pair")
    make_tiny_pair(path, seed=3, shape=TinyShape(dense_layers=(1,), layers=4, end_token=5))
    return path


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("gamma", [0, 3])
def test_plans_are_identical(name: str, gamma: int, pair: Path) -> None:
    comparison = prove_logical_time(
        pair / "target", pair / "draft", PROMPTS, POLICIES[name],
        standin(bytes_per_second=100e6, latency_ns=1_000),
        EngineSettings(slots=7, staging=1, gamma=gamma), max_new_tokens=24,
    )  # fmt: skip
    assert comparison.identical, comparison.first_difference
    assert comparison.decisions > 100


@pytest.mark.parametrize("name", ["lru_fetch", "ours", "spac"])
def test_plans_are_identical_with_early_launch(name: str, pair: Path) -> None:
    """Residents are then started from the slot table, before the session is asked."""
    comparison = prove_logical_time(
        pair / "target", pair / "draft", PROMPTS, POLICIES[name],
        standin(bytes_per_second=100e6, latency_ns=1_000, early=True),
        EngineSettings(slots=9, staging=1, gamma=3, launch_early=True), max_new_tokens=24,
    )  # fmt: skip
    assert comparison.identical, comparison.first_difference
    assert comparison.decisions > 100


def test_a_different_policy_is_noticed(pair: Path) -> None:
    """The comparison bites: another policy in the runtime makes other plans."""
    policies = iter([lru_fetch(), lru_cpu()])
    comparison = prove_logical_time(
        pair / "target", pair / "draft", PROMPTS[:1], lambda: next(policies),
        standin(bytes_per_second=100e6, latency_ns=1_000),
        EngineSettings(slots=7, staging=1, gamma=3), max_new_tokens=24,
    )  # fmt: skip
    assert not comparison.identical
    assert "|" in comparison.first_difference
