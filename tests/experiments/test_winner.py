"""winner.yaml can be read back, and a damaged one is refused in one line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.winner import Winner, read_winner, write_winner
from policies.errors import UserError

WINNER = Winner(
    policy="spac",
    target="policies.zoo.spac.spac",
    parameters={"levels": 5, "up": 3, "signal": "count"},
    gamma=4,
    cache_ratio=0.17,
    model="qwen3-30b-a3b",
    hardware="rtx4090",
    source_hash="0123456789abcdef",
    of_best=1.0,
    of_oracle=0.8,
    runner_up=None,
    lead=None,
    approximate=False,
    inputs={"code": "ab" * 32},
)


def test_round_trip(tmp_path: Path) -> None:
    path = write_winner(tmp_path, WINNER)
    assert path.name == "winner.yaml"
    assert read_winner(path) == read_winner(tmp_path) == WINNER


def test_the_policy_is_built_with_its_parameters() -> None:
    policy = WINNER.choice().build()
    assert policy.parameters()["estimator"]["up"] == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [("policy: spac\n", "expected the keys"), ("a: [", "not valid YAML"), ("- 1\n", "found list")],
)
def test_damage(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "winner.yaml").write_text(text)
    with pytest.raises(UserError, match=expected) as refusal:
        read_winner(tmp_path)
    assert "\n" not in str(refusal.value)


def test_absence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run spac compare first"):
        read_winner(tmp_path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"target": "os.system"}, "the file says os.system"),
        ({"policy": "os.system", "target": "os.system"}, "not allowed to choose code"),
        ({"policy": "my_module.mine", "target": "my_module.mine"}, "not allowed to choose code"),
        ({"target": "policies.zoo.ours.ours"}, "the file says policies.zoo.ours.ours"),
        ({"parameters": {"bogus": 1}}, "unknown parameter of policy spac 'bogus'"),
        ({"parameters": {"up": "abc"}}, "must be a finite number"),
        ({"parameters": {"quota": "foo"}}, "quota"),
    ],
)
def test_a_file_never_chooses_code(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        replace(WINNER, **change).choice().build()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"gamma": "abc"}, "gamma=abc"),
        ({"gamma": -1}, "gamma=-1"),
        ({"cache_ratio": "x"}, "cache_ratio=x"),
        ({"cache_ratio": 2}, "cache_ratio=2"),
        ({"parameters": [1]}, "must be keys with values"),
    ],
)
def test_values_of_the_wrong_kind(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    write_winner(tmp_path, replace(WINNER, **change))
    with pytest.raises(UserError, match=expected):
        read_winner(tmp_path)
