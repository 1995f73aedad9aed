"""manifest.json: round trip, stable bytes, and a clear refusal of everything else."""

import dataclasses
import json
from pathlib import Path

import pytest
from trace_samples import SMALL, dense_trace

from policies.errors import UserError
from traces.manifest import (
    MANIFEST_NAME,
    Manifest,
    ModelInfo,
    PartInfo,
    SamplingInfo,
    read_manifest,
)
from traces.strict_json import dump_json, load_json
from traces.synthetic import synthetic_manifest

PART = PartInfo("part-00000.parquet", 7, "ab" * 32)
MODEL = ModelInfo("model", 4, 16, 2, 1024)


def sample(**changes: object) -> Manifest:
    fields: dict[str, object] = {
        "schema_version": 1,
        "kind": "dense",
        "workload": "prose",
        "model": MODEL,
        "draft": "draft",
        "sampling": SamplingInfo("keyed", 0.8, 7),
        "gamma_max": 8,
        "recorder": "recorder 1",
        "columns": ("router_weights", "next_layer_1"),
        "parts": (PART,),
        "complete": True,
        "notes": {"dtype": "float32"},
    }
    return Manifest(**(fields | changes))  # type: ignore[arg-type]


def write(path: Path, value: object) -> Path:
    path.mkdir(exist_ok=True)
    (path / MANIFEST_NAME).write_text(json.dumps(value))
    return path


def plain() -> dict[str, object]:
    return json.loads(dump_json(sample()))


def test_round_trip(tmp_path: Path) -> None:
    manifest = sample()
    (tmp_path / MANIFEST_NAME).write_bytes(dump_json(manifest))
    assert read_manifest(tmp_path) == manifest


def test_round_trip_without_draft(tmp_path: Path) -> None:
    manifest = sample(kind="text", gamma_max=0, draft=None, columns=(), parts=(), complete=False)
    (tmp_path / MANIFEST_NAME).write_bytes(dump_json(manifest))
    assert read_manifest(tmp_path) == manifest


def test_equal_manifests_give_equal_bytes_and_digest() -> None:
    assert dump_json(sample()) == dump_json(sample())
    assert sample().digest() == sample().digest()
    assert sample().digest() != sample(workload="code").digest()


def test_two_recordings_of_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    first, second = dense_trace(tmp_path / "a"), dense_trace(tmp_path / "b")
    names = sorted(path.name for path in first.path.iterdir())
    assert names == ["manifest.json", "part-00000.parquet"]
    for name in names:
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes()


def test_properties() -> None:
    manifest = sample(columns=("router_weights", "next_layer_1", "next_layer_2"))
    assert manifest.lookahead == 2
    assert manifest.rows_per_start == 9


@pytest.mark.parametrize("key", [field.name for field in dataclasses.fields(Manifest)])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    value = plain()
    del value[key]
    with pytest.raises(UserError, match=rf"manifest\.json.*{key}.*missing"):
        read_manifest(write(tmp_path, value))


@pytest.mark.parametrize("key", ["layers", "expert_bytes", "name"])
def test_a_missing_model_key_is_named(tmp_path: Path, key: str) -> None:
    value = plain()
    del value["model"][key]  # type: ignore[attr-defined]
    with pytest.raises(UserError, match=rf"manifest\.json: model.*{key}.*missing"):
        read_manifest(write(tmp_path, value))


def test_an_unknown_key_is_named_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unknown key 'colour'.*schema_version, kind"):
        read_manifest(write(tmp_path, plain() | {"colour": "red"}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("workload", 3),
        ("gamma_max", "8"),
        ("gamma_max", 8.0),
        ("gamma_max", True),
        ("complete", 1),
        ("columns", "router_weights"),
        ("parts", {}),
        ("notes", []),
        ("notes", {"a": 1}),
        ("model", "qwen"),
        ("draft", 5),
        ("sampling", None),
    ],
)
def test_a_wrong_type_is_named(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(UserError, match=rf"manifest\.json: {key}.*expected"):
        read_manifest(write(tmp_path, plain() | {key: value}))


def test_an_unknown_kind_lists_the_kinds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"kind: 'sparse' is not one of dense, windowed, text"):
        read_manifest(write(tmp_path, plain() | {"kind": "sparse"}))


def test_an_unknown_sampling_mode_lists_the_modes(tmp_path: Path) -> None:
    value = plain()
    value["sampling"]["mode"] = "nucleus"  # type: ignore[index]
    with pytest.raises(UserError, match=r"sampling: mode: 'nucleus'.*greedy, keyed, rejection"):
        read_manifest(write(tmp_path, value))


def test_another_schema_version_is_refused() -> None:
    with pytest.raises(UserError, match="schema_version 2, this program reads 1"):
        sample(schema_version=2)


@pytest.mark.parametrize(
    "columns",
    [("next_layer_2",), ("next_layer_1", "next_layer_3"), ("next_layer_1", "router_weights")],
)
def test_columns_must_be_in_order_without_gap(columns: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="columns"):
        sample(columns=columns)


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(UserError, match=r"hidden_states.*router_weights, next_layer_1"):
        sample(columns=("hidden_states",))


@pytest.mark.parametrize(("kind", "gamma_max"), [("text", 4), ("dense", -1), ("windowed", -2)])
def test_an_impossible_gamma_is_refused(kind: str, gamma_max: int) -> None:
    with pytest.raises(UserError, match=f"gamma_max {gamma_max}"):
        sample(kind=kind, gamma_max=gamma_max, columns=())


@pytest.mark.parametrize(
    "fields", [(0, 16, 2, 1), (4, 0, 2, 1), (4, 16, 0, 1), (4, 16, 17, 1), (4, 70_000, 2, 1)]
)
def test_an_impossible_model_is_refused(fields: tuple[int, int, int, int]) -> None:
    with pytest.raises(UserError, match="'odd'"):
        ModelInfo("odd", *fields)


@pytest.mark.parametrize("name", ["../part-00000.parquet", "/etc/passwd", "part-0.parquet", ""])
def test_a_part_outside_the_trace_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="part-00000"):
        PartInfo(name, 1, "00")


def test_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such trace directory"):
        read_manifest(tmp_path / "nothing")


def test_a_foreign_directory(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(UserError, match=r"not a trace, it has no manifest\.json"):
        read_manifest(tmp_path)


def test_a_run_log_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UserError, match="a run log"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "\xff", "null"])
def test_a_damaged_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST_NAME).write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_load_json_takes_whole_numbers_for_floats(tmp_path: Path) -> None:
    path = tmp_path / "sampling.json"
    path.write_text('{"mode": "greedy", "temperature": 0, "seed": 1}')
    assert load_json(SamplingInfo, path) == SamplingInfo("greedy", 0.0, 1)


def test_load_json_refuses_nan(tmp_path: Path) -> None:
    path = tmp_path / "sampling.json"
    path.write_text('{"mode": "greedy", "temperature": NaN, "seed": 1}')
    with pytest.raises(UserError, match="temperature"):
        load_json(SamplingInfo, path)


def test_dump_json_wants_a_record() -> None:
    with pytest.raises(TypeError, match="dataclass"):
        dump_json({"a": 1})


def test_synthetic_manifest_has_the_columns_of_its_shape() -> None:
    shape = dataclasses.replace(SMALL, lookahead=2, weights=True)
    columns = synthetic_manifest(shape, "dense", 3).columns
    assert columns == ("router_weights", "next_layer_1", "next_layer_2")
