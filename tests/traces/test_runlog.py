"""Run logs: builder to disk and back, in one go, by flushes, in bulk, and after a kill."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runlog_samples import add_copy, add_layer, add_pass, fill_randomly, run_info

from policies.errors import UserError
from traces.run_info import RUN_NAME
from traces.runlog import RunLog, RunLogBuilder, read_runlog
from traces.runlog_schema import TABLES


def assert_equal_logs(one: RunLog, other: RunLog) -> None:
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))


def built(passes: int = 5, seed: int = 0) -> RunLogBuilder:
    builder = RunLogBuilder(run_info())
    fill_randomly(builder, passes, seed)
    return builder


def test_written_and_read_back(tmp_path: Path) -> None:
    in_memory = built().build()
    built().write(tmp_path / "run")
    log = read_runlog(tmp_path / "run")
    assert_equal_logs(log, in_memory)
    assert log.info == dataclasses.replace(run_info(), parts=1, complete=True)


@settings(deadline=None, max_examples=15)
@given(passes=st.integers(0, 9), per_flush=st.integers(1, 4), seed=st.integers(0, 99))
def test_flushes_do_not_change_the_log(
    passes: int, per_flush: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("runs") / "run"
    builder = RunLogBuilder(run_info(), path, passes_per_flush=per_flush)
    fill_randomly(builder, passes, seed)
    assert builder.info.parts == passes // per_flush
    builder.close()
    assert_equal_logs(read_runlog(path), built(passes, seed).build())


def test_an_unfinished_run_keeps_what_was_flushed(tmp_path: Path) -> None:
    builder = RunLogBuilder(run_info(), tmp_path / "run", passes_per_flush=2)
    fill_randomly(builder, 5, seed=1)
    log = read_runlog(tmp_path / "run")
    assert not log.info.complete
    assert log.passes["pass_index"].tolist() == [0, 1, 2, 3]
    assert set(log.layers["pass_index"]) == {0, 1, 2, 3}
    assert log.copies["copy_id"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("survives", range(5))
def test_a_kill_inside_a_flush_loses_all_tables_of_it(tmp_path: Path, survives: int) -> None:
    class Killed(BaseException):
        pass

    calls = 0

    def sync(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        # One call for the first run.json, five for the first flush, then `survives` of the second.
        if calls > 6 + survives:
            raise Killed

    builder = RunLogBuilder(run_info(), tmp_path / "run", passes_per_flush=2, sync=sync)
    with pytest.raises(Killed):
        fill_randomly(builder, 4, seed=1)
    log = read_runlog(tmp_path / "run")
    assert log.passes["pass_index"].tolist() == [0, 1]
    assert set(log.layers["pass_index"]) == {0, 1}


def test_equal_runs_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        built().write(tmp_path / name)
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.*")]
    assert len(files) == 1 + 2 * len(TABLES)
    for file in files:
        if (tmp_path / "a" / file).is_file():
            assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_pandas_opens_a_table(tmp_path: Path) -> None:
    builder = RunLogBuilder(run_info(), tmp_path / "run", passes_per_flush=2)
    fill_randomly(builder, 5, seed=1)
    builder.close()
    frame = pd.read_parquet(tmp_path / "run" / "layers.parquet")
    assert len(frame) == 10
    assert frame["experts"].iloc[0].dtype == np.uint16


def test_the_schema_and_the_tables() -> None:
    log = built().build()
    assert log.passes.dtypes["begin_ns"] == np.int64
    assert log.passes.dtypes["warmup"] == np.bool_
    assert log.layers.dtypes["view_digest"] == np.uint64
    assert log.copies.dtypes["kind"] == np.uint8
    assert (log.layers["view_digest"] > np.uint64(1 << 62)).any()
    assert list(log.drafts.columns) == TABLES["drafts"].names


def test_busy_time_defaults_to_the_lane_interval() -> None:
    builder = RunLogBuilder(run_info())
    add_layer(builder, 0, 0, 0)
    add_layer(builder, 0, 1, 100, gpu_busy_ns=11, cpu_busy_ns=0)
    layers = builder.build().layers
    assert layers["gpu_busy_ns"].tolist() == [30, 11]
    assert layers["cpu_busy_ns"].tolist() == [50, 0]


def test_list_arguments_are_copied() -> None:
    builder, experts = RunLogBuilder(run_info()), np.array([0, 1], np.uint16)
    add_layer(builder, 0, 0, 0, experts=experts)
    experts[:] = 3
    assert builder.build().layers["experts"].iloc[0].tolist() == [0, 1]


def test_lists_may_be_empty() -> None:
    builder = RunLogBuilder(run_info())
    for layer in range(2):
        add_layer(builder, 0, layer, 0, experts=[], counts=(), placement=[], hit=[])
    assert [len(x) for x in builder.build().layers["experts"]] == [0, 0]


def test_an_empty_run(tmp_path: Path) -> None:
    RunLogBuilder(run_info()).write(tmp_path / "run")
    log = read_runlog(tmp_path / "run")
    assert log.info.complete
    assert all(getattr(log, name).empty for name in TABLES)


def test_columns_in_bulk_equal_rows_one_by_one() -> None:
    rows = built(3).build()
    bulk = RunLogBuilder(run_info())
    for name, schema in TABLES.items():
        frame, columns = getattr(rows, name), {}
        for field in schema:
            if "list" in str(field.type):
                lengths = [len(values) for values in frame[field.name]]
                offsets = np.concatenate([[0], np.cumsum(lengths)])
                columns[field.name] = (offsets, np.concatenate(list(frame[field.name])))
            else:
                columns[field.name] = frame[field.name].to_numpy()
        bulk.add_columns(name, columns)
    assert_equal_logs(bulk.build(), rows)


def test_bulk_and_rows_keep_their_order() -> None:
    builder = RunLogBuilder(run_info())
    add_copy(builder, 0)
    columns = {name: np.array([1, 2]) for name in TABLES["copies"].names}
    builder.add_columns("copies", columns)
    add_copy(builder, 3)
    assert builder.build().copies["copy_id"].tolist() == [0, 1, 2, 3]


def test_bulk_columns_must_be_complete() -> None:
    columns = {name: np.array([1]) for name in TABLES["copies"].names if name != "slot"}
    with pytest.raises(UserError, match=r"missing \['slot'\], unknown \['extra'\]"):
        RunLogBuilder(run_info()).add_columns("copies", columns | {"extra": np.array([1])})


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    built().write(tmp_path / "run")
    with pytest.raises(UserError, match="never overwritten"):
        built().write(tmp_path / "run")
    with pytest.raises(UserError, match="never overwritten"):
        RunLogBuilder(run_info(), tmp_path / "run")


def test_a_log_without_path_cannot_flush() -> None:
    with pytest.raises(UserError, match="no path"):
        built().flush()


def test_a_log_on_disk_is_not_in_memory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="read_runlog"):
        RunLogBuilder(run_info(), tmp_path / "run").build()


def test_a_foreign_directory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"not a run log, it has no run\.json"):
        read_runlog(tmp_path)


def edit(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    value = json.loads((path / RUN_NAME).read_text())
    change(value)
    (path / RUN_NAME).write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(extra=1), "unknown key 'extra'"),
        (lambda v: v.pop("policy"), "'policy' is missing"),
        (lambda v: v.update(slots="3"), "slots: expected an integer"),
        (lambda v: v.update(kind="guessed"), "'guessed' is not one of simulated, measured"),
        (lambda v: v.update(schema_version=9), "schema_version 9, this program reads 1"),
    ],
)
def test_a_wrong_description_is_named(
    tmp_path: Path, change: Callable[[dict[str, object]], None], message: str
) -> None:
    built().write(tmp_path / "run")
    edit(tmp_path / "run", change)
    with pytest.raises(UserError, match=message):
        read_runlog(tmp_path / "run")


@pytest.mark.parametrize("damage", ["missing", "truncated", "foreign"])
def test_a_damaged_part_is_named(tmp_path: Path, damage: str) -> None:
    built().write(tmp_path / "run")
    part = tmp_path / "run" / "copies.parquet" / "part-00000.parquet"
    if damage == "missing":
        part.unlink()
    elif damage == "truncated":
        part.write_bytes(part.read_bytes()[:-5])
    else:
        pd.DataFrame({"a": [1]}).to_parquet(part)
    with pytest.raises(UserError, match=r"copies\.parquet/part-00000\.parquet"):
        read_runlog(tmp_path / "run")


def test_policy_parameters_survive(tmp_path: Path) -> None:
    built().write(tmp_path / "run")
    assert read_runlog(tmp_path / "run").info.policy_params == run_info().policy_params


def test_a_pass_may_be_added_before_its_copies_land(tmp_path: Path) -> None:
    builder = RunLogBuilder(run_info(), tmp_path / "run", passes_per_flush=1)
    add_pass(builder, 0, 0, 10)
    add_copy(builder, 0, pass_index=0)
    builder.close()
    assert read_runlog(tmp_path / "run").copies["copy_id"].tolist() == [0]


def test_columns_are_copied() -> None:
    numbers = np.arange(3)
    columns = {name: numbers.astype(np.int64) for name in TABLES["copies"].names}
    builder = RunLogBuilder(run_info())
    builder.add_columns("copies", columns)
    for values in columns.values():
        values[:] = 7  # as an engine that writes its buffers again
    assert builder.build().copies["copy_id"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["slots", "staging"])
def test_counts_that_no_run_has_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} is {2**70}"):
        run_info(**{name: 2**70})
