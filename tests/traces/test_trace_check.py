"""check_trace: sound traces pass with facts, each damage becomes a problem, nothing is raised."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from trace_samples import dense_trace, trace_of_kind

from policies.errors import UserError
from traces.atomic import sha256_of
from traces.check import CheckReport, check_trace
from traces.manifest import MANIFEST_NAME, Kind
from traces.reader import Trace
from traces.rows import RowBatch
from traces.schema import encode_part
from traces.strict_json import dump_json

PROMPT, WINDOW = 5, 5


def rewrite(trace: Trace, change: Callable[[RowBatch], None]) -> CheckReport:
    """Change the rows of the one part behind the writer's back, then check."""
    batch = trace.load()
    change(batch)
    data = encode_part(batch, trace.manifest)
    name = trace.manifest.parts[0].file
    (trace.path / name).write_bytes(data)
    part = dataclasses.replace(trace.manifest.parts[0], sha256=sha256_of(data))
    manifest = dataclasses.replace(trace.manifest, parts=(part,))
    (trace.path / MANIFEST_NAME).write_bytes(dump_json(manifest))
    return check_trace(trace.path)


@pytest.mark.parametrize("kind", ["dense", "windowed", "text"])
def test_a_sound_trace_passes(tmp_path: Path, kind: Kind) -> None:
    trace = trace_of_kind(tmp_path / "trace", kind)
    report = check_trace(trace.path)
    assert report.ok
    assert report.requests == 3
    assert report.rows == len(trace.load())
    assert any("complete" in fact for fact in report.facts)
    assert (report.prefix_compared > 0) is (kind == "dense")
    assert report.prefix_differing == 0


def test_prefix_rows_are_counted_by_the_plain_definition(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace", gamma_max=4)
    batch, compared = trace.load(), 0
    decode = batch.take(batch.phase == 1)
    ends = {r: int(decode.start[decode.request == r].max()) for r in (0, 1, 2)}
    for begin in range(0, len(decode), WINDOW):
        j = 0
        while decode.match[begin + j]:
            j += 1
            compared += int(decode.start[begin]) + j <= ends[int(decode.request[begin])]
    assert check_trace(trace.path).prefix_compared == compared


def flip_prefix_rows(share: float) -> Callable[[RowBatch], None]:
    def change(batch: RowBatch) -> None:
        rows = np.flatnonzero(batch.row > 0)
        for row in rows[: max(1, int(len(rows) * share))]:
            spare = sorted(set(range(16)) - set(batch.experts[row, 0].tolist()))
            batch.experts[row, 0, 0] = spare[0]

    return change


def test_a_few_flipped_rows_are_a_fact(tmp_path: Path) -> None:
    def change(batch: RowBatch) -> None:
        # The first accepted draft of the trace.
        row = int(np.flatnonzero(batch.match)[0]) + 1
        spare = sorted(set(range(16)) - set(batch.experts[row, 0].tolist()))
        batch.experts[row, 0, 0] = spare[0]

    report = rewrite(dense_trace(tmp_path / "trace"), change)
    assert report.ok
    assert report.prefix_differing == 1
    assert any("1 differ" in fact for fact in report.facts)


def test_many_flipped_rows_are_a_problem(tmp_path: Path) -> None:
    report = rewrite(dense_trace(tmp_path / "trace"), flip_prefix_rows(0.5))
    assert not report.ok
    assert report.problems[0].startswith("prefix property")


def test_swapped_experts_are_no_difference(tmp_path: Path) -> None:
    def change(batch: RowBatch) -> None:
        batch.experts[batch.row > 0] = batch.experts[batch.row > 0][:, :, ::-1]

    assert rewrite(dense_trace(tmp_path / "trace"), change).prefix_differing == 0


def duplicate(batch: RowBatch) -> None:
    batch.experts[PROMPT + 2, 1, 0] = batch.experts[PROMPT + 2, 1, 1]


def flag(batch: RowBatch) -> None:
    batch.match[PROMPT] = not batch.match[PROMPT]


def commit(batch: RowBatch) -> None:
    # A draft row and a choice that stay consistent with each other, but not with the next start.
    batch.target_choice[PROMPT] = 1_000
    batch.match[PROMPT] = False


def lost(batch: RowBatch) -> None:
    last = len(batch) - WINDOW
    batch.target_choice[last] = -1
    batch.match[last] = False


def displaced(batch: RowBatch) -> None:
    batch.row[PROMPT + 1] = 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            duplicate,
            "1 times an expert twice in a row and layer, first in request 0, start 5, row 2",
        ),
        (flag, "match flags of start 5 contradict the tokens"),
        (commit, r"request 0: start 5 commits token 1000, start 6 has \d+ \(1 such places\)"),
        (lost, "without the token it commits"),
        (displaced, "must be rows 0..4, side by side"),
    ],
)
def test_damage_is_a_problem(
    tmp_path: Path, change: Callable[[RowBatch], None], message: str
) -> None:
    report = rewrite(dense_trace(tmp_path / "trace"), change)
    assert not report.ok
    assert report.problems[0].startswith("part-00000.parquet: ")
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(report.problems[0])


def test_a_damaged_part_is_a_problem_and_the_others_are_checked(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace", rows_per_part=40)
    whole, parts = check_trace(trace.path), trace.manifest.parts
    assert len(parts) > 1 and f"{whole.rows} rows in {len(parts)} parts" in whole.facts[0]
    (trace.path / parts[0].file).write_bytes(b"rubbish")
    report = check_trace(trace.path)
    assert "truncated or changed" in report.problems[0]
    assert report.rows == whole.rows - parts[0].rows > 0
    readable = f"{report.rows} rows in the {len(parts) - 1} parts that can be read, of {len(parts)}"
    assert readable in report.facts[0]


def test_a_missing_part_is_a_problem(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace")
    (trace.path / "part-00000.parquet").unlink()
    assert "missing" in check_trace(trace.path).problems[0]


def test_strange_files_are_facts(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace")
    (trace.path / ".tmp-part-00001.parquet").write_bytes(b"")
    (trace.path / "notes.txt").write_text("hello")
    report = check_trace(trace.path)
    assert report.ok
    assert any("interrupted write, ignored: .tmp-part-00001" in fact for fact in report.facts)
    assert any("not part of the trace, ignored: notes.txt" in fact for fact in report.facts)


def test_an_incomplete_trace_is_said_to_be_so(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace")
    manifest = dataclasses.replace(trace.manifest, complete=False)
    (trace.path / MANIFEST_NAME).write_bytes(dump_json(manifest))
    report = check_trace(trace.path)
    assert report.ok
    assert any("incomplete" in fact for fact in report.facts)


def test_a_complete_trace_without_rows_is_a_problem(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace")
    manifest = dataclasses.replace(trace.manifest, parts=())
    (trace.path / MANIFEST_NAME).write_bytes(dump_json(manifest))
    assert "no rows" in check_trace(trace.path).problems[0]


def test_a_directory_that_is_no_trace_raises(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a trace"):
        check_trace(tmp_path)
