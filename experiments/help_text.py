"""What `--help` prints. The text of a command is its config file: comments, keys and defaults.

So the help cannot drift from the keys: a key without a comment fails a test.
"""

import re
from dataclasses import dataclass
from functools import cache

from experiments.commands import COMMANDS, Command

KEY_LINE = re.compile(r"(?:- )?(?P<key>[a-z][\w-]*): *(?P<default>.*?) *(?:# (?P<meaning>.*))?")
INHERITED = re.compile(r" *- (?P<name>[a-z-]+) *(?:#|$)")
USAGE = "usage: spac COMMAND [key=value ...]   (the same as python -m experiments COMMAND ...)"


@dataclass(frozen=True)
class Key:
    """A key of a command as its config file declares it."""

    name: str
    default: str
    meaning: str


def overview() -> str:
    """Text of `spac --help`."""
    width = max(map(len, COMMANDS))
    lines = [USAGE, "", "commands:"]
    lines += [f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS.values()]
    lines += [
        "",
        "spac COMMAND --help lists the keys of a command with three examples.",
        "A list is a grid inside one job: cache_ratio=[0.1,0.17,0.25] policy=[spac,lru_cpu].",
        "-m turns comma-separated values into one job each: spac compare -m gamma=2,4,8.",
        "sweep=NAME keeps finished cells of spac compare: the same command goes on after a kill.",
    ]
    return "\n".join(lines)


def command_help(command: Command) -> str:
    """Text of `spac COMMAND --help`."""
    about, keys = read_config_text(command)
    positional = "".join(f" {word.upper()}" for word in command.positional)
    rows = [(key.name, key.default, key.meaning) for key in keys]
    name_width = max((len(name) for name, _, _ in rows), default=0)
    value_width = min(24, max((len(value) for _, value, _ in rows), default=0))
    lines = [f"usage: spac {command.name}{positional} [key=value ...]", "", *about, "", "keys:"]
    for name, value, meaning in rows:
        if len(value) > value_width:
            lines.append(f"  {name:<{name_width}}  {value}")
            name, value = "", ""
        lines.append(f"  {name:<{name_width}}  {value:<{value_width}}  {meaning}".rstrip())
    return "\n".join(lines)


def read_config_text(command: Command) -> tuple[list[str], list[Key]]:
    """(lines of the comment at the top, keys in order) of the command's config file.

    A long meaning continues on the comment lines that follow its key.
    """
    about: list[str] = []
    keys: list[Key] = []
    shown = {inner: outer for outer, inner in command.renamed.items()}
    for line in command.config_file.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("#"):
            comment = text.removeprefix("#").removeprefix(" ")
            if not keys:
                about.append(comment)
            else:
                last = keys[-1]
                keys[-1] = Key(last.name, last.default, f"{last.meaning} {comment.strip()}")
            continue
        found = KEY_LINE.fullmatch(text)
        if found and found["key"] != "defaults":
            name = shown.get(found["key"], found["key"])
            keys.append(Key(name, found["default"], found["meaning"] or ""))
    return about, keys


def all_keys(command: Command) -> tuple[Key, ...]:
    """The keys of a command with those of the command that its config file builds on."""
    return _all_keys(command.name)


@cache
def _all_keys(name: str) -> tuple[Key, ...]:
    command = COMMANDS[name]
    keys = {key.name: key for key in read_config_text(command)[1]}
    for line in command.config_file.read_text(encoding="utf-8").splitlines():
        found = INHERITED.match(line)
        if found and found["name"] in COMMANDS:
            for key in _all_keys(found["name"]):
                keys.setdefault(key.name, key)
    return tuple(keys.values())


def examples(command: Command) -> list[str]:
    """The example lines of the help, each beginning with `spac`."""
    about, _ = read_config_text(command)
    return [line.strip() for line in about if line.strip().startswith("spac ")]
