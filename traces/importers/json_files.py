"""JSON and JSON lines with errors that name the line; reading the first bytes to recognise one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from policies.errors import UserError

HEAD_BYTES = 65_536


def read_text(source: Path) -> str:
    """The whole file as UTF-8."""
    try:
        return source.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{source}: not a readable text file ({error})") from error


def read_json(source: Path) -> Any:
    """The one JSON value of the file."""
    try:
        return json.loads(read_text(source))
    except json.JSONDecodeError as error:
        raise UserError(f"{source}: not valid JSON ({error}); is the file cut off?") from error


def json_lines(source: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number of the line from 1, object) of each line that is not empty."""
    for number, line in enumerate(read_text(source).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{source}, line {number}: not valid JSON ({error})") from error
        if not isinstance(value, dict):
            raise UserError(f"{source}, line {number}: expected an object, found {value!r:.40}")
        yield number, value


def head_of(source: Path) -> str:
    """The first bytes as text, for recognising a format; empty for what cannot be read."""
    try:
        with open(source, "rb") as stream:
            return stream.read(HEAD_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def mentions(source: Path, *keys: str) -> bool:
    """Whether the first bytes hold every one of `keys` as a JSON key."""
    head = head_of(source)
    return head.lstrip()[:1] in ("{", "[") and all(f'"{key}"' in head for key in keys)
