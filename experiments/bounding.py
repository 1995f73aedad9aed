"""Bounds for the rows of a comparison: each trace, setting and way to decode is bounded once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from rich.console import Console

from experiments.comparison import Job, by_trace, keys_of, workload_of
from experiments.kept_cells import CellStore, key_of, run_kept
from experiments.possible import BOUND_SECONDS, with_possible
from experiments.progress import progress_bar
from policies.composed import ComposedPolicy
from policies.errors import UserError
from policies.parts import FixedWindow
from simulator.bounds import decode_bound

METHODS = ("none", "fast", "lp")
SECOND = 1e9


@dataclass(frozen=True)
class BoundJob:
    """The runs of `job` and of all that play its trace and setting with the same windows: `window`
    drafts in every pass, or None for windows that the policy chooses."""

    job: Job
    window: int | None
    method: str

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal bounds."""
        job = self.job
        return job.trace, job.acceptance, job.seed, repr(job.setting), self.window


def check_method(method: object) -> str:
    """The key bound=; UserError if there is no such method."""
    if method not in METHODS:
        raise UserError(f"bound={method}: there are {', '.join(METHODS)}")
    return str(method)


def window_of(job: Job) -> int | None:
    """Drafts of every pass of the run, None if its policy may choose other windows each time."""
    gamma = job.setting.gamma if job.setting.speculation else 0
    policy = job.choice.build()
    if gamma == 0:
        return 0
    # A policy in plain Python may choose any window.
    if not isinstance(policy, ComposedPolicy):
        return None
    return policy.window.choose(gamma) if isinstance(policy.window, FixedWindow) else None


def with_bounds(
    rows: pd.DataFrame,
    jobs: Sequence[Job],
    method: str,
    workers: int,
    console: Console,
    store: CellStore | None = None,
) -> pd.DataFrame:
    """`rows` of all `jobs`, in their order, with bounds and the bracket of what is possible. Bounds
    in `store` are not computed again."""
    if method == "none":
        return rows
    wanted = [BoundJob(job, window_of(job), method) for job in jobs]
    first = {one.key: one for one in reversed(wanted)}
    unique = list(first.values())
    names = keys_of([one.job for one in unique])
    keys = [
        key_of("bound", name, one.window, method) for name, one in zip(names, unique, strict=True)
    ]
    found = {} if store is None else store.kept(keys)[0]
    order = [index for index in by_trace([one.job for one in unique]) if index not in found]
    with progress_bar(console, "bounds", len(unique), len(found)) as advance:
        for index, one in run_kept(bound_seconds, unique, keys, order, workers, store):
            found[index] = one
            advance(unique[index].job.workload)
    seconds = {unique[index].key: one for index, one in found.items()}
    bounds = [seconds[one.key] for one in wanted]
    refuse_beaten(rows, bounds)
    return with_possible(rows.assign(bound=method, **{BOUND_SECONDS: bounds}))


def bound_seconds(one: BoundJob) -> float:
    """Decode seconds of the measured requests below which no run of the kind can get."""
    replay, setting = workload_of(one.job).replay, one.job.setting
    settings = setting.simulation(replay.model)
    if one.window is not None:
        settings = replace(settings, gamma=one.window)
    bound_ns = decode_bound(
        replay, setting.costs(replay, one.job.choice.name), settings,
        any_window=one.window is None, method=one.method,  # type: ignore[arg-type]
    )  # fmt: skip
    return bound_ns / SECOND


def refuse_beaten(rows: pd.DataFrame, bounds: Sequence[float]) -> None:
    """A run faster than its bound means that one of the two is wrong: nothing may be printed."""
    for (_, row), bound in zip(rows.iterrows(), bounds, strict=True):
        if row["decode_seconds"] < bound:
            raise RuntimeError(
                f"{row['policy']} on {row['workload']} took {row['decode_seconds']} s, less than "
                f"the lower bound of {bound} s"
            )
