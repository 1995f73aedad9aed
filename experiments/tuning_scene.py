"""What is searched, on which requests and in which setting, from the settings of `spac tune`."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from omegaconf import DictConfig, OmegaConf

from experiments.commands import CONF
from experiments.key_kinds import as_written
from experiments.machine import capacities_from, machine_from
from experiments.policy_choice import PolicyChoice, choose_policies
from experiments.setting import settings_from
from experiments.trace_choice import Workload, acceptance_from, open_workloads
from experiments.tuning_runs import Scene, divide
from experiments.tuning_space import GAMMA, Axis, space_of
from experiments.values import as_list, as_mapping, number, whole_number
from policies.composed import ComposedPolicy
from policies.errors import UserError
from policies.parts import FixedWindow
from simulator.foresight import is_clairvoyant

RANGES = "default"  # of conf/ranges


@lru_cache(maxsize=1)
def prepared(settings: str) -> tuple[list[Workload], Scene, list[Axis]]:
    """Traces, scene and axes of the command's config, given as YAML: each process of a search
    reads the traces once, whatever number of trials it plays."""
    config = OmegaConf.create(settings)
    assert isinstance(config, DictConfig)
    workloads = workloads_of(config)
    return workloads, scene_of(config, workloads), axes_of(config, workloads)


def workloads_of(config: DictConfig) -> list[Workload]:
    """The traces of the search, opened."""
    names = None if config.trace is None else [str(name) for name in as_list(config.trace)]
    acceptance, seed = acceptance_from(config.acceptance), whole_number("seed", config.seed)
    return open_workloads(names, acceptance, seed)


def scene_of(config: DictConfig, workloads: list[Workload]) -> Scene:
    """Policy, setting and divided requests; UserError for what cannot be searched."""
    for key in ("policy", "cache_ratio", "slots", "gamma"):
        if len(as_list(config[key])) != 1:
            raise UserError(f"{key}={config[key]}: tune takes one; spac compare plays grids")
    choices = choose_policies([str(config.policy)], as_mapping(config.overrides))
    if len(choices) != 1:
        raise UserError("a list of parameter values is a grid; give its ends as ranges.<parameter>")
    policy = choices[0].build()
    if not isinstance(policy, ComposedPolicy) or config.engine not in ("auto", "compiled"):
        raise UserError(
            f"policy {choices[0].label}, engine={config.engine}: tune plays policies made of parts "
            "on the compiled engine"
        )
    if is_clairvoyant(policy):
        raise UserError(f"policy {choices[0].label} sees the future: there is nothing to tune")
    capacities = capacities_from(config, [config.cache_ratio], [config.slots])
    (setting,) = settings_from(config, machine_from(config), capacities, [config.gamma])
    share = number("held_out", config.held_out)
    return Scene(choices[0], setting, *divide(workloads, share, setting.requests))


def axes_of(config: DictConfig, workloads: list[Workload]) -> list[Axis]:
    """What is searched. gamma is part of it where every trace can be played with several windows
    and the policy has none of its own."""
    (choice,) = choose_policies([str(config.policy)], as_mapping(config.overrides))
    window = choice.build().window
    free = GAMMA not in choice.parameters and (
        not isinstance(window, FixedWindow) or window.gamma is None
    )
    gamma = whole_number("gamma", config.gamma) if free else None
    if any(workload.replay.fixed_gamma is not None for workload in workloads):
        gamma = None
    limit = min(workload.replay.gamma_limit for workload in workloads)
    wanted = None if config.parameters is None else [str(one) for one in as_list(config.parameters)]
    axes = space_of(choice, as_mapping(config.ranges), wanted, gamma, limit)
    _refuse_idle_ranges(as_mapping(config.ranges), {axis.name for axis in axes}, choice)
    return axes


def _refuse_idle_ranges(
    ranges: Mapping[str, Any], searched: set[str], choice: PolicyChoice
) -> None:
    """UserError for a range of the user's own that is not searched."""
    usual = as_mapping(OmegaConf.load(CONF / "ranges" / f"{RANGES}.yaml"))
    for name, values in ranges.items():
        if values is not None and values != usual.get(name) and name not in searched:
            raise UserError(
                f"ranges.{name}={as_written(values)} changes nothing here: {name} of policy "
                f"{choice.label} is not searched; searched are {', '.join(sorted(searched))}"
            )
