"""The registry: every system has its file, its name and its needs; ablations change one part."""

import pytest

from experiments.policy_choice import choose_policies
from experiments.policy_notes import policy_notes
from policies.composed import ComposedPolicy
from policies.zoo import ZOO

NEEDS = {
    "binary_prefetch": {"next_layer_1"},
    "mixtral_offloading": {"next_layer_1"},
    "fate": {"next_layer_1"},
    "adapmoe": {"next_layer_1", "next_layer_2"},
    "promoe_standin": {"next_layer_1", "next_layer_2"},
    "sp_moe_standin": {"next_layer_1", "next_layer_2"},
    "moe_speq_standin": {"next_layer_1", "next_layer_2"},
    "dali": {"next_layer_1"},
    "dali_exact": {"next_layer_1"},
    "hybrimoe": {"router_mass", "next_layer_1", "next_layer_2", "next_layer_3"},
    "ours": {"draft_tokens"},
}
WISHES = {"ours": {"draft_tokens"}}


@pytest.mark.parametrize("name", sorted(ZOO))
def test_every_system_has_a_config_that_builds_the_same(name):
    (choice,) = choose_policies([name])
    built = choice.build()
    assert built.name == name
    assert built.parameters() == ZOO[name]().parameters()
    notes = " ".join(policy_notes(name))
    assert "arXiv" in notes or "Source" in notes or "bound" in notes


@pytest.mark.parametrize("name", sorted(ZOO))
def test_needs(name):
    assert ZOO[name]().needs == NEEDS.get(name, set())
    assert ZOO[name]().wishes == WISHES.get(name, set())


def differing(one: ComposedPolicy, other: ComposedPolicy) -> set[str]:
    mine, theirs = one.parameters(), other.parameters()
    return {part for part in mine if mine[part] != theirs[part]}


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("spac_no_inertia", "estimator"),
        ("spac_no_balancer", "balancer"),
        ("spac_no_async", "mover"),
        ("spac_no_calibration", "estimator"),
    ],
)
def test_an_ablation_changes_one_part(name, part):
    assert differing(ZOO[name](), ZOO["spac"]()) == {part}


def test_pairs_that_differ_in_one_part_only():
    assert differing(ZOO["dali"](), ZOO["dali_exact"]()) == {"balancer"}
    assert differing(ZOO["n_cpu_moe"](), ZOO["n_cpu_moe_plain"]()) == {"window"}
    assert differing(ZOO["lru_cpu"](), ZOO["lru_cpu_no_speculation"]()) == {"window"}
    assert differing(ZOO["static_hot"](), ZOO["ktransformers"]()) == {"quota"}
