"""Reading: parts one by one or all at once, and a UserError with the file for every damage."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from trace_samples import SMALL, assert_equal_rows, dense_trace

from policies.errors import UserError
from traces.atomic import sha256_of
from traces.manifest import MANIFEST_NAME, read_manifest
from traces.reader import Trace, open_trace
from traces.requests import RequestRows
from traces.rows import concatenate_rows
from traces.schema import encode_part
from traces.strict_json import dump_json
from traces.synthetic import random_dense, synthetic_manifest
from traces.writer import TraceWriter

PART = "part-00001.parquet"


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Three requests in one part."""
    return dense_trace(tmp_path / "trace", gamma_max=2)


@pytest.fixture
def parts(tmp_path: Path) -> Trace:
    """Three requests in three parts, with all kinds of columns."""
    shape = dataclasses.replace(SMALL, lookahead=1, weights=True)

    batch = random_dense(shape, 2, 0)
    with TraceWriter(
        tmp_path / "parts", synthetic_manifest(shape, "dense", 2), rows_per_part=1
    ) as w:
        for request in range(shape.requests):
            w.append(batch.take(batch.request == request))
    return open_trace(tmp_path / "parts")


def replace_part(trace: Trace, name: str, data: bytes) -> None:
    """Exchange a part and make the manifest agree, as a careless or hostile tool would."""
    (trace.path / name).write_bytes(data)
    new = [
        dataclasses.replace(part, sha256=sha256_of(data)) if part.file == name else part
        for part in trace.manifest.parts
    ]
    manifest = dataclasses.replace(trace.manifest, parts=tuple(new))
    (trace.path / MANIFEST_NAME).write_bytes(dump_json(manifest))


def test_parts_one_by_one_are_the_whole(parts: Trace) -> None:
    batches = list(parts.iter_parts())
    assert len(batches) == 3
    assert_equal_rows(concatenate_rows(batches), parts.load())


def test_the_digest_follows_the_contents(tmp_path: Path) -> None:
    first = dense_trace(tmp_path / "a", seed=1)
    same = dense_trace(tmp_path / "b", seed=1)
    other = dense_trace(tmp_path / "c", seed=2)
    assert first.digest == same.digest != other.digest


def test_a_copied_trace_is_the_same(parts: Trace, tmp_path: Path) -> None:
    shutil.copytree(parts.path, tmp_path / "copy")
    assert_equal_rows(open_trace(tmp_path / "copy", verify=True).load(), parts.load())


def test_pandas_opens_a_part(trace: Trace) -> None:
    frame = pd.read_parquet(trace.path / "part-00000.parquet")
    batch = trace.load()
    np.testing.assert_array_equal(frame["start"], batch.start)
    np.testing.assert_array_equal(np.stack(frame["experts"]), batch.experts.reshape(len(batch), -1))


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_truncated_part(parts: Trace, keep: int) -> None:
    file = parts.path / PART
    file.write_bytes(file.read_bytes()[:keep])
    lazy = open_trace(parts.path)
    with pytest.raises(UserError, match=rf"{PART}: SHA-256 .*truncated or changed"):
        lazy.load()
    with pytest.raises(UserError, match=PART):
        open_trace(parts.path, verify=True)


def test_a_changed_byte(parts: Trace) -> None:
    file = parts.path / PART
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match=PART):
        list(open_trace(parts.path).iter_parts())


@pytest.mark.parametrize("verify", [False, True])
def test_a_missing_part(parts: Trace, verify: bool) -> None:
    (parts.path / PART).unlink()
    with pytest.raises(UserError, match=rf"{PART}: the part is missing"):
        open_trace(parts.path, verify=verify)


def test_a_part_that_vanishes_after_opening(parts: Trace) -> None:
    (parts.path / PART).unlink()
    with pytest.raises(UserError, match="the part is missing"):
        parts.load()


