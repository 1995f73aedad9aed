"""`spac trace ACTION PATH`: look at a trace, make one, or hand one on."""

from collections.abc import Callable, Sequence

from omegaconf import DictConfig
from rich.console import Console

from experiments.key_kinds import as_written
from experiments.terminal import terminal
from experiments.trace_choice import acceptance_from, find_trace, ratios_from, seed_from
from experiments.trace_exchange import export_layers, import_file
from experiments.trace_generate import LAWS, generate, shuffle
from experiments.trace_tables import info_table, stats_tables
from experiments.unknown import unknown
from experiments.values import as_list
from policies.errors import UserError
from traces.check import check_trace
from traces.manifest import Manifest
from traces.reader import open_trace
from traces.stats import trace_stats

GAMMAS = (0, 1, 2, 4, 8)  # of the statistics, where none are given


def run(config: DictConfig) -> int:
    """Do the action; problems found by a check are a refusal, exit code 2."""
    if config.action is None or config.path is None:
        raise UserError(f"usage: spac trace {'|'.join(ACTIONS)} PATH [key=value ...]")
    if config.action not in ACTIONS:
        raise unknown("action", str(config.action), ACTIONS)
    _refuse_idle_keys(config)
    return ACTIONS[config.action](config, terminal())


def show_info(config: DictConfig, console: Console) -> int:
    """The manifest in words."""
    console.print(info_table(open_trace(find_trace(config.path))))
    return 0


def check(config: DictConfig, console: Console) -> int:
    """Every rule of the format; problems are errors."""
    path = find_trace(config.path)
    report = check_trace(path)
    for fact in report.facts:
        console.print(fact, highlight=False, soft_wrap=True)
    if not report.ok:
        raise UserError(f"{path}: {'; '.join(report.problems)}")
    console.print(f"{path}: {report.requests} requests, {report.rows} rows, no problem found")
    return 0


def show_stats(config: DictConfig, console: Console) -> int:
    """Locality, reuse, windows and hit rates."""
    trace = open_trace(find_trace(config.path))
    asked = () if config.gammas is None else tuple(as_list(config.gammas))
    _refuse_windows(asked, trace.manifest)
    stats = trace_stats(
        trace,
        acceptance=acceptance_from(config.acceptance),
        gammas=asked or GAMMAS,
        ratios=ratios_from(config, trace.manifest.model.experts),
        seed=seed_from(config),
    )
    for gamma in sorted({*asked} - {one.gamma for one in stats.windows}):
        raise UserError(f"gammas={gamma}: no text of this trace has so long a window")
    for table in stats_tables(stats):
        console.print(table)
    return 0


def _refuse_windows(gammas: Sequence[int], manifest: Manifest) -> None:
    """UserError for a window that the trace cannot hold."""
    rows = sum(part.rows for part in manifest.parts)
    for gamma in gammas:
        if gamma < 0:
            raise UserError(f"gammas={gamma}: must be at least 0")
        if manifest.kind != "text" and gamma > manifest.gamma_max:
            raise UserError(
                f"gammas={gamma}: this {manifest.kind} trace goes up to {manifest.gamma_max}"
            )
        if gamma >= rows:
            raise UserError(f"gammas={gamma}: no text of this trace has so long a window")


def _refuse_idle_keys(config: DictConfig) -> None:
    """UserError for a key that was given and means nothing to the action."""
    for key, actions in ONLY_FOR.items():
        if config[key] is not None and config.action not in actions:
            where = f"counts with spac trace {' or '.join(actions)} only"
            raise UserError(f"{key}={as_written(config[key])}: {where}")


ONLY_FOR: dict[str, tuple[str, ...]] = {
    "out": ("import", "export", "generate", "shuffle"),
    "format": ("import",),
    **dict.fromkeys(("model", "experts", "expert_bytes"), ("import", "generate")),
    **dict.fromkeys(("layers", "top_k", "requests", "tokens", *LAWS), ("generate",)),
    "within": ("shuffle",),
    **dict.fromkeys(("acceptance", "gammas"), ("stats",)),
    "ratios": ("stats", "export"),
    "seed": ("stats", "generate", "shuffle"),
}
ACTIONS: dict[str, Callable[[DictConfig, Console], int]] = {
    "info": show_info,
    "check": check,
    "stats": show_stats,
    "import": import_file,
    "export": export_layers,
    "generate": generate,
    "shuffle": shuffle,
}
