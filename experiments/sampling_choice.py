"""The keys `sampling.*` of commands that generate text."""

from collections.abc import Mapping
from typing import Any

from experiments.key_kinds import LARGEST, as_written
from experiments.values import number, whole_number
from policies.errors import UserError
from runtime.truncation import Truncation
from traces.manifest import SamplingInfo

MODES = ("greedy", "keyed", "rejection")


def sampling_from(values: Mapping[str, Any]) -> tuple[SamplingInfo, Truncation]:
    """How tokens are drawn and which may be drawn; UserError names the key that is wrong."""
    if not values:
        raise UserError("sampling=null: give its keys, such as sampling.mode=greedy")
    top_k, top_p = values.get("top_k"), values.get("top_p")
    temperature = number("sampling.temperature", values["temperature"])
    seed = whole_number("sampling.seed", values["seed"])
    if not 0 <= seed <= LARGEST:
        raise UserError(f"sampling.seed={seed}: must be 0..{LARGEST}")
    if values["mode"] not in MODES:
        said = as_written(values["mode"])
        raise UserError(f"sampling.mode={said} is unknown; use {', '.join(MODES)}")
    return (
        SamplingInfo(values["mode"], temperature, seed),
        Truncation(
            None if top_k is None else whole_number("sampling.top_k", top_k),
            None if top_p is None else number("sampling.top_p", top_p),
        ),
    )
