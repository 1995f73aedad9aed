"""Every config file composes, builds what it describes, and explains its keys."""

import shlex

import pytest
from omegaconf import OmegaConf

from experiments.commands import COMMANDS, CONF, Command, options
from experiments.configuration import compose_config
from experiments.decision_file import choose_decision
from experiments.help_text import examples, read_config_text
from experiments.policy_choice import choose_policies
from experiments.policy_notes import FAMILIES, family, policy_notes, summary
from experiments.tuning_space import space_of
from policies.api import NEEDS
from simulator.draft_profile import draft_profile
from simulator.hardware import hardware_profile
from simulator.model_profile import model_profile
from traces.manifest import ModelInfo

TRACE = ModelInfo("some", 8, 64, 4, 49_152)
EVERY_COMMAND = pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda one: one.name)


def group(name: str) -> list[str]:
    return options(name)


def content(name: str, option: str) -> dict:
    return OmegaConf.to_container(OmegaConf.load(CONF / name / f"{option}.yaml"))


@EVERY_COMMAND
def test_defaults_compose(command: Command) -> None:
    assert compose_config(command, [])


@EVERY_COMMAND
def test_every_key_is_explained(command: Command) -> None:
    about, keys = read_config_text(command)
    assert about and keys
    assert all(key.meaning for key in keys), [key.name for key in keys if not key.meaning]


@EVERY_COMMAND
def test_help_has_three_examples_that_compose(command: Command) -> None:
    shown = examples(command)
    assert len(shown) == 3
    for example in shown:
        program, name, *words = shlex.split(example.split("#")[0])
        assert (program, name) == ("spac", command.name)
        if "-m" in words:  # one job of the sweep
            words = [word if "[" in word else word.split(",")[0] for word in words if word != "-m"]
        compose_config(command, words)


@pytest.mark.parametrize("name", group("policy"))
def test_every_policy_builds_and_names_itself(name: str) -> None:
    (choice,) = choose_policies([name])
    policy = choice.build()
    assert policy.needs <= set(NEEDS)
    assert policy_notes(name) and len(summary(name)) <= 53 and family(name) in FAMILIES


@pytest.mark.parametrize("name", group("hardware"))
def test_every_hardware_is_a_profile(name: str) -> None:
    assert hardware_profile(content("hardware", name)).name == name


@pytest.mark.parametrize("name", group("model"))
def test_every_model_is_a_profile(name: str) -> None:
    assert model_profile(content("model", name), trace=TRACE).name == name


@pytest.mark.parametrize("name", group("draft"))
def test_every_draft_is_a_profile(name: str) -> None:
    assert draft_profile(content("draft", name)).name == name


@pytest.mark.parametrize("name", group("decision"))
def test_every_decision_file_is_read_by_its_name(name: str) -> None:
    times = choose_decision(name)
    assert times is not None and times.name == name
    assert {"spac", "lru_cpu"} <= set(times.policies)


@pytest.mark.parametrize("name", group("ranges"))
@pytest.mark.parametrize("policy", group("policy"))
def test_every_range_is_one_that_the_parts_take(name: str, policy: str) -> None:
    (choice,) = choose_policies([policy])
    ranges = content("ranges", name)
    assert set(choice.parameters) <= set(ranges)
    axes = space_of(choice, ranges, None, 4, 8)
    assert all(axis.holds(axis.default) for axis in axes if axis.default is not None)


def test_no_config_file_is_left_out() -> None:
    tested = {"policy", "hardware", "model", "draft", "decision", "ranges"}
    assert {path.name for path in CONF.iterdir() if path.is_dir() and path.name[0] != "_"} == tested
    assert {path.stem for path in CONF.glob("*.yaml")} == set(COMMANDS)
