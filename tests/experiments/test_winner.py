"""winner.yaml can be read back, and a damaged one is refused in one line."""

from dataclasses import replace
from pathlib import Path

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


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(UserError, match="cannot import policies"):
        replace(WINNER, target="policies.zoo.nothing.nothing").choice().build()
