"""Frames of run logs are those that Arrow makes."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from traces.runlog_frame import FEW, frame_from_table


def table(shares: list[float], rows: int, seed: int) -> pa.Table:
    """A number, lists of which a share has entries, a flag; in that order, shares in turn."""
    random = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {"number": pa.array(np.arange(rows), pa.int32())}
    for place, share in enumerate(shares):
        lengths = np.where(random.random(rows) < share, random.integers(1, 5, rows), 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        values = pa.array(random.integers(0, 99, offsets[-1]), pa.uint16())
        columns[f"list_{place}"] = pa.ListArray.from_arrays(pa.array(offsets), values)
    columns["flag"] = pa.array(random.random(rows) < 0.5)
    return pa.table(columns)


def check(made: pa.Table) -> pd.DataFrame:
    frame, expected = frame_from_table(made), made.to_pandas()
    assert list(frame.columns) == list(expected.columns)
    assert (frame.dtypes == expected.dtypes).all() and frame.index.equals(expected.index)
    for name in made.column_names:
        for one, other in zip(frame[name], expected[name], strict=True):
            if isinstance(other, np.ndarray):
                assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    return frame


@pytest.mark.parametrize("rows", [0, 1, 50])
@pytest.mark.parametrize("shares", [[], [0.0], [1.0], [0.0, 1.0, 0.1, 1 / FEW, 0.5]])
def test_equal_to_arrow(rows: int, shares: list[float]) -> None:
    check(table(shares, rows, 1))


def test_chunks_and_slices_of_a_table() -> None:
    one, other = table([0.1, 0.9], 40, 1), table([0.1, 0.9], 30, 2)
    check(pa.concat_tables([one, other]))
    check(pa.concat_tables([one, other]).slice(7, 45))
    check(one.schema.empty_table())


def test_empty_rows_share_one_array_where_few_have_entries() -> None:
    lists = check(table([0.1, 0.9], 200, 3))
    empty = {id(one) for one in lists["list_0"] if len(one) == 0}
    assert len(empty) == 1
