"""Picture of one verify pass: what GPU, CPU and link did when. A pure function of a run log."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.figure_style import new_figure
from policies.errors import UserError
from traces.runlog import RunLog
from traces.runlog_schema import COPY_DEMAND, COPY_PREFETCH, COPY_STREAM, DECODE_PHASE

MILLISECOND = 1e6
LANES = ("GPU", "CPU", "link")


@dataclass(frozen=True)
class Kind:
    """A kind of span: its lane, its name in the legend, how it is filled."""

    lane: str
    name: str
    colour: str
    hatch: str


DRAFTING = Kind("GPU", "draft steps", "#999999", "")
DENSE = Kind("GPU", "attention, router", "#56B4E9", "")
EXPERTS = Kind("GPU", "experts, GPU", "#009E73", "")
CPU_EXPERTS = Kind("CPU", "experts, CPU", "#0072B2", "..")
COPIES = {
    COPY_DEMAND: Kind("link", "fetch", "#E69F00", "//"),
    COPY_STREAM: Kind("link", "stream", "#CC79A7", "xx"),
    COPY_PREFETCH: Kind("link", "prefetch", "#D55E00", "\\\\"),
}
KINDS = (DRAFTING, DENSE, EXPERTS, CPU_EXPERTS, *COPIES.values())
Spans = dict[Kind, list[tuple[int, int]]]


def typical_pass(log: RunLog) -> int:
    """Index of the decode pass of median duration outside warm-up."""
    passes = log.passes[(log.passes["phase"] == DECODE_PHASE) & ~log.passes["warmup"]]
    if passes.empty:
        raise UserError("the run log has no decode pass outside warm-up")
    duration = (passes["end_ns"] - passes["begin_ns"]).to_numpy()
    middle = np.argsort(duration, kind="stable")[len(duration) // 2]
    return int(passes["pass_index"].iloc[middle])


def pass_spans(log: RunLog, pass_index: int) -> Spans:
    """(begin, end) in ns since the begin of the pass, by kind, cut to the pass."""
    played = log.passes[log.passes["pass_index"] == pass_index].iloc[0]
    begin, end = int(played["begin_ns"]), int(played["end_ns"])
    layers = log.layers[log.layers["pass_index"] == pass_index]
    copies = log.copies[(log.copies["landing_ns"] > begin) & (log.copies["begin_ns"] < end)]
    found: Spans = {kind: [] for kind in KINDS}
    found[DRAFTING] = [(begin, int(played["draft_end_ns"]))]
    found[DENSE] = _pairs(layers, "t0_ns", "t1_ns")
    found[EXPERTS] = _pairs(layers, "gpu_begin_ns", "gpu_end_ns")
    found[CPU_EXPERTS] = _pairs(layers, "cpu_begin_ns", "cpu_end_ns")
    for number, kind in COPIES.items():
        found[kind] = _pairs(copies[copies["kind"] == number], "begin_ns", "landing_ns")
    return {
        kind: [
            (max(first, begin) - begin, min(last, end) - begin)
            for first, last in spans
            if last > first
        ]
        for kind, spans in found.items()
    }


def pass_lanes_figure(log: RunLog, pass_index: int | None = None) -> Figure:
    """The three lanes of one pass; the typical one unless told."""
    index = typical_pass(log) if pass_index is None else pass_index
    played = log.passes[log.passes["pass_index"] == index].iloc[0]
    duration = int(played["end_ns"] - played["begin_ns"])
    spans = pass_spans(log, index)
    busy = {
        lane: busy_ns([span for kind in KINDS if kind.lane == lane for span in spans[kind]])
        for lane in LANES
    }
    shares = ", ".join(f"{lane} {busy[lane] / duration:.0%}" for lane in LANES)
    figure, axes = new_figure(
        f"A pass of {duration / MILLISECOND:.2f} ms under {log.info.policy} keeps busy: {shares}",
        width=11.0, height=3.4,
    )  # fmt: skip
    for kind in KINDS:
        bars = [(begin / MILLISECOND, (end - begin) / MILLISECOND) for begin, end in spans[kind]]
        axes.broken_barh(
            bars, (LANES.index(kind.lane) - 0.36, 0.72), facecolors=kind.colour, hatch=kind.hatch,
            edgecolor="white", linewidth=0.3,
        )  # fmt: skip
    axes.set_yticks(range(len(LANES)), list(LANES))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, duration / MILLISECOND)
    axes.set_xlabel(
        f"milliseconds; {log.info.trace}, {int(played['rows'])} rows, {log.info.slots} slots, "
        f"{log.info.hardware}"
    )
    used = [kind for kind in KINDS if spans[kind]]
    handles = [
        Patch(facecolor=kind.colour, hatch=kind.hatch, edgecolor="white", label=kind.name)
        for kind in used
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(used), fontsize=9, frameon=False
    )
    return figure


def busy_ns(spans: list[tuple[int, int]]) -> int:
    """Time covered by at least one span."""
    covered, reach = 0, 0
    for begin, end in sorted(spans):
        covered += max(0, end - max(begin, reach))
        reach = max(reach, end)
    return covered


def _pairs(table: pd.DataFrame, begin: str, end: str) -> list[tuple[int, int]]:
    return [(int(first), int(last)) for first, last in zip(table[begin], table[end], strict=True)]
