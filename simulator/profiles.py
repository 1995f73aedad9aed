"""Profiles from plain mappings (a YAML file as read): strict keys, types and ranges."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from policies.errors import UserError
from traces.strict_json import parse

T = TypeVar("T")
LONGEST_NS = 10**13  # of one operation


def number(least: float, most: float | None = None, above: bool = False) -> Any:
    """A dataclass field whose value must be in least..most (`above`: greater than least)."""
    return dataclasses.field(metadata={"least": least, "most": most, "above": above})


def check_numbers(record: Any) -> None:
    """UserError naming key and number if a field made by `number` is out of range. A time in ns is
    that of one operation."""
    for item in dataclasses.fields(record):
        if "least" not in item.metadata:
            continue
        value = getattr(record, item.name)
        least, most = item.metadata["least"], item.metadata["most"]
        if most is None and item.name.endswith("_ns"):
            most = LONGEST_NS
        too_low = value <= least if item.metadata["above"] else value < least
        if too_low or (most is not None and value > most):
            bound = f"above {least}" if item.metadata["above"] else f"at least {least}"
            upper = "" if most is None else f" and at most {most}"
            raise UserError(f"{item.name}: {value} makes no sense here, must be {bound}{upper}")


def read_profile(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """`values` as a `cls`. Unknown or missing keys, wrong types and impossible numbers give a
    UserError that begins with `where` (the file)."""
    try:
        profile: T = parse(cls, values, where)
    except UserError as error:
        message = str(error)
        raise UserError(message if where in message else f"{where}: {message}") from error
    return profile


def nanoseconds(amount: int, per_second: float) -> int:
    """Time for `amount` at a rate: ns, rounded up once, exact on the decimal value of the rate.
    UserError beyond LONGEST_NS: sums of such times would leave 64 bits.
    """
    rate = _exact(per_second)
    time = -(-amount * 10**9 * rate.denominator // rate.numerator)
    if time > LONGEST_NS:
        raise UserError(
            f"{amount:,} bytes or operations at {per_second} a second take more than "
            f"{LONGEST_NS // 10**9:,} s; a rate of the hardware profile is too low"
        )
    return time


@lru_cache(maxsize=256)
def _exact(rate: float) -> Fraction:
    # A cost table asks for hundreds of times at a few rates.
    return Fraction(str(rate))
