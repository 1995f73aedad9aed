"""TraceWriter: whole requests per part, the same trace however rows arrive, never overwriting."""

import dataclasses
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import SMALL, assert_equal_rows, dense_trace

from policies.errors import UserError
from traces.layout import request_bounds
from traces.reader import open_trace
from traces.rows import build_rows
from traces.synthetic import random_dense, synthetic_manifest
from traces.writer import TraceWriter

GAMMA = 2
MANIFEST = synthetic_manifest(SMALL, "dense", GAMMA)
ROWS = random_dense(SMALL, GAMMA, 0)
ROWS_PER_REQUEST = SMALL.prompt_tokens + SMALL.tokens * (GAMMA + 1)


@settings(deadline=None, max_examples=30)
@given(
    rows_per_part=st.integers(1, 400),
    cuts=st.lists(st.integers(0, len(ROWS)), max_size=6).map(sorted),
)
def test_any_chunking_gives_the_rows_back_in_whole_requests(
    rows_per_part: int, cuts: list[int]
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        edges = [0, *cuts, len(ROWS)]
        with TraceWriter(path, MANIFEST, rows_per_part=rows_per_part) as writer:
            for begin, end in pairwise(edges):
                writer.append(ROWS.span(begin, end))
        trace = open_trace(path, verify=True)
        assert trace.manifest.complete
        assert_equal_rows(trace.load(), ROWS)
        requests = [{r for r, _, _ in request_bounds(p.request)} for p in trace.iter_parts()]
        assert sum(len(part) for part in requests) == SMALL.requests
        assert [part.rows % ROWS_PER_REQUEST for part in trace.manifest.parts] == [0] * len(
            requests
        )


def test_a_part_is_written_as_soon_as_a_request_ends(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace", MANIFEST, rows_per_part=1)
    writer.append(ROWS.take(ROWS.request == 0))
    assert writer.manifest.parts == ()
    writer.append(ROWS.take(ROWS.request == 1))
    assert [part.rows for part in writer.manifest.parts] == [ROWS_PER_REQUEST]
    trace = open_trace(tmp_path / "trace")
    assert not trace.manifest.complete
    assert set(trace.load().request.tolist()) == {0}


def test_a_new_writer_leaves_a_readable_empty_trace(tmp_path: Path) -> None:
    shape = dataclasses.replace(SMALL, lookahead=2, weights=True)
    TraceWriter(tmp_path / "trace", synthetic_manifest(shape, "dense", GAMMA))
    batch = open_trace(tmp_path / "trace").load()
    assert len(batch) == 0
    assert batch.experts.shape == (0, SMALL.layers, SMALL.top_k)
    assert batch.next_layer is not None and batch.next_layer.shape[0] == 2


def test_an_empty_batch_changes_nothing(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace", MANIFEST) as writer:
        writer.append(ROWS.span(0, 0))
        writer.append(ROWS)
    assert_equal_rows(open_trace(tmp_path / "trace").load(), ROWS)


def test_parts_given_in_the_manifest_are_dropped(tmp_path: Path) -> None:
    old = dense_trace(tmp_path / "old", GAMMA).manifest
    with TraceWriter(tmp_path / "new", old) as writer:
        assert writer.manifest.parts == ()
        assert not writer.manifest.complete
        writer.append(ROWS)


@pytest.mark.parametrize("name", ["trace/manifest.json", "trace/anything", "trace"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    existing = tmp_path / name
    existing.parent.mkdir(exist_ok=True)
    existing.write_text("precious")
    with pytest.raises(UserError, match=r"trace exists already; .*never overwritten"):
        TraceWriter(tmp_path / "trace", MANIFEST)
    assert existing.read_text() == "precious"


def test_an_empty_directory_may_be_used(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, MANIFEST) as writer:
        writer.append(ROWS)
    assert open_trace(tmp_path).manifest.complete


def test_appending_after_close_is_refused(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace", MANIFEST)
    writer.append(ROWS)
    writer.close()
    writer.close()
    with pytest.raises(UserError, match="closed"):
        writer.append(ROWS)


def test_requests_must_ascend(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace", MANIFEST) as writer:
        writer.append(ROWS.take(ROWS.request >= 1))
        with pytest.raises(UserError, match="request 0 after request 2"):
            writer.append(ROWS.take(ROWS.request == 0))


def test_a_request_is_not_resumed_in_a_later_part(tmp_path: Path) -> None:
    turned = ROWS.take(np.r_[ROWS_PER_REQUEST : 2 * ROWS_PER_REQUEST, 0:ROWS_PER_REQUEST])
    with (
        pytest.raises(UserError, match="ascend"),
        TraceWriter(tmp_path / "trace", MANIFEST) as writer,
    ):
        writer.append(turned)


def test_rows_that_contradict_the_manifest_are_refused_at_once(tmp_path: Path) -> None:
    experts = ROWS.experts.copy()
    experts[10, 1, 0] = SMALL.experts
    with TraceWriter(tmp_path / "trace", MANIFEST) as writer:
        with pytest.raises(UserError, match="trace: expert number 16 in a model of 16 experts"):
            writer.append(dataclasses.replace(ROWS, experts=experts))
        writer.append(ROWS)


def test_an_incomplete_window_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"request 2: .* multiple of gamma_max \+ 1 = 3"),
        TraceWriter(tmp_path / "trace", MANIFEST) as writer,
    ):
        writer.append(ROWS.span(0, len(ROWS) - 1))
    assert not open_trace(tmp_path / "trace").manifest.complete


def test_an_exception_keeps_whole_requests_and_marks_the_trace_incomplete(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        TraceWriter(tmp_path / "trace", MANIFEST) as writer,
    ):
        writer.append(ROWS.span(0, ROWS_PER_REQUEST + 7))
        raise KeyboardInterrupt
    trace = open_trace(tmp_path / "trace", verify=True)
    assert not trace.manifest.complete
    assert_equal_rows(trace.load(), ROWS.span(0, ROWS_PER_REQUEST))


def test_a_user_error_is_not_hidden(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="the real reason"),
        TraceWriter(tmp_path / "trace", MANIFEST) as writer,
    ):
        writer.append(ROWS.span(3, len(ROWS)))
        raise UserError("the real reason")


def test_rows_per_part_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="rows_per_part is 0"):
        TraceWriter(tmp_path / "trace", MANIFEST, rows_per_part=0)
    assert not (tmp_path / "trace").exists()


def test_a_prompt_longer_than_the_row_column_is_refused() -> None:
    with pytest.raises(UserError, match=r"row has values 0\.\.32768"):
        build_rows(
            request=0,
            phase=0,
            start=0,
            row=np.arange(32_769),
            input_token=0,
            target_choice=-1,
            match=False,
            experts=np.zeros((32_769, 1, 1), np.uint16),
        )
