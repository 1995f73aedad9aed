"""Policies in files: taken by every command that takes a policy; damaged ones refused."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from experiments.policy_choice import choose_policies
from experiments.policy_file import PolicyFile, read_policy, write_policy
from experiments.run_choice import choose_run
from policies.errors import UserError
from tests.experiments.conftest import Spac

TUNED = PolicyFile("spac-night", "spac", {"up": 4, "levels": 9}, 2, {"trials": 7})
SMALL = ("hardware=rtx4090", "model=trace", "draft=pair", "cache_ratio=0.3")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "tuned"
    path.mkdir()
    write_policy(path, TUNED, "how it was found")
    return path


def test_what_is_written_is_read(folder: Path) -> None:
    assert read_policy(folder) == read_policy(folder / "policy.yaml") == TUNED
    assert (folder / "policy.yaml").read_text().startswith("# how it was found\n")


def test_a_file_is_its_policy_with_other_values(folder: Path) -> None:
    (plain,) = choose_policies(["spac"])
    (tuned,) = choose_policies([str(folder)], {"down": 2})
    assert (tuned.name, tuned.label, tuned.gamma) == ("spac", "spac-night down=2", 2)
    assert tuned.parameters == {**plain.parameters, "up": 4, "levels": 9, "down": 2}
    assert tuned.build().estimator.up == 4


def test_simulate_takes_its_gamma_unless_another_is_given(
    spac: Spac, dense_trace: Path, folder: Path
) -> None:
    for more, gamma in ((), 2), (("gamma=1",), 1):
        done = spac("simulate", f"trace={dense_trace}", f"policy={folder}", *SMALL, *more)
        assert done.code == 0 and "spac-night" in done.out
        passes = next(Path("outputs/simulate/latest/runlogs").glob("*/passes.parquet"))
        assert pd.read_parquet(passes)["gamma"].max() == gamma


def test_compare_ranks_it_beside_the_default(spac: Spac, dense_trace: Path, folder: Path) -> None:
    done = spac(
        "compare", f"trace={dense_trace}", f"policy=[spac,{folder}]", *SMALL, "gamma=3",
        "workers=1", "pictures=false", "no_speculation=null", "bound=none",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "spac-night was tuned with gamma=2; here it plays the grid's" in done.out
    rows = pd.read_parquet("outputs/compare/latest/table.parquet").set_index("policy")
    assert list(rows.index) == ["spac", "spac-night"] and set(rows["policy_name"]) == {"spac"}
    assert '"up": 4' in rows.loc["spac-night", "parameters"]


def test_run_takes_it(folder: Path) -> None:
    words = [f"policy={folder}", "workload=code"]
    choice = choose_run(compose_config(COMMANDS["run"], words))
    assert choice.policy.parameters["up"] == 4 and choice.settings.gamma == 2
    choice = choose_run(compose_config(COMMANDS["run"], [*words, "gamma=3"]))
    assert choice.settings.gamma == 3


@pytest.mark.parametrize(
    "change,named",
    [
        ({"policy": "os.system"}, "unknown policy"),
        ({"policy": "spacc"}, "did you mean spac"),
        ({"parameters": {"upp": 3}}, "unknown parameter"),
        ({"parameters": [1]}, "must be keys with values"),
        ({"gamma": "two"}, "must be a whole number"),
        ({"name": "a\nb"}, "letters, digits"),
        ({"more": 1}, "expected the keys"),
    ],
)
def test_damaged_files_are_refused(folder: Path, change: dict, named: str) -> None:
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    with pytest.raises(UserError, match=named):
        choose_policies([str(path)])


@pytest.mark.parametrize("text", ["{", "[1, 2]", "", "policy: !!python/name:os.system"])
def test_what_is_no_policy_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"some\.yaml"):
        choose_policies([str(path)])
    with pytest.raises(UserError, match="cannot read it"):
        choose_policies([str(tmp_path / "none.yaml")])
