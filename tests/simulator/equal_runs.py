"""Assert that two run logs tell the same run: every plan, copy and interval."""

import numpy as np
import pandas as pd

from traces.run_info import RunLog
from traces.runlog_schema import TABLES


def assert_equal_runs(one: RunLog, other: RunLog) -> None:
    """All four tables equal, and all of run.json but the engine's name."""
    for name in TABLES:
        assert_equal_tables(getattr(one, name), getattr(other, name), name)
    ours, theirs = dict(vars(one.info)), dict(vars(other.info))
    for ignored in ("engine", "parts", "complete"):
        ours.pop(ignored), theirs.pop(ignored)
    assert ours == theirs


def assert_equal_outcomes(one: RunLog | str, other: RunLog | str) -> None:
    """Equal runs, or refusals in the same words."""
    if isinstance(one, str) or isinstance(other, str):
        assert isinstance(one, str) and isinstance(other, str), f"{one} and {other}"
        assert one == other
    else:
        assert_equal_runs(one, other)


def assert_equal_tables(one: pd.DataFrame, other: pd.DataFrame, name: str) -> None:
    """Same columns, types, rows."""
    assert list(one.columns) == list(other.columns), name
    assert len(one) == len(other), f"{name}: {len(one)} rows and {len(other)}"
    for column in one.columns:
        left, right = one[column], other[column]
        assert left.dtype == right.dtype, (name, column)
        if left.dtype == object:
            same = [np.array_equal(mine, theirs) for mine, theirs in zip(left, right, strict=True)]
        else:
            same = (left == right).tolist()
        if not all(same):
            row = same.index(False)
            raise AssertionError(
                f"{name}.{column}, row {row}: {left[row]} and {right[row]}\n"
                f"{one.iloc[row].to_dict()}\n{other.iloc[row].to_dict()}"
            )
