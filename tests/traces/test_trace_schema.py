"""Parts: what goes in comes out, in equal bytes, small, and nothing else is accepted."""

import dataclasses
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import SMALL, assert_equal_rows

from policies.errors import UserError
from traces.manifest import ModelInfo
from traces.rows import FILLER
from traces.schema import arrow_schema, decode_part, disk_dtype, encode_part
from traces.synthetic import SyntheticShape, random_dense, synthetic_manifest

SHAPES = st.builds(
    SyntheticShape,
    layers=st.integers(1, 5),
    experts=st.sampled_from([4, 64, 255, 256, 300]),
    top_k=st.integers(1, 4),
    requests=st.integers(1, 3),
    prompt_tokens=st.integers(0, 4),
    tokens=st.integers(1, 6),
    lookahead=st.integers(0, 3),
    weights=st.booleans(),
)


@settings(deadline=None, max_examples=40)
@given(shape=SHAPES, gamma=st.integers(0, 3), seed=st.integers(0, 1000))
def test_round_trip(shape: SyntheticShape, gamma: int, seed: int) -> None:
    manifest = synthetic_manifest(shape, "dense", gamma)
    batch = random_dense(shape, gamma, seed)
    data = encode_part(batch, manifest)
    assert_equal_rows(decode_part(data, manifest, "part"), batch)
    assert encode_part(batch, manifest) == data


@pytest.mark.parametrize(("experts", "dtype"), [(64, np.uint8), (255, np.uint8), (256, np.uint16)])
def test_expert_numbers_take_one_byte_where_they_fit(experts: int, dtype: type) -> None:
    assert disk_dtype(ModelInfo("m", 2, experts, 2, 1)) is dtype
    field = arrow_schema(ModelInfo("m", 2, experts, 2, 1), ()).field("experts")
    assert field.type.list_size == 4
    assert field.type.value_type.to_pandas_dtype() is dtype


def test_filler_is_the_largest_value_on_disk_and_in_memory() -> None:
    shape = dataclasses.replace(SMALL, lookahead=1)
    manifest = synthetic_manifest(shape, "dense", 1)
    data = encode_part(random_dense(shape, 1, 0), manifest)
    stored = pd.read_parquet(io.BytesIO(data))["next_layer_1"].iloc[0]
    assert stored[-shape.top_k :].tolist() == [255] * shape.top_k
    batch = decode_part(data, manifest, "part")
    assert batch.next_layer is not None
    assert (batch.next_layer[0, :, -1] == FILLER).all()
    assert (batch.next_layer[0, :, :-1] == batch.experts[:, 1:]).all()


def test_pandas_sees_the_columns() -> None:
    shape = dataclasses.replace(SMALL, weights=True)
    batch = random_dense(shape, 2, 0)
    data = encode_part(batch, synthetic_manifest(shape, "dense", 2))
    frame = pd.read_parquet(io.BytesIO(data))
    assert frame.dtypes["request"] == np.int32
    assert frame.dtypes["row"] == np.int16
    np.testing.assert_array_equal(np.stack(frame["experts"]), batch.experts.reshape(len(batch), -1))


def test_a_column_that_the_manifest_announces_must_be_there() -> None:
    batch = random_dense(SMALL, 2, 0)
    for shape in (
        dataclasses.replace(SMALL, weights=True),
        dataclasses.replace(SMALL, lookahead=1),
    ):
        with pytest.raises(UserError, match="lack the column"):
            encode_part(batch, synthetic_manifest(shape, "dense", 2))


def test_a_part_of_another_model_is_refused() -> None:
    data = encode_part(random_dense(SMALL, 2, 0), synthetic_manifest(SMALL, "dense", 2))
    other = synthetic_manifest(dataclasses.replace(SMALL, layers=7), "dense", 2)
    with pytest.raises(UserError, match=r"somewhere: columns .*do not fit the manifest"):
        decode_part(data, other, "somewhere")


def test_a_foreign_parquet_file_is_refused() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    with pytest.raises(UserError, match="columns a int64 do not fit"):
        decode_part(sink.getvalue(), synthetic_manifest(SMALL, "dense", 2), "somewhere")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 100])
def test_bytes_that_are_no_parquet_are_refused(data: bytes) -> None:
    with pytest.raises(UserError, match="somewhere: not a readable Parquet file"):
        decode_part(data, synthetic_manifest(SMALL, "dense", 2), "somewhere")


def test_a_dense_recording_of_the_shipped_size_stays_below_a_sixth_of_ten_megabytes() -> None:
    shape = SyntheticShape(
        layers=8,
        experts=64,
        top_k=4,
        requests=16,
        prompt_tokens=16,
        tokens=96,
        reuse=0.34,
        acceptance=0.6,
        lookahead=3,
    )
    batch = random_dense(shape, 8, 0)
    size = len(encode_part(batch, synthetic_manifest(shape, "dense", 8)))
    raw = batch.experts.size * 4
    assert size < min(10_000_000 / 6, 0.6 * raw)
