"""What the value of each key may be, whatever the command: checked once, before a command begins.

A kind says only that a gamma is a whole number; which whole numbers are possible is said where it
is used. Null is a value where the help names it, and a list where the command plays grids.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from experiments.commands import Command
from experiments.help_text import Key, all_keys
from policies.errors import UserError


@dataclass(frozen=True)
class Kind:
    """`fault` completes the sentence key=value: ..."""

    fits: Callable[[Any], bool]
    fault: str


def is_whole(value: Any) -> bool:
    """A whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A finite number."""
    return is_whole(value) or (isinstance(value, float) and math.isfinite(value))


LARGEST = 2**63 - 1  # counts end up in columns of 64 bits
WHOLE = Kind(is_whole, "not a whole number")
SEED = Kind(
    lambda value: is_whole(value) and value >= 0, "not a whole number of at least 0, as seeds are"
)
NUMBER = Kind(is_number, "not a number")
TRUTH = Kind(lambda value: isinstance(value, bool), "must be true or false")
TEXT = Kind(
    lambda value: isinstance(value, str) and value != "",
    "must be a text, not empty; in a list numbers need quotes",
)
MAPPING = Kind(
    lambda value: isinstance(value, dict), "expected keys with values, each as NAME.KEY=VALUE"
)
TEXT_OR_FALSE = Kind(lambda value: value is False or TEXT.fits(value), "must be a folder or false")

NAMES = {
    WHOLE: "capacity context distinct_layers expert_bytes experts gamma gammas layers link_latency "
    "max_new_tokens padded_requests pass passes phase_tokens ranks record_requests record_tokens "
    "repeats requests rows run_requests run_tokens runs shuffles slots slow_motion staging "
    "sweep_gammas sweep_traces text_requests threads tokens top_k trials workers working_set",
    NUMBER: "acceptance cache_ratio carried errors held_out link ratios reuse scale sweep_ratios "
    "zipf",
    SEED: "seed",
    TRUTH: "next_layer paced pictures proofs refit router_weights sensitivity",
    TEXT: "action bound budget calibration_trace cells check clock copy_to corpus_dir decision "
    "device draft_path dtype engine fit fitted folder format keep kind lanes launch mode "
    "name no_speculation only out outputs padded_draft padded_hardware padded_model parameters "
    "path plan policy prompt prompts pruner record_draft record_prompts record_target "
    "record_workload runlog size split stop study sweep target trace validation winner within "
    "workload",
    MAPPING: "draft hardware model overrides ranges sampling",
    TEXT_OR_FALSE: "data",
}
KINDS = {key: kind for kind, names in NAMES.items() for key in names.split()}
# Where a key means something else than in other commands.
OF_COMMAND = {
    "run": {"experts": TEXT},
    "timeline": {"passes": TEXT},
    "trace": {"model": TEXT},
}
GRIDS = ("cache_ratio", "gamma", "policy", "slots", "trace")
LISTS = {
    "": ("acceptance", "clock", "errors", "gammas", "no_speculation", "only", "parameters",
         "ratios", "rows", "runlog", "stop", "sweep_gammas", "sweep_ratios"),
    "compare": GRIDS,
    "demo": GRIDS,
    "tune": ("trace",),
    "validate": ("policy",),
    "bench": ("policy",),
    "study": ("trace",),
    "record": ("workload",),
    "policies": ("name",),
}  # fmt: skip
# Lists of which none is a sensible number.
MAY_BE_EMPTY = ("no_speculation", "stop", "sweep_gammas", "sweep_ratios", "trace")
# Keys of which one takes the place of the other: null says that it does.
REPLACEABLE = ("cache_ratio", "slots", "budget")


def kind_of(command: Command, key: str) -> Kind | None:
    """The kind of a key of `command`; None for one that this table does not know."""
    return OF_COMMAND.get(command.name, {}).get(key, KINDS.get(key))


def takes_list(command: Command, key: str) -> bool:
    """Whether a list of values is a value of the key."""
    return key in LISTS[""] or key in LISTS.get(command.name, ())


def takes_null(command: Command, key: Key) -> bool:
    """Whether the help names null as a value of the key, or another key can take its place."""
    others = {one.name for one in all_keys(command)} & set(REPLACEABLE) - {key.name}
    replaceable = key.name in REPLACEABLE and bool(others)
    return key.default == "null" or "null:" in key.meaning or replaceable


def check_values(command: Command, config: DictConfig) -> None:
    """UserError for the first value of `config` that its key cannot have."""
    for key in all_keys(command):
        node = config[key.name]
        value = OmegaConf.to_container(node) if OmegaConf.is_config(node) else node
        kind = kind_of(command, key.name)
        if value is None and not takes_null(command, key):
            given = "its keys, each as NAME.KEY=VALUE" if kind is MAPPING else "a value"
            raise UserError(f"{key.name}=null: give {given}: {key.meaning}")
        if value is None or kind is None:
            continue
        for one in _single(command, key, value):
            if not kind.fits(one):
                raise UserError(f"{key.name}={as_written(value)}: {kind.fault}")
            if is_whole(one) and abs(one) > LARGEST:
                raise UserError(f"{key.name}={as_written(value)}: too large, at most {LARGEST}")


def _single(command: Command, key: Key, value: Any) -> Iterator[Any]:
    """The values of a list, where one is possible, or the one value."""
    if not isinstance(value, list):
        yield value
        return
    if not takes_list(command, key.name):
        grid = "; spac compare plays grids" if key.name in GRIDS else ""
        said = f"spac {command.name} takes one value here, no list{grid}"
        raise UserError(f"{key.name}={as_written(value)}: {said}")
    if not value and key.name not in MAY_BE_EMPTY:
        raise UserError(f"{key.name}=[]: name at least one: {key.meaning}")
    yield from value


def as_written(value: Any) -> str:
    """`value` as a person would write it on the command line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(map(as_written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {as_written(one)}' for key, one in value.items())}}}"
    return str(value)
