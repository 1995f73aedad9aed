"""Records by reference are the same records: fields read through one are the caller's arrays."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numba.core.errors import TypingError

from policies.by_reference import by_reference
from policies.compile import inner, kernel


class Mixed(NamedTuple):
    """Arrays of several types, a number and a flag."""

    counts: npt.NDArray[np.int64]
    table: npt.NDArray[np.float64]
    number: int
    flag: bool


class Alike(NamedTuple):
    """Fields of one type, which numba lays out as an array."""

    first: int
    second: int


@inner
def add_to(record, amount):
    if record.flag:
        record.counts[record.number] += amount
    return record.table[0, 1]


@kernel(allocates=False)
def add(record, amount):
    reference = by_reference(record)
    add_to(reference, amount)
    return add_to(reference, amount)


@kernel(allocates=False)
def misspelt(record):
    return by_reference(record).count


@kernel(allocates=False)
def by_reference_of_a_number(number):
    return by_reference(number)


@inner
def difference(record):
    return record.first - record.second


@kernel(allocates=False)
def two_at_once(one, other):
    return difference(by_reference(one)), difference(by_reference(other))


def mixed(flag: bool) -> Mixed:
    return Mixed(np.zeros(3, np.int64), np.arange(4.0).reshape(2, 2), 2, flag)


@pytest.mark.parametrize("flag", [True, False])
def test_what_is_written_through_a_reference_is_in_the_record(flag: bool) -> None:
    record = mixed(flag)
    assert add(record, 5) == 1.0
    assert record.counts.tolist() == [0, 0, 10 if flag else 0]
    # The same in plain Python, where a reference is the record.
    assert by_reference(record) is record


def test_two_references_of_one_type_are_two_records() -> None:
    assert two_at_once(Alike(7, 3), Alike(1, 2)) == (4, -1)


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(TypingError, match="count"):
        misspelt(mixed(True))


def test_only_records_have_references() -> None:
    with pytest.raises(TypingError, match="by_reference"):
        by_reference_of_a_number(3)
