"""What `--help` prints. The text of a command is its config file: comments, keys and defaults.

So the help cannot drift from the keys: a key without a comment fails a test.
"""

import itertools
import re
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from experiments.commands import COMMANDS, Command

KEY_LINE = re.compile(r"(?:- )?(?P<key>[a-z][\w-]*): *(?P<default>.*?) *(?:# (?P<meaning>.*))?")
INHERITED = re.compile(r" *- (?P<name>[a-z-]+) *(?:#|$)")
PIPED = 160  # columns in a pipe
WIDE = 100  # columns from which long defaults stand beside their meaning
LEAST_MEANING = 32  # columns that a meaning needs beside its key


@dataclass(frozen=True)
class Key:
    """A key of a command as its config file declares it."""

    name: str
    default: str
    meaning: str


def overview() -> str:
    """Text of `spac --help`."""
    width, columns = max(map(len, COMMANDS)), shutil.get_terminal_size((PIPED, 24)).columns
    lines = ["usage: spac COMMAND [key=value ...]", "", "commands:"]
    for command in COMMANDS.values():
        first, *rest = wrapped(command.summary, max(LEAST_MEANING, columns - width - 4))
        lines.append(f"  {command.name:<{width}}  {first}")
        lines += [" " * (width + 4) + line for line in rest]
    notes = [
        "spac COMMAND --help lists the keys of a command with three examples.",
        "A list is a grid inside one job: cache_ratio=[0.1,0.17,0.25] policy=[spac,lru_cpu].",
        "-m turns comma-separated values into one job each: spac compare -m gamma=2,4,8.",
        "sweep=NAME keeps finished cells of spac compare: the same command goes on after a kill.",
        "python -m experiments COMMAND is the same as spac COMMAND.",
    ]
    lines += ["", *(line for note in notes for line in wrapped(note, columns))]
    return "\n".join(lines)


def command_help(command: Command) -> str:
    """Text of `spac COMMAND --help`."""
    about, keys = read_config_text(command)
    positional = "".join(f" {word.upper()}" for word in command.positional)
    width = shutil.get_terminal_size((PIPED, 24)).columns
    lines = [f"usage: spac {command.name}{positional} [key=value ...]", ""]
    lines += [*flowing(about, width), "", "keys:"]
    return "\n".join([*lines, *key_lines(keys, width)])


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width`; words, hyphens and all, stay whole to be copied."""
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


def flowing(lines: Sequence[str], width: int) -> list[str]:
    """Lines of prose joined and broken at `width`; indented ones, the examples, stay whole."""
    found: list[str] = []
    for prose, group in itertools.groupby(lines, lambda line: bool(line) and line[0] != " "):
        text = list(group)
        found += wrapped(" ".join(text), width) if prose else text
    return found


def key_lines(keys: Sequence[Key], width: int) -> list[str]:
    """Name, default and meaning of each key in columns; a meaning that is too long breaks below
    itself, and begins a line below where `width` leaves it too little room beside."""
    name_width = max((len(key.name) for key in keys), default=0)
    longest = 24 if width >= WIDE else 16
    value_width = min(longest, max((len(key.default) for key in keys), default=0))
    begin = 2 + name_width + 2 + value_width + 2
    beside = width - begin >= LEAST_MEANING
    indent = " " * (begin if beside else 6)
    lines = []
    for key in keys:
        head = f"  {key.name:<{name_width}}  {key.default:<{value_width}}"
        if beside and len(key.default) <= value_width:
            text = wrapped(key.meaning, width - begin) or [""]
            lines.append(f"{head}  {text.pop(0)}".rstrip())
        else:
            text = wrapped(key.meaning, width - len(indent))
            lines.append(head.rstrip())
        lines += [indent + line for line in text]
    return lines


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
