"""`spac timeline`: runs as a Perfetto trace, side by side, and one pass as a picture for papers."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from experiments.figure_style import save_figure
from experiments.fitted_table import FittedTable
from experiments.lanes_figure import pass_lanes_figure, typical_pass
from experiments.outputs import new_folder, removed_if_unused
from experiments.perfetto import perfetto_trace
from experiments.perfetto_span import Span
from experiments.runlog_choice import runlog_directories
from experiments.terminal import terminal
from experiments.text_table import TextRow, TextTable
from experiments.values import as_list, whole_number
from policies.errors import UserError
from traces.atomic import write_atomically
from traces.runlog import RunLog, read_runlog

TRACE_NAME = "timeline.json.gz"
ALL = "all"


def run(config: DictConfig) -> int:
    """Write the trace and the pictures of `config.runlog`; say where they are."""
    console = terminal()
    directories = runlog_directories([str(path) for path in as_list(config.runlog)])
    logs = [read_runlog(path) for path in directories]
    spans = [span_of(log, config.passes) for log in logs]
    indices = [pass_of(span, config["pass"]) for span in spans]
    with removed_if_unused(new_folder(config.outputs, "timeline")) as folder:
        write_atomically(folder / TRACE_NAME, perfetto_trace(spans))
        pictures = [
            path
            for number, (log, index) in enumerate(zip(logs, indices, strict=True), 1)
            for path in save_pass(log, index, folder, number)
        ]
        console.print(span_table(directories, spans))
        for path in (folder / TRACE_NAME, *pictures):
            console.print(str(path), highlight=False, soft_wrap=True)
        console.print(f"Open {TRACE_NAME} at ui.perfetto.dev (drop the file on the page).")
    return 0


def span_of(log: RunLog, passes: object) -> Span:
    """The passes to show: `all`, or `first:last` counted from 0, both included."""
    indices = log.passes["pass_index"]
    if log.passes.empty:
        raise UserError(f"run log of {log.info.policy!r}: it has no pass")
    if passes == ALL:
        return Span(log, int(indices.min()), int(indices.max()))
    first, colon, last = str(passes).partition(":")
    if not (colon and first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise UserError(f"passes={passes}: write first:last, such as passes=10:19, or passes=all")
    return Span(log, int(first), int(last))


def pass_of(span: Span, index: object) -> int:
    """The pass to draw: the one asked for, else the typical one of those shown."""
    log = span.log
    if index is None:
        return typical_pass(span.passes)
    number = whole_number("pass", index)
    if number not in set(log.passes["pass_index"]):
        last = log.passes["pass_index"].max()
        raise UserError(f"pass={number}: {log.info.policy} has passes 0 to {last}")
    return number


def save_pass(log: RunLog, index: int, folder: Path, number: int) -> list[Path]:
    """Picture of one pass as PNG and PDF."""
    figure = pass_lanes_figure(log, index)
    stem = f"{number}-{log.info.policy}-pass-{index}"
    return [save_figure(figure, folder / f"{stem}{ending}") for ending in (".png", ".pdf")]


def span_table(directories: Sequence[Path], spans: Sequence[Span]) -> FittedTable:
    """What the trace shows of each run."""
    rows = []
    for path, span in zip(directories, spans, strict=True):
        info, last = span.log.info, span.passes["pass_index"].max()
        cells = [
            str(path), f"{info.policy}, {info.kind}", f"{span.first} to {last}",
            str(len(span.log.passes)), f"{(span.end_ns - span.begin_ns) / 1e6:.2f}",
            str(len(span.copies)),
        ]  # fmt: skip
        rows.append(TextRow(cells))
    headings = ["run log", "run", "passes shown", "of", "ms", "copies"]
    return FittedTable(TextTable("", headings, rows), words=["run"], texts=["run log"])
