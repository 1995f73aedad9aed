"""Which traces a command uses: names of bundled traces or paths, opened for replay."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.refusals import unknown
from policies.errors import UserError
from traces.acceptance import Acceptance
from traces.manifest import MANIFEST_NAME
from traces.reader import Trace, open_trace
from traces.replay import Replay, open_replay

BUNDLED = Path(__file__).resolve().parent.parent / "traces" / "data"


@dataclass(frozen=True)
class Workload:
    """A trace with its replay; `name` is unique among those chosen together."""

    name: str
    trace: Trace
    replay: Replay


def bundled_names() -> list[str]:
    """Names of the traces that come with the package."""
    return sorted(path.parent.name for path in BUNDLED.glob(f"*/{MANIFEST_NAME}"))


def find_trace(name: str | Path) -> Path:
    """Directory of a bundled trace or of a path; UserError if neither exists."""
    if str(name) in bundled_names():
        return BUNDLED / str(name)
    path = Path(name).expanduser()
    if path.exists():
        return path
    if "/" in str(name):
        raise UserError(f"trace={name}: no such trace directory")
    raise unknown("trace", str(name), bundled_names())


def open_workloads(
    names: Sequence[str] | None, acceptance: Acceptance | None = None, seed: int = 0
) -> list[Workload]:
    """The named traces, all bundled ones for None. Hashes are checked as parts are read.

    `acceptance` goes to text traces only: they need it, the others have recorded drafts.
    """
    chosen = bundled_names() if names is None else list(names)
    if not chosen:
        raise UserError("there are no bundled traces; give trace=<trace directory>")
    paths = [find_trace(name) for name in chosen]
    traces = [open_trace(path) for path in paths]
    if acceptance is not None and all(trace.manifest.kind != "text" for trace in traces):
        raise UserError(
            f"acceptance={acceptance}: none of the traces is a text trace; leave acceptance= out"
        )
    titles = [trace.manifest.workload for trace in traces]
    workloads = []
    for path, trace, title in zip(paths, traces, titles, strict=True):
        name = title if titles.count(title) == 1 else f"{title} ({path.name})"
        drawn = acceptance if trace.manifest.kind == "text" else None
        workloads.append(Workload(name, trace, open_replay(trace, drawn, seed)))
    return workloads
