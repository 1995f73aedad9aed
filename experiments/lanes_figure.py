"""Picture of one verify pass: what GPU, CPU and link did when. A pure function of a run log."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.figure_style import new_figure
from policies.errors import UserError
from simulator.timeline import Interval, pass_lanes
from traces.runlog import RunLog
from traces.runlog_schema import DECODE_PHASE

MILLISECOND = 1e6
LANES = ("gpu", "cpu", "link")
LANE_NAMES = ("GPU", "CPU", "link")


@dataclass(frozen=True)
class Kind:
    """A kind of interval: its name in the legend, how it is filled."""

    name: str
    colour: str
    hatch: str


KINDS = {
    ("gpu", "draft"): Kind("draft steps", "#999999", ""),
    ("gpu", "dense"): Kind("attention, router", "#56B4E9", ""),
    ("gpu", "experts"): Kind("experts, GPU", "#009E73", ""),
    ("gpu", "head"): Kind("output head", "#444444", ""),
    ("cpu", "experts"): Kind("experts, CPU", "#0072B2", ".."),
    ("link", "demand"): Kind("fetch", "#E69F00", "//"),
    ("link", "stream"): Kind("stream", "#CC79A7", "xx"),
    ("link", "prefetch"): Kind("prefetch", "#D55E00", "\\\\"),
}


def typical_pass(shown: pd.DataFrame) -> int:
    """Index of the pass of median duration among `shown`, rows of a run log's passes: of those that
    decode, are no warm-up and verify drafts, as far as there are any. A policy may switch drafting
    off for most passes. UserError if `shown` is empty."""
    if shown.empty:
        raise UserError("the run log has no pass to draw")
    passes = _if_any(shown, shown["phase"] == DECODE_PHASE)
    passes = _if_any(passes, ~passes["warmup"])
    passes = _if_any(passes, passes["gamma"] > 0)
    duration = (passes["end_ns"] - passes["begin_ns"]).to_numpy()
    middle = np.argsort(duration, kind="stable")[len(duration) // 2]
    return int(passes["pass_index"].iloc[middle])


def _if_any(passes: pd.DataFrame, wanted: pd.Series) -> pd.DataFrame:
    return passes[wanted] if wanted.any() else passes


def pass_lanes_figure(log: RunLog, pass_index: int | None = None) -> Figure:
    """The three lanes of one pass; the typical one unless told."""
    index = typical_pass(log.passes) if pass_index is None else pass_index
    played = log.passes[log.passes["pass_index"] == index].iloc[0]
    begin, end = int(played["begin_ns"]), int(played["end_ns"])
    duration = end - begin
    # Copies may reach beyond the pass on both sides: cut them to it.
    intervals = [
        replace(one, begin_ns=max(one.begin_ns, begin) - begin, end_ns=min(one.end_ns, end) - begin)
        for one in pass_lanes(log, index)
        if (one.lane, one.kind) in KINDS
    ]
    busy = {lane: busy_ns([one for one in intervals if one.lane == lane]) for lane in LANES}
    shares = ", ".join(
        f"{name} {busy[lane] / duration:.0%}" for lane, name in zip(LANES, LANE_NAMES, strict=True)
    )
    figure, axes = new_figure(
        f"A pass of {duration / MILLISECOND:.2f} ms under {log.info.policy} keeps busy: {shares}",
        width=11.0, height=3.4,
    )  # fmt: skip
    for key, kind in KINDS.items():
        bars = [
            (one.begin_ns / MILLISECOND, (one.end_ns - one.begin_ns) / MILLISECOND)
            for one in intervals
            if (one.lane, one.kind) == key
        ]
        axes.broken_barh(
            bars, (LANES.index(key[0]) - 0.36, 0.72), facecolors=kind.colour, hatch=kind.hatch,
            edgecolor="white", linewidth=0.3,
        )  # fmt: skip
    axes.set_yticks(range(len(LANES)), list(LANE_NAMES))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, duration / MILLISECOND)
    axes.set_xlabel(
        f"milliseconds; {log.info.trace or 'a prompt'}, {log.info.model.layers} layers, "
        f"gamma {int(played['gamma'])}, {log.info.slots} slots, "
        f"{log.info.hardware}"
    )
    present = {(one.lane, one.kind) for one in intervals}
    handles = [
        Patch(facecolor=kind.colour, hatch=kind.hatch, edgecolor="white", label=kind.name)
        for key, kind in KINDS.items()
        if key in present
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9, frameon=False
    )
    return figure


def busy_ns(intervals: list[Interval]) -> int:
    """Time covered by at least one interval."""
    covered, reach = 0, 0
    for one in sorted(intervals, key=lambda one: one.begin_ns):
        covered += max(0, one.end_ns - max(one.begin_ns, reach))
        reach = max(reach, one.end_ns)
    return covered
