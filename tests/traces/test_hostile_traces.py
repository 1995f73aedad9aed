"""Traces that were forged: what the hashes cannot tell is refused in one line all the same."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from policies.errors import UserError
from traces.atomic import sha256_of, write_atomically
from traces.manifest import ModelInfo
from traces.reader import open_trace, read_manifest
from traces.replay import open_replay
from traces.strict_json import dump_json
from traces.synthetic import SyntheticShape, random_dense, synthetic_manifest
from traces.writer import TraceWriter

SHAPE = SyntheticShape(layers=3, experts=16, top_k=2, requests=3, tokens=12, lookahead=1)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "dense"
    with TraceWriter(path, synthetic_manifest(SHAPE, "dense", 4)) as writer:
        writer.append(random_dense(SHAPE, 4, seed=1))
    return path


def forged(source: Path, copy: Path, data: bytes) -> Path:
    """A copy whose first part is `data`, with the hash that belongs to it."""
    shutil.copytree(source, copy)
    manifest = read_manifest(copy)
    part = manifest.parts[0]
    (copy / part.file).write_bytes(data)
    parts = (replace(part, sha256=sha256_of(data)), *manifest.parts[1:])
    (copy / "manifest.json").write_bytes(dump_json(replace(manifest, parts=parts)))
    return copy


@pytest.mark.parametrize("place", range(4, 400, 17))
def test_a_changed_byte_with_the_right_hash(trace: Path, tmp_path: Path, place: int) -> None:
    """The file's last bytes describe its columns: the replay reads, or says what is wrong."""
    data = bytearray((trace / "part-00000.parquet").read_bytes())
    data[-place] ^= 0xA5
    copy = forged(trace, tmp_path / "copy", bytes(data))
    try:
        replay = open_replay(open_trace(copy))
        for request in replay.request_ids:
            replay.window(request, replay.first(request), 0)
    except UserError as error:
        assert "\n" not in str(error)


def test_a_table_without_requests(trace: Path, tmp_path: Path) -> None:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table({"other": [1, 2]}), sink)
    copy = forged(trace, tmp_path / "copy", sink.getvalue())
    with pytest.raises(UserError, match="not a readable Parquet file"):
        open_replay(open_trace(copy))


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, "\x00"])
def test_a_manifest_that_no_parser_likes(trace: Path, tmp_path: Path, text: str) -> None:
    copy = shutil.copytree(trace, tmp_path / "copy")
    (copy / "manifest.json").write_text(text)
    with pytest.raises(UserError, match="not valid JSON"):
        open_trace(copy)


def test_more_experts_than_can_be_numbered() -> None:
    with pytest.raises(UserError, match="more than a trace can number"):
        ModelInfo("m", 2**40, 8, 2, 1)
    with pytest.raises(UserError, match="more than a trace can number"):
        ModelInfo("m", 2, 8, 2, 2**70)


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "table.csv").write_text("old")
    with pytest.raises(OSError, match=r"No space left on device: '.*table\.csv'"):
        write_atomically(tmp_path / "table.csv", b"new", full)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert (tmp_path / "table.csv").read_text() == "old"
