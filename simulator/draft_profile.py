"""DraftProfile: sizes of a draft model, from conf/draft/*.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.profiles import check_numbers, number, read_profile


@dataclass(frozen=True)
class DraftProfile:
    """A dense draft. `bytes`: VRAM of its weights (0: no draft); `step_bytes`: read by one draft
    step; `layers`: each pays the machine's layer_launch_ns; `kv_bytes_per_token`: over all
    layers."""

    name: str
    bytes: int = number(0)
    step_bytes: int = number(0)
    layers: int = number(0)
    kv_bytes_per_token: int = number(0)

    def __post_init__(self) -> None:
        check_numbers(self)


def draft_profile(values: Mapping[str, Any], where: str = "draft") -> DraftProfile:
    """From a plain mapping; UserError names `where` (the file), key and number."""
    return read_profile(DraftProfile, values, where)
