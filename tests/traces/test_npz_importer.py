"""Import of .npz routing files: what arrives, what is refused, and the published anchors."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies.errors import UserError
from traces.check import check_trace
from traces.importers import import_trace
from traces.importers.routing import Given
from traces.replay import open_replay
from traces.stats import TraceStats, trace_stats

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SPAC_DATA", ROOT.parent / "shared" / "data")) / "traces"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"public routing files not found in {DATA}; set SPAC_DATA"
)

META = {"model": "openai/gpt-oss-20b", "experts": 8, "licence": "Apache-2.0", "phase": "decode"}


def arrays(**changes: Any) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    rows = 10
    experts = np.stack([generator.permuted(np.arange(8))[:6].reshape(3, 2) for _ in range(rows)])
    return {
        "experts": experts.astype(np.uint16),
        "token": np.arange(rows, dtype=np.int32),
        "seq": np.array([0] * 6 + [1] * 4, np.int32),
        "pos": np.array([*range(40, 46), *range(7, 11)], np.int32),
        "vocab": np.array(["word"] * rows),
        "meta": np.array(json.dumps(META)),
    } | changes


def save(path: Path, content: dict[str, Any]) -> Path:
    np.savez(path, **{name: value for name, value in content.items() if value is not None})
    return path


def test_rows_arrive(tmp_path: Path) -> None:
    content = arrays(weights=np.full((10, 3, 2), 0.5, np.float16))
    trace = import_trace(save(tmp_path / "file.npz", content), tmp_path / "trace")
    batch, manifest = trace.load(), trace.manifest
    np.testing.assert_array_equal(batch.experts, content["experts"])
    np.testing.assert_array_equal(batch.start, content["pos"])
    np.testing.assert_array_equal(batch.router_weights, content["weights"])
    assert batch.target_choice.tolist() == [1, 2, 3, 4, 5, -1, 7, 8, 9, -1]
    assert not batch.match.any() and not batch.row.any() and (batch.phase == 1).all()
    assert (manifest.kind, manifest.workload, manifest.gamma_max) == ("text", "file", 0)
    assert manifest.columns == ("router_weights",)
    assert manifest.notes["licence"] == "Apache-2.0"
    assert manifest.model.expert_bytes == 13_236_480
    assert check_trace(trace.path).ok


def test_a_file_without_weights(tmp_path: Path) -> None:
    trace = import_trace(save(tmp_path / "file.npz", arrays()), tmp_path / "trace", format="npz")
    assert trace.manifest.columns == ()
    replay = open_replay(trace, acceptance=0.5)
    assert [replay.first(r) for r in replay.request_ids] == [40, 7]
    assert replay.prefill(0) is None


def test_an_unknown_model_needs_the_size_of_an_expert(tmp_path: Path) -> None:
    content = arrays(meta=np.array(json.dumps(META | {"model": "nobody/knows"})))
    source = save(tmp_path / "file.npz", content)
    with pytest.raises(UserError, match=r"nobody/knows unknown, give expert_bytes="):
        import_trace(source, tmp_path / "trace")
    trace = import_trace(source, tmp_path / "trace", given=Given(expert_bytes=99))
    assert trace.manifest.model.expert_bytes == 99


@pytest.mark.parametrize("name", ["experts", "token", "seq", "pos", "meta"])
def test_a_missing_array_is_named(tmp_path: Path, name: str) -> None:
    source = save(tmp_path / "file.npz", arrays(**{name: None}))
    with pytest.raises(UserError, match=rf"file\.npz: array '{name}' is missing; found "):
        import_trace(source, tmp_path / "trace")
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("experts", np.zeros((10, 3), np.uint16), "'experts' is uint16"),
        ("experts", np.zeros((10, 3, 2), np.float32), "'experts' is float32"),
        (
            "experts",
            np.tile(np.array([8, 0], np.uint16), (10, 3, 1)),
            "expert number 8 in a model of 8",
        ),
        ("experts", np.zeros((0, 3, 2), np.uint16), "no rows|expected integers"),
        ("token", np.zeros(9, np.int32), "'token' is int32 .9."),
        ("seq", np.array([1] * 6 + [0] * 4), "requests must ascend"),
        ("pos", np.arange(10) * 2, "positions count by one"),
        ("weights", np.zeros((10, 3, 1), np.float16), "'weights' is .10, 3, 1., not like experts"),
        ("meta", np.array("{"), "not a JSON string"),
        ("meta", np.array("[]"), "meta needs the key 'model'"),
        ("meta", np.array(json.dumps({"model": "m"})), "meta needs the key 'experts'"),
    ],
)
def test_wrong_arrays_are_named(tmp_path: Path, name: str, value: Any, message: str) -> None:
    source = save(tmp_path / "file.npz", arrays(**{name: value}))
    with pytest.raises(UserError, match=message):
        import_trace(source, tmp_path / "trace")


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    source = save(tmp_path / "file.npz", arrays(token=np.array([object()] * 10, dtype=object)))
    with pytest.raises(UserError, match=r"not a \.npz of plain arrays"):
        import_trace(source, tmp_path / "trace")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04broken"])
def test_a_file_that_is_no_npz(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "file.npz"
    source.write_bytes(content)
    with pytest.raises(UserError, match=r"file\.npz: not a \.npz"):
        import_trace(source, tmp_path / "trace")


def test_a_plain_npy_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "file.npy", np.zeros(3))
    with pytest.raises(UserError, match=r"not a \.npz"):
        import_trace(tmp_path / "file.npy", tmp_path / "trace", format="npz")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        import_trace(tmp_path / "file.npz", tmp_path / "trace")


def test_an_existing_trace_is_not_overwritten(tmp_path: Path) -> None:
    source = save(tmp_path / "file.npz", arrays())
    import_trace(source, tmp_path / "trace")
    with pytest.raises(UserError, match="never overwritten"):
        import_trace(source, tmp_path / "trace")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TraceStats]:
    folder = tmp_path_factory.mktemp("published")
    names = sorted(path.stem for path in DATA.glob("*.npz"))
    return {
        name: trace_stats(import_trace(DATA / f"{name}.npz", folder / name), gammas=(0,))
        for name in names
    }


# LRU and Belady in percent at 17, 25, 50 % of the experts and reuse from the previous token,
# measured by others on more sequences of the same sources. gpt-oss is the mean of three files.
ANCHORS = {
    "gptoss": ([49.1, 65.1, 89.7], [67.6, 80.9, 95.5], 0.437),
    "dsv2lite": ([35.5, 47.4, 71.6], [58.1, 70.1, 87.8], 0.265),
}


@needs_data
@pytest.mark.parametrize("family", sorted(ANCHORS))
def test_published_anchors(published: dict[str, TraceStats], family: str) -> None:
    stats = [found for name, found in published.items() if name.startswith(family)]
    assert len(stats) == (3 if family == "gptoss" else 1)
    lru, belady, reuse = ANCHORS[family]
    caches = [found.caches[1:] for found in stats]
    assert [c.ratio for c in caches[0]] == [0.17, 0.25, 0.50]
    found_lru = 100 * np.mean([[c.lru for c in row] for row in caches], axis=0)
    found_belady = 100 * np.mean([[c.belady for c in row] for row in caches], axis=0)
    np.testing.assert_allclose(found_lru, lru, atol=2.0)
    np.testing.assert_allclose(found_belady, belady, atol=2.0)
    assert np.mean([found.reuse_from_previous for found in stats]) == pytest.approx(reuse, abs=0.02)


@needs_data
def test_published_traces_lose_locality_when_shuffled(published: dict[str, TraceStats]) -> None:
    for found in published.values():
        assert all(c.lru > c.lru_shuffled + 0.1 for c in found.caches[:3])
