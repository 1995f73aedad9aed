"""Values of every key of every command are checked before it begins: kind, null, list."""

from functools import cache
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from experiments.commands import COMMANDS, Command
from experiments.configuration import compose_config
from experiments.help_text import all_keys
from experiments.key_kinds import (
    GRIDS,
    KINDS,
    LISTS,
    MAPPING,
    MAY_BE_EMPTY,
    NUMBER,
    OF_COMMAND,
    SEED,
    TEXT,
    TEXT_OR_FALSE,
    TRUTH,
    WHOLE,
    as_written,
    check_values,
    kind_of,
    takes_list,
    takes_null,
)
from policies.errors import UserError
from tests.experiments.conftest import Spac

EVERY_COMMAND = pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda one: one.name)
WRONG = {
    WHOLE: (1.5, True, "x", {"a": 1}, 2**63),
    NUMBER: (True, "x", float("nan"), float("inf"), 10**400, {"a": 1}),
    SEED: (-1, 1.5, True, "x", 2**63),
    TRUTH: (1, "yes", 0.0),
    TEXT: (1, 1.5, True, "", {"a": 1}),
    MAPPING: (1, "x", True),
    TEXT_OR_FALSE: (True, 1, ""),
}


@cache
def defaults(command: str) -> DictConfig:
    """The config without any key given."""
    return compose_config(COMMANDS[command], [])


def refusal(command: Command, key: str, value: object) -> str | None:
    """What is said of one value among the command's defaults."""
    config = OmegaConf.masked_copy(defaults(command.name), list(defaults(command.name)))
    OmegaConf.set_struct(config, False)
    config.pop(key)
    config[key] = value
    try:
        check_values(command, config)
    except UserError as error:
        return str(error)
    return None


@EVERY_COMMAND
def test_every_key_has_a_kind_and_its_default_fits(command: Command) -> None:
    config = compose_config(command, [])
    keys = {key.name for key in all_keys(command)}
    assert keys == set(map(str, config))
    assert not [key for key in keys if kind_of(command, key) is None]


def test_the_table_names_only_keys_that_exist() -> None:
    there = {name: {key.name for key in all_keys(one)} for name, one in COMMANDS.items()}
    known = set().union(*there.values())
    assert set(KINDS) <= known
    assert set(MAY_BE_EMPTY) <= known and set(GRIDS) <= known
    for name, keys in LISTS.items():
        assert set(keys) <= (there[name] if name else known), name
    for name, changed in OF_COMMAND.items():
        assert set(changed) <= there[name]


@EVERY_COMMAND
def test_wrong_values_of_every_key(command: Command) -> None:
    for key in all_keys(command):
        kind = kind_of(command, key.name)
        assert kind is not None
        for wrong in WRONG[kind]:
            for value in (wrong, [wrong]) if takes_list(command, key.name) else (wrong,):
                said = refusal(command, key.name, value)
                assert said is not None and said.startswith(f"{key.name}="), (key.name, value)


@EVERY_COMMAND
def test_null_and_lists_only_where_the_help_says_so(command: Command) -> None:
    for key in all_keys(command):
        said = refusal(command, key.name, None)
        assert (said is None) == takes_null(command, key), (key.name, said)
        empty = refusal(command, key.name, [])
        fine = takes_list(command, key.name) and key.name in MAY_BE_EMPTY
        assert (empty is None) == fine, (key.name, empty)
        if not takes_list(command, key.name):
            listed = refusal(command, key.name, [1, 2])
            assert listed is not None and "takes one value here" in listed


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "true"), ([1, None], "[1,null]"), ({"a": False}, "{a: false}")],
)
def test_values_are_said_as_they_are_written(value: object, text: str) -> None:
    assert as_written(value) == text


@pytest.mark.parametrize("name", ["007", "1e3", "1_000", "true", "NaN", "-inf", "3.10"])
def test_a_text_is_taken_as_it_stands(name: str) -> None:
    config = compose_config(COMMANDS["record"], [f"out={name}"])
    assert config.out == name
    assert compose_config(COMMANDS["run"], [f"stop={name}"]).stop == name


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    config = compose_config(COMMANDS["run"], ["out='~/made'", "prompt=~/made", "stop='~/'"])
    assert (config.out, config.prompt, config.stop) == ("/home/me/made", "~/made", "~/")


@pytest.mark.parametrize("value", ["-1", "true", "''", "{a: 1}", "null", "1.5"])
@pytest.mark.parametrize("group", ["hardware", "model", "draft"])
def test_a_group_is_given_by_the_name_of_an_option(spac: Spac, group: str, value: str) -> None:
    assert f"{group}={value}: name one of " in spac("simulate", f"{group}={value}").error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["simulate", "trace=null"], "trace=null: give a value: trace directory or name"),
        (["timeline", "runlog=[]"], "runlog=[]: name at least one"),
        (["bench", "only=[]"], "only=[]: name at least one"),
        (["demo", "sweep_ratios=null"], "sweep_ratios=null: give a value"),
        (["simulate", "gamma=[1,2]"], "spac compare plays grids"),
        (["compare", "trace=[]"], "trace=[]: name at least one trace"),
        (["trace", "stats", "code", "out=made"], "out=made: counts with spac trace import"),
        (["trace", "info", "code", "gammas=[1]"], "gammas=[1]: counts with spac trace stats only"),
        (["trace", "check", "code", "seed=0"], "seed=0: counts with spac trace stats or"),
        (["study", "paper", "errors=[0,1]"], "it counts with spac study theory"),
        (["study", "formats", "workers=1"], "it counts with spac study cells"),
        (["study", "paper", "trace=code"], "it counts with spac study theory or formats"),
        (["report", "folder=here", "folder=there"], "folder is given twice, folder=here and"),
    ],
)
def test_what_a_person_may_type(
    spac: Spac, tmp_path: Path, words: list[str], expected: str
) -> None:
    assert expected in spac(*words).error
    assert list(tmp_path.iterdir()) == []
