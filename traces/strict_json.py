"""JSON to frozen dataclasses and back; unknown or missing keys and wrong types are refused."""

import dataclasses
import json
import math
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

from policies.errors import UserError

T = TypeVar("T")


def dump_json(record: object) -> bytes:
    """The one JSON text of a dataclass instance: keys in field order, equal records equal bytes."""
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        raise TypeError(f"expected a dataclass instance, got {type(record).__name__}")
    plain = dataclasses.asdict(record)
    return (json.dumps(plain, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode()


def load_json(cls: type[T], path: Path) -> T:
    """Read `path` as a `cls`; a UserError names the file and the key that is wrong."""
    return parse(cls, read_json(path, "the file is damaged or foreign"), str(path))


def read_json(path: Path, remedy: str) -> Any:
    """What is in `path`; UserError with `remedy` if that is no JSON of this world."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: cannot read it ({error.strerror})") from error
    except (ValueError, RecursionError) as error:  # also text of another encoding, endless digits
        raise UserError(f"{path}: not valid JSON ({error}); {remedy}") from error


def read_object(path: Path, remedy: str) -> dict[str, Any]:
    """A JSON object, the same way."""
    content = read_json(path, remedy)
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a JSON object, found {type(content).__name__}; {remedy}")
    return content


def parse(annotation: Any, value: Any, where: str) -> Any:
    """`value` as json.loads gives it, as an `annotation`; UserError at `where` if it is none."""
    origin = typing.get_origin(annotation)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return _parse_dataclass(annotation, value, where)
    if origin is typing.Literal:
        choices = typing.get_args(annotation)
        if value not in choices:
            listed = ", ".join(map(str, choices))
            raise UserError(f"{where}: {value!r} is not one of {listed}")
        return value
    if origin in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(annotation) if option is not type(None)]
        return None if value is None else parse(options[0], value, where)
    if origin is tuple:
        _expect(isinstance(value, list), "a list", value, where)
        item = typing.get_args(annotation)[0]
        return tuple(parse(item, part, f"{where}[{index}]") for index, part in enumerate(value))
    if origin is dict:
        _expect(isinstance(value, dict), "an object", value, where)
        item = typing.get_args(annotation)[1]
        return {key: parse(item, part, f"{where}.{key}") for key, part in value.items()}
    if annotation is Any:
        return value
    if annotation is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        _expect(is_number and math.isfinite(value), "a number", value, where)
        return float(value)
    if annotation is int:
        _expect(isinstance(value, int) and not isinstance(value, bool), "an integer", value, where)
        return value
    _expect(isinstance(value, annotation), annotation.__name__, value, where)
    return value


def _parse_dataclass(cls: type, value: Any, where: str) -> Any:
    _expect(isinstance(value, dict), "an object", value, where)
    hints = typing.get_type_hints(cls)
    unknown = sorted(map(str, set(value) - set(hints)))
    missing = [key for key in hints if key not in value]
    if unknown:
        raise UserError(f"{where}: unknown key {unknown[0]!r}; known keys: {', '.join(hints)}")
    if missing:
        raise UserError(f"{where}: key {missing[0]!r} is missing")
    return cls(**{key: parse(hints[key], value[key], f"{where}: {key}") for key in hints})


def _expect(condition: bool, wanted: str, value: Any, where: str) -> None:
    if not condition:
        raise UserError(f"{where}: expected {wanted}, found {type(value).__name__} {value!r:.60}")
