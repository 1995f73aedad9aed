"""Runs of a search: one set of parameters on one side, fit or held out, of every trace."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.first_use import compiling_beside
from experiments.policy_choice import PolicyChoice
from experiments.setting import Setting
from experiments.trace_choice import Workload
from experiments.tuning_space import with_values
from policies.errors import UserError
from simulator.totals import Totals, simulate_totals
from traces.held_replay import HeldReplay
from traces.replay import Replay
from traces.request_subset import RequestSubset, split_requests

LEAST = 2  # requests of a side: the first is warm-up and never counted
Speeds = list[list[float]]


@dataclass(frozen=True)
class Side:
    """One side of the division: a replay of its requests for each trace."""

    names: tuple[str, ...]
    replays: tuple[Replay, ...]

    @property
    def counted(self) -> int:
        """Requests that count, over all traces."""
        return sum(len(replay.request_ids) - 1 for replay in self.replays)


@dataclass(frozen=True)
class Scene:
    """What all runs of a search share."""

    choice: PolicyChoice
    setting: Setting
    fit: Side
    held_out: Side


def divide(
    workloads: Sequence[Workload], held_out: float, requests: int | None
) -> tuple[Side, Side]:
    """(fit, held out); UserError where a side of a trace would have nothing to measure."""
    if not 0 < held_out < 1:
        raise UserError(f"held_out={held_out}: must be above 0 and below 1")
    sides: list[list[Replay]] = [[], []]
    for workload in workloads:
        held = HeldReplay(workload.replay)
        ids = held.request_ids[:requests]
        for side, part in zip(sides, split_requests(ids, held_out), strict=True):
            if len(part) < LEAST:
                raise UserError(
                    f"{workload.name}: {len(ids)} requests divided by held_out={held_out} leave "
                    f"{len(part)} on one side, where the first is warm-up; {LEAST} are needed"
                )
            side.append(RequestSubset(held, part))
    names = tuple(workload.name for workload in workloads)
    return Side(names, tuple(sides[0])), Side(names, tuple(sides[1]))


def speeds_of(
    scene: Scene,
    side: Side,
    values: Mapping[str, Any],
    seen: Callable[[Speeds], None] | None = None,
) -> Speeds:
    """For each trace, tokens per second over the counted requests up to each of them. `seen` gets
    what is known after each request, and may stop the run by raising."""
    choice, gamma = with_values(scene.choice, values)
    setting = scene.setting if gamma is None else replace(scene.setting, gamma=gamma)
    speeds: Speeds = []
    for replay in side.replays:
        speeds.append([])

        def after(totals: Totals) -> None:
            if totals.passes == 0:  # warm-up
                return
            speeds[-1].append(totals.tokens_per_second)
            if seen is not None:
                seen(speeds)

        settings = replace(setting.simulation(replay.model), requests=None)
        costs = setting.costs(replay, choice.name)
        with compiling_beside():
            simulate_totals(replay, choice.build(), costs, settings, after_request=after)
    return speeds


def gain(speeds: Speeds, base: Speeds) -> float:
    """Speed relative to `base` on the same requests, 1.0 = equal: mean over the traces so far."""
    ratios = [
        mine[-1] / other[len(mine) - 1] for mine, other in zip(speeds, base, strict=False) if mine
    ]
    return sum(ratios) / len(ratios)
