"""Which traces a command uses: names of bundled traces or paths, opened for replay."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from omegaconf import DictConfig

from experiments.unknown import unknown
from experiments.values import as_list, number
from policies.errors import UserError
from traces.acceptance import Acceptance
from traces.caches import capacity_of
from traces.manifest import MANIFEST_NAME
from traces.reader import Trace, open_trace
from traces.replay import Replay, open_replay

RATIOS = (0.1, 0.17, 0.25)
BUNDLED = Path(__file__).resolve().parent.parent / "traces" / "data"


@dataclass(frozen=True)
class Workload:
    """A trace with its replay; `name` is unique among those chosen together."""

    name: str
    trace: Trace
    replay: Replay
    acceptance: Acceptance | None
    seed: int

    @property
    def path(self) -> Path:
        """Directory of the trace."""
        return self.trace.path


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


def open_workload(path: Path, acceptance: Acceptance | None, seed: int) -> Workload:
    """The trace at `path`, ready for replay. Hashes are checked as parts are read."""
    trace = open_trace(path)
    drawn = acceptance if trace.manifest.kind == "text" else None
    replay = open_replay(trace, drawn, seed)
    return Workload(trace.manifest.workload, trace, replay, drawn, seed)


def open_workloads(
    names: Sequence[str] | None, acceptance: Acceptance | None = None, seed: int = 0
) -> list[Workload]:
    """The named traces, all bundled ones for None.

    `acceptance` goes to text traces only: they need it, the others have recorded drafts.
    """
    chosen = bundled_names() if names is None else list(names)
    if not chosen:
        raise UserError("trace=[]: name at least one trace, bundled or a directory")
    workloads = [open_workload(find_trace(name), acceptance, seed) for name in chosen]
    if acceptance is not None and all(one.acceptance is None for one in workloads):
        raise UserError(
            f"acceptance={acceptance}: none of the traces is a text trace; leave acceptance= out"
        )
    titles = [workload.name for workload in workloads]
    if len(set(titles)) < len(titles):
        workloads = [
            replace(one, name=f"{one.name} ({one.path.name})" if titles.count(one.name) > 1
                    else one.name)
            for one in workloads
        ]  # fmt: skip
    names_now = [workload.name for workload in workloads]
    twice = next((name for name in names_now if names_now.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"trace {twice} is given twice")
    return workloads


def refuse_idle_seed(workloads: Sequence[Workload], seed: int) -> None:
    """UserError for a seed where it is the key of drawn acceptance alone, and none is drawn."""
    if seed and all(one.acceptance is None for one in workloads):
        raise UserError(
            f"seed={seed} changes nothing here: it is the key of acceptance drawn for text traces, "
            "and none of the traces is one"
        )


def acceptance_from(value: object) -> Acceptance | None:
    """The key acceptance=: null, one probability, or a list by position."""
    if value is None:
        return None
    listed = [number("acceptance", one) for one in as_list(value)]
    return listed[0] if len(listed) == 1 else tuple(listed)


def ratios_from(config: DictConfig, experts: int) -> tuple[float, ...]:
    """The cache ratios of `spac trace`, its usual ones where none are given; UserError for one that
    is none, or leaves no slot in a layer of `experts`."""
    ratios = RATIOS if config.ratios is None else tuple(map(float, as_list(config.ratios)))
    for ratio in ratios:
        if not 0 < ratio <= 1:
            raise UserError(f"ratios={ratio}: must be above 0 and at most 1")
        if capacity_of(ratio, experts) < 1:
            raise UserError(f"ratios={ratio}: no slot in a layer of {experts} experts")
    return ratios


def seed_from(config: DictConfig) -> int:
    """The seed of `spac trace`, 0 where none is given."""
    return 0 if config.seed is None else int(config.seed)
