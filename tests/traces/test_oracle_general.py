"""Export to libCacheSim: the layout byte by byte, and its own hit rates on the exported files."""

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest
from trace_samples import dense_trace, text_trace, windowed_trace

from policies.errors import UserError
from traces.caches import belady_hits, lfu_hits, lru_hits
from traces.oracle_general import export_oracle_general, layer_requests, write_oracle_general
from traces.reader import Trace
from traces.synthetic import SyntheticShape
from traces.text_rows import text_rows

needs_libcachesim = pytest.mark.skipif(
    importlib.util.find_spec("libcachesim") is None, reason="libcachesim is not installed"
)
SHAPE = SyntheticShape(layers=2, experts=32, top_k=4, requests=3, tokens=120, reuse=0.5)
OURS = {
    "LRU": lru_hits,
    "LFU": lfu_hits,
    "Belady": lambda tokens, experts, capacity: belady_hits(tokens, experts, capacity, True),
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return dense_trace(tmp_path_factory.mktemp("trace") / "dense", gamma_max=2, shape=SHAPE)


def test_the_layout(tmp_path: Path) -> None:
    """struct { uint32 time; uint64 object; uint32 size; int64 next }, packed, little endian."""
    path = write_oracle_general(tmp_path / "a.bin", np.array([3, 1, 3]), 4, size=7)
    last = 2**63 - 1
    expected = [(0, 3, 7, 2), (1, 1, 7, last), (2, 3, 7, last)]
    assert path.read_bytes() == b"".join(struct.pack("<IQIq", *one) for one in expected)


def test_requests_are_the_committed_text(trace: Trace, tmp_path: Path) -> None:
    files = export_oracle_general(trace, tmp_path / "files")
    text = text_rows(trace.load(), trace.manifest)
    assert len(files) == 2
    for layer, path in enumerate(files):
        records = list(struct.iter_unpack("<IQIq", path.read_bytes()))
        assert [one[1] for one in records] == text.experts[:, layer].ravel().tolist()
        assert {one[2] for one in records} == {trace.manifest.model.expert_bytes}
        uses: dict[int, int] = {}
        for at, (_, name, _, following) in reversed(list(enumerate(records))):
            assert following == uses.get(name, 2**63 - 1)
            uses[name] = at


def test_every_kind_of_trace(tmp_path: Path) -> None:
    for name, one in (
        ("text", text_trace(tmp_path / "text")),
        ("windowed", windowed_trace(tmp_path / "windowed", gamma=2)),
    ):
        files = export_oracle_general(one, tmp_path / f"{name} files")
        rows = len(text_rows(one.load(), one.manifest).token)
        assert {path.stat().st_size for path in files} == {24 * rows * one.manifest.model.top_k}


@needs_libcachesim
@pytest.mark.parametrize("capacity", [1, 5, 8, 16, 31])
@pytest.mark.parametrize("name", OURS)
def test_libcachesim_hits_as_often(trace: Trace, name: str, capacity: int, tmp_path: Path) -> None:
    """With sizes as exported: a cache of `capacity` experts is one of so many bytes."""
    import libcachesim

    model = trace.manifest.model
    files = export_oracle_general(trace, tmp_path / "files")
    for requests, path in zip(layer_requests(trace), files, strict=True):
        hits = OURS[name](np.ascontiguousarray(requests[:, None]), model.experts, capacity)
        reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
        cache = getattr(libcachesim, name)(cache_size=capacity * model.expert_bytes)
        misses, bytes_missed = cache.process_trace(reader)
        assert round((1 - misses) * len(requests)) == hits
        assert bytes_missed == pytest.approx(misses)
        ignoring = libcachesim.TraceReader(
            str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE,
            libcachesim.ReaderInitParam(ignore_obj_size=True),
        )  # fmt: skip
        misses, _ = getattr(libcachesim, name)(cache_size=capacity).process_trace(ignoring)
        assert round((1 - misses) * len(requests)) == hits


def test_refusals(trace: Trace, tmp_path: Path) -> None:
    export_oracle_general(trace, tmp_path / "files")
    with pytest.raises(UserError, match="exists already and is not empty"):
        export_oracle_general(trace, tmp_path / "files")