def test_a_truncated_part_with_a_matching_hash(parts: Trace) -> None:
    replace_part(parts, PART, (parts.path / PART).read_bytes()[:-9])
    with pytest.raises(UserError, match=rf"{PART}: not a readable Parquet file"):
        open_trace(parts.path).load()


def test_an_expert_number_out_of_range(parts: Trace) -> None:
    batch = parts.read_part(1)
    batch.experts[3, 2, 1] = SMALL.experts
    replace_part(parts, PART, encode_part(batch, parts.manifest))
    with pytest.raises(UserError, match=rf"{PART}: expert number 16 in a model of 16 experts"):
        open_trace(parts.path).load()


def test_a_part_with_other_rows_than_announced(parts: Trace) -> None:
    replace_part(parts, PART, encode_part(parts.read_part(1).span(0, 8), parts.manifest))
    with pytest.raises(UserError, match=rf"{PART}: 8 rows, the manifest says 77"):
        open_trace(parts.path).load()


def test_a_part_of_another_trace(parts: Trace, trace: Trace) -> None:
    replace_part(parts, PART, (trace.path / "part-00000.parquet").read_bytes())
    with pytest.raises(UserError, match=rf"{PART}: columns .* do not fit"):
        open_trace(parts.path).load()


def test_a_foreign_directory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a trace"):
        open_trace(tmp_path)


def test_a_manifest_with_an_unknown_key(trace: Trace) -> None:
    value = json.loads((trace.path / MANIFEST_NAME).read_text())
    (trace.path / MANIFEST_NAME).write_text(json.dumps(value | {"extra": 1}))
    with pytest.raises(UserError, match="'extra'"):
        open_trace(trace.path)


def test_leftovers_of_a_killed_writer_are_ignored(parts: Trace) -> None:
    (parts.path / ".tmp-part-00003.parquet").write_bytes(b"half a part")
    (parts.path / "part-00003.parquet").write_bytes(b"a part that the manifest never got to know")
    assert_equal_rows(open_trace(parts.path, verify=True).load(), parts.load())


def test_requests_are_looked_up_in_any_order(parts: Trace) -> None:
    requests, whole = RequestRows(parts), parts.load()
    assert requests.ids == (0, 1, 2)
    for request in (2, 0, 1, 1, 0):
        assert_equal_rows(requests.rows(request), whole.take(whole.request == request))
        prefill, decode = requests.split(request)
        assert len(prefill) == SMALL.prompt_tokens
        assert_equal_rows(concatenate_rows([prefill, decode]), requests.rows(request))


def test_only_one_part_is_in_memory(parts: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = Trace.read_part

    def counted(self: Trace, index: int) -> object:
        read.append(index)
        return original(self, index)

    monkeypatch.setattr(Trace, "read_part", counted)
    requests = RequestRows(parts)
    assert read == []
    for request in requests.ids:
        requests.rows(request)
        requests.rows(request)
    assert read == [0, 1, 2]


def test_an_unknown_request(parts: Trace) -> None:
    with pytest.raises(UserError, match="no request 9; it has 3 requests"):
        RequestRows(parts).rows(9)


def test_a_request_in_two_parts(parts: Trace) -> None:
    replace_part(parts, PART, (parts.path / "part-00000.parquet").read_bytes())
    with pytest.raises(UserError, match="request 0 is in parts 0 and 1"):
        RequestRows(open_trace(parts.path))


def test_rows_in_a_wrong_order_are_refused(parts: Trace) -> None:
    batch = parts.read_part(1)
    turned = batch.take(np.arange(len(batch))[::-1].copy())
    replace_part(parts, PART, encode_part(turned, parts.manifest))
    with pytest.raises(UserError, match=rf"{PART}: request 1: prefill rows"):
        RequestRows(open_trace(parts.path)).rows(1)


def test_read_manifest_is_what_open_trace_gives(trace: Trace) -> None:
    assert read_manifest(trace.path) == trace.manifest
