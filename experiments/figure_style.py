"""How figures look: colours that colour-blind readers tell apart, markers and hatches for print."""

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from traces.atomic import write_atomically

# Okabe and Ito's palette without yellow, which is too pale for lines on white; grey and wine added.
COLOURS = (
    "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F", "#882255",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--", "**", "||")
DOTS_PER_INCH = 150
SALT = "moe-spac-lab"  # of the ids inside an SVG, which are random otherwise


@dataclass(frozen=True)
class Style:
    """How one policy is drawn in every figure of a report."""

    colour: str
    marker: str
    hatch: str
    line: str


def styles(policies: Sequence[str]) -> dict[str, Style]:
    """A style per policy, by order."""
    return {
        name: Style(
            COLOURS[index % len(COLOURS)],
            MARKERS[index % len(MARKERS)],
            HATCHES[index % len(HATCHES)],
            "-" if index < len(COLOURS) else ":",
        )
        for index, name in enumerate(policies)
    }


def new_figure(title: str, width: float = 9.0, height: float = 4.5) -> tuple[Figure, Axes]:
    """A figure with one set of axes and a title that states the finding."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    new_title(figure, title, width)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def make_logarithmic(axis: Axis, base: int = 10) -> None:
    """A logarithmic axis whose marks are plain numbers: matplotlib's own are formulas, which our
    files do not typeset. On base 10 the marks are 1, 2, 5, 10, ..."""
    subdivisions = (1.0, 2.0, 5.0) if base == 10 else (1.0,)
    scale = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
    scale("log", base=base)
    axis.set_major_locator(LogLocator(base=base, subs=subdivisions))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def new_title(figure: Figure, title: str, width: float) -> None:
    """A title over the whole width of the figure, in inches: long names of policies push the axes
    to the right."""
    title = textwrap.fill(title, int(width * 11))
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a PNG, PDF or SVG by the ending of `path`; the same figure gives the same bytes."""
    write_atomically(path, figure_bytes(figure, path.suffix.removeprefix(".")))
    return path


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """The figure as "png", "pdf" or "svg": the same bytes each time. Text of an SVG is outlines, so
    that no font is needed."""
    sink = io.BytesIO()
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    # Names come from files: dollar signs in one are no formula.
    plain = {"text.parse_math": False, "svg.hashsalt": SALT, "svg.fonttype": "path"}
    with rc_context(plain):
        for text in figure.findobj(Text):
            text.set_parse_math(False)
        figure.savefig(sink, format=kind, dpi=DOTS_PER_INCH, metadata=undated)
    return sink.getvalue()
