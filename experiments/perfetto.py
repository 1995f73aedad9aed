"""Runs as a Perfetto trace: JSON trace events, which ui.perfetto.dev and chrome://tracing open.

One process per run with the tracks passes, host decisions, GPU, CPU and link; counters for slots
and for the link's queue; an arrow from each copy to the GPU work that uses it. `ts` and `dur` are
microseconds, exact to the nanosecond. Source: the Trace Event Format, as Perfetto documents it.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from typing import Any

from experiments.perfetto_arrows import arrows
from experiments.perfetto_counters import counters
from experiments.perfetto_span import Span, stacked
from simulator.timeline import COPY_KINDS
from traces.runlog_schema import DECODE_PHASE, NO_LAYER

Event = dict[str, Any]
MICROSECOND = 1e3
TRACKS = {"passes": "passes", "host": "host decisions", "gpu": "GPU", "cpu": "CPU", "link": "link"}
ROWS_PER_LANE = 10  # numbers of the tracks of a lane whose intervals overlap


def perfetto_trace(spans: Sequence[Span]) -> bytes:
    """A gzipped JSON trace with one process per span; the same spans give the same bytes."""
    events = [event for number, span in enumerate(spans, 1) for event in run_events(span, number)]
    text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def run_events(span: Span, process: int) -> list[Event]:
    """All events of one run; `process` is its number in the trace, from 1."""
    slices = [*_passes(span), *_work(span), *_copies(span)]
    info = span.log.info
    title = f"{info.policy} on {info.trace or 'a prompt'}, {info.kind}, {info.hardware}"
    tracks = sorted({event["tid"] for event in slices})
    timed = [*slices, *counters(span), *arrows(span, slices)]
    for event in timed:
        event["ts"] = (event["ts"] - span.begin_ns) / MICROSECOND
        if "dur" in event:
            event["dur"] /= MICROSECOND
    names = [
        _meta("process_name", 0, name=title),
        _meta("process_sort_index", 0, sort_index=process),
    ]
    for track in tracks:
        names.append(_meta("thread_name", track, name=_track_name(track)))
        names.append(_meta("thread_sort_index", track, sort_index=track))
    return [{"pid": process} | event for event in (*names, *timed)]


def track(lane: str, row: int = 0) -> int:
    """Number of a track, which is also its place on the screen."""
    return list(TRACKS).index(lane) * ROWS_PER_LANE + min(row, ROWS_PER_LANE - 1) + 1


def _track_name(number: int) -> str:
    lane, row = divmod(number - 1, ROWS_PER_LANE)
    return list(TRACKS.values())[lane] + (f", overlap {row}" if row else "")


def _meta(kind: str, number: int, **args: object) -> Event:
    return {"ph": "M", "name": kind, "tid": number, "args": args}


def _slice(name: str, kind: str, number: int, begin_ns: int, end_ns: int, args: Event) -> Event:
    return {
        "ph": "X", "name": name, "cat": kind, "tid": number, "ts": begin_ns,
        "dur": end_ns - begin_ns, "args": args,
    }  # fmt: skip


def _passes(span: Span) -> Iterator[Event]:
    for row in span.passes.itertuples(index=False):
        kind = "pass" if row.phase == DECODE_PHASE else "prefill"
        args = {
            name: int(getattr(row, name))
            for name in ("request", "gamma", "rows", "accepted", "committed")
        }
        args["warmup"] = bool(row.warmup)
        yield _slice(
            f"{kind} {row.pass_index}", kind, track("passes"), int(row.begin_ns), int(row.end_ns),
            args,
        )  # fmt: skip


def _work(span: Span) -> Iterator[Event]:
    for lane in ("host", "gpu", "cpu"):
        intervals = [
            (index, one) for index, found in span.work.items() for one in found if one.lane == lane
        ]
        indices = {one: index for index, one in intervals}
        for row, one in stacked(indices):
            args = {"pass": indices[one], "of": one.label}
            yield _slice(
                f"{one.kind} ({one.label})", one.kind, track(lane, row), one.begin_ns, one.end_ns,
                args,
            )  # fmt: skip


def _copies(span: Span) -> Iterator[Event]:
    experts = span.log.info.model.experts
    copies = {row.copy_id: row for row in span.copies.itertuples(index=False)}
    for row, copy in stacked(_OnLink(copy) for copy in copies.values()):
        table = copy.table_row
        kind = COPY_KINDS[table.kind]
        args = {
            "copy": int(table.copy_id), "layer": int(table.expert) // experts,
            "expert": int(table.expert) % experts, "slot": int(table.slot),
            "generation": int(table.generation), "bytes": int(table.bytes),
            "issued in pass": int(table.pass_index),
            "issued": "while drafting" if table.layer == NO_LAYER else f"at layer {table.layer}",
            "waited for the link (us)": (copy.begin_ns - int(table.issue_ns)) / MICROSECOND,
        }  # fmt: skip
        name = f"{kind} (layer {args['layer']} expert {args['expert']})"
        yield _slice(name, kind, track("link", row), copy.begin_ns, copy.end_ns, args)


class _OnLink:
    """A row of the table of copies as an interval."""

    def __init__(self, table_row: Any) -> None:
        self.table_row = table_row
        self.begin_ns, self.end_ns = int(table_row.begin_ns), int(table_row.landing_ns)
