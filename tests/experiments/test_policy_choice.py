"""Policies by name, with parameters, grids of parameters, and policies of a user's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments.policy_choice import choose_policies, named_function
from policies.composed import ComposedPolicy
from policies.errors import UserError
from policies.zoo.lru_cpu import lru_cpu


def own_policy(**parameters: Any) -> ComposedPolicy:
    """What a user's module may offer."""
    assert parameters == {"depth": 2}
    return lru_cpu()


def labels(names: list[str], overrides: Mapping[str, Any] | None = None) -> list[str]:
    return [choice.label for choice in choose_policies(names, overrides)]


def test_names_in_order() -> None:
    assert labels(["spac", "lru_cpu"]) == ["spac", "lru_cpu"]


def test_a_single_policy_takes_parameters_directly() -> None:
    (choice,) = choose_policies(["spac"], {"up": 3})
    assert choice.label == "spac up=3"
    assert choice.parameters["up"] == 3 and choice.parameters["levels"] == 5


def test_several_policies_take_them_by_name() -> None:
    assert labels(["spac", "lru_cpu"], {"spac": {"up": 3}}) == ["spac up=3", "lru_cpu"]


def test_a_list_of_values_is_a_grid() -> None:
    grid = {"up": [1, 2], "down": [1, 2]}
    assert labels(["spac"], grid) == ["spac up=1", "spac up=1 down=2", "spac", "spac down=2"]


def test_each_build_is_fresh() -> None:
    (choice,) = choose_policies(["spac"])
    assert choice.build() is not choice.build()


def test_own_policy_by_import_path() -> None:
    path = f"{__name__}.own_policy"
    (choice,) = choose_policies([path], {"depth": 2})
    assert choice.build().name == "lru_cpu"


@pytest.mark.parametrize(
    ("names", "overrides", "expected"),
    [
        (["spac"], {"upp": 3}, "unknown parameter of policy spac 'upp', did you mean up?"),
        (["spac", "lru_cpu"], {"up": 3}, "with several policies write policy.<name>"),
        (["spac", "spac"], {}, "listed twice"),
        (["nothing.here"], {}, "cannot import nothing.here"),
    ],
)
def test_refusals(names: list[str], overrides: Mapping[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        [choice.build() for choice in choose_policies(names, overrides)]


def test_a_grid_over_a_parameter_of_a_class_of_ones_own() -> None:
    """`policy.my_module.MyPolicy.fade=[..]`: Hydra reads the dots of the name as levels."""
    overrides = {"tests": {"policies": {"plain_lru": {"PlainLru": {"fade": [0.5, 0.9]}}}}}
    found = choose_policies(["tests.policies.plain_lru.PlainLru", "lru_cpu"], overrides)
    own = [dict(one.parameters) for one in found if one.name.endswith("PlainLru")]
    assert own == [{"fade": 0.5}, {"fade": 0.9}]
    assert [one.name for one in found][-1] == "lru_cpu"


def test_a_folder_of_the_same_name_on_the_path_does_not_hide_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `outputs/` of a checkout does where another folder is the working directory."""
    (tmp_path / "checkout" / "made_here").mkdir(parents=True)
    own = tmp_path / "work" / "made_here" / "own.py"
    own.parent.mkdir(parents=True)
    own.write_text("def read():\n    return 7\n")
    (own.parent / "broken.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path / "checkout")
    monkeypatch.chdir(tmp_path / "work")
    assert named_function("made_here.own.read", "format")() == 7
    with pytest.raises(UserError, match="No module named 'no_such_dependency'"):
        named_function("made_here.broken.read", "format")
    with pytest.raises(UserError, match=r"No module named 'made_here\.absent'"):
        named_function("made_here.absent.read", "format")
