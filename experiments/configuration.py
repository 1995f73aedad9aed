"""From words of the command line to a strict config, with Hydra doing the composition."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from hydra import compose, initialize_config_module
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException
from omegaconf import DictConfig, open_dict

from experiments.commands import Command, options
from experiments.given import refuse_conflicts
from experiments.help_text import all_keys
from experiments.key_kinds import TEXT, check_values, kind_of
from experiments.profile_file import read_hardware, take_profile
from policies.errors import UserError

PLAIN = re.compile(r"[^\[\]{}'\"]+")
KEY_VALUE = re.compile(r"[+~]*[A-Za-z_][\w./@-]*=")
NO_TEXT = re.compile(r"(?i)true|false|nan|[+-]?(inf|[\d_.]+(e[+-]?\d+)?)")  # Hydra's own reading
INTERPOLATION = re.compile(r"(\\*)\$\{")
FREE_TEXT = ("prompt", "stop")
GROUPS = ("model", "draft", "hardware", "ranges")


def split_words(command: Command, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """(values of leading positional words and of free texts, the rest as overrides)."""
    values: dict[str, str] = {}
    rest = list(words)
    for key in command.positional:
        if not rest or rest[0].startswith("-"):
            break
        if KEY_VALUE.match(rest[0]) and not Path(rest[0]).exists():
            break
        values[key] = rest.pop(0)
    for word in list(rest):
        if word.startswith("+hydra."):  # launchers have open lists of settings
            continue
        if word.startswith(("+", "~")):
            raise UserError(
                f"'{word}': keys cannot be added or removed; see spac {command.name} --help"
            )
        key, equals, text = word.partition("=")
        if key in command.free_text and equals and text != "null":
            values[key] = text
            rest.remove(word)
        elif not word.startswith("-") and not KEY_VALUE.match(word):
            raise UserError(
                f"'{word}' is not of the form key=value; see spac {command.name} --help"
            )
    refuse_conflicts(command, values, rest)
    return values, rest


def translate(command: Command, overrides: Sequence[str]) -> list[str]:
    """Overrides in Hydra's terms.

    Policies are named by the plain key `policies` and their parameters by `overrides`, because
    Hydra would merge a list of options of a group into one mixed option. For the other groups a
    list is refused.
    """
    result = []
    for word in overrides:
        key, equals, value = word.partition("=")
        if kind_of(command, key) is TEXT and NO_TEXT.fullmatch(value):
            value = f"'{value}'"  # a folder called 007 is neither 7 nor 7.0
            word = key + equals + value
        if key in command.renamed:
            word = command.renamed[key] + equals + value
        elif "policy" in command.renamed and key.startswith("policy."):
            word = "++overrides." + word.removeprefix("policy.")
        result.append(word)
    for override in parse(result):
        if override.key_or_group in GROUPS:
            _refuse_no_option(override)
    return result


def _refuse_no_option(override: Override) -> None:
    """UserError unless the value of a config group is the name of one option, which Hydra looks up,
    or, under -m, several of them."""
    key, value = override.key_or_group, override.value()
    if isinstance(value, list):
        raise UserError(
            f"{override.input_line}: a list is not possible here; -m {key}=a,b runs one job each"
        )
    if not override.is_sweep_override() and (not isinstance(value, str) or not value):
        raise UserError(f"{override.input_line}: name one of {', '.join(options(key))}")


def parse(words: Sequence[str]) -> list[Override]:
    """Hydra's reading of `words`; UserError names the word and how to quote it."""
    try:
        return OverridesParser.create().parse_overrides(list(words))
    except OverrideParseException as error:
        key, _, value = error.override.partition("=")
        if PLAIN.fullmatch(value):
            # An unquoted list ends where a bracket does; a path or a name has none of these.
            raise UserError(
                f"{error.override}: spaces and special characters need quotes inside the shell's: "
                f"\"{key}='{value}'\""
            ) from error
        raise


def compose_config(command: Command, words: Sequence[str]) -> DictConfig:
    """The config of an ordinary run; a key that the config file lacks is refused."""
    values, overrides = split_words(command, words)
    machine, overrides = take_profile(overrides)
    overrides = translate(command, overrides)
    with initialize_config_module(config_module="conf", version_base="1.3"):
        try:
            config = compose(config_name=command.name, overrides=overrides)
        except ValueError as error:  # Hydra's own, for a group that is given no name
            raise UserError(f"{' '.join(overrides)}: {error}") from error
    return finish(command, config, values, machine)


def finish(
    command: Command, config: DictConfig, values: dict[str, str], machine: Path | None = None
) -> DictConfig:
    """`config` with the user's names of keys, the values that bypass Hydra's grammar, and the
    hardware profile in the file `machine`, if any.
    """
    with open_dict(config):
        if machine is not None:
            config["hardware"] = read_hardware(machine)
        for shown, inner in command.renamed.items():
            config[shown] = config.pop(inner)
    for key, value in values.items():
        config[key] = as_it_is(key, value)
    check_values(command, config)
    for key in all_keys(command):
        value = config[key.name]
        # Not every shell does this behind an equals sign.
        if isinstance(value, str) and value.startswith("~/") and key.name not in FREE_TEXT:
            config[key.name] = os.path.expanduser(value)
    return config


def as_it_is(key: str, text: str) -> str:
    """`text` so that OmegaConf, which fills in ${...}, gives it back unchanged."""
    if text == "???":
        raise UserError(f"{key}=???: this alone is Hydra's sign for a missing value; add a word")
    return INTERPOLATION.sub(lambda found: found[1] * 2 + r"\${", text)
