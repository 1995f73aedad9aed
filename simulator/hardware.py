"""HardwareProfile: the speeds of one machine, from conf/hardware/*.yaml (sources there)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.profiles import check_numbers, number, read_profile
from traces.measured_times import MeasuredTimes


@dataclass(frozen=True)
class LinkProfile:
    """Host-to-device link. A copy takes latency_ns + bytes / bytes_per_second.

    `pinned`: from page-locked memory.
    """

    latency_ns: int = number(0)
    bytes_per_second: float = number(0, above=True)
    pinned: bool = True

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class GpuProfile:
    """GPU lane. `expert_efficiency`, `dense_efficiency`: share of bytes_per_second reached while
    reading the weights of an expert or of a layer; `flops`: reached with many tokens;
    `*_launch_ns`: fixed time per expert or per layer; `reserved_bytes`: VRAM for context and
    scratch that no slot can use."""

    vram_bytes: int = number(0, above=True)
    reserved_bytes: int = number(0)
    bytes_per_second: float = number(0, above=True)
    expert_efficiency: float = number(0, 1, above=True)
    dense_efficiency: float = number(0, 1, above=True)
    flops: float = number(0, above=True)
    expert_launch_ns: int = number(0)
    layer_launch_ns: int = number(0)

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class CpuProfile:
    """CPU lane. `contention`: rate of CPU work while the link is busy, of 1024."""

    bytes_per_second: float = number(0, above=True)
    expert_fixed_ns: int = number(0)
    flops: float = number(0, above=True)
    contention: int = number(1, 1024)

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class HandoverProfile:
    """Fixed times of a layer: router, routing to the host, work to the CPU lane, result back."""

    router_ns: int = number(0)
    d2h_ns: int = number(0)
    dispatch_ns: int = number(0)
    return_ns: int = number(0)

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class DecisionTimes:
    """Time of one decision of the policy: at a layer's start, at its end, after a draft step."""

    layer_ns: int = number(0)
    leave_ns: int = number(0)
    draft_ns: int = number(0)

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class NeedsPrices:
    """Price of what a policy declares in `needs`: per layer, draft_tokens per draft step."""

    router_mass_ns: int = number(0)
    next_layer_1_ns: int = number(0)
    next_layer_2_ns: int = number(0)
    next_layer_3_ns: int = number(0)
    draft_tokens_ns: int = number(0)

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class HardwareProfile:
    """One machine. Rates in bytes or floating-point operations per second, times in ns.

    `measured`: calibrated times of one model, which count for that model instead of the rates.
    """

    name: str
    link: LinkProfile
    gpu: GpuProfile
    cpu: CpuProfile
    handover: HandoverProfile
    decision: DecisionTimes
    needs: NeedsPrices
    measured: MeasuredTimes | None = None


def hardware_profile(values: Mapping[str, Any], where: str = "hardware") -> HardwareProfile:
    """From a plain mapping; UserError names `where` (the file), key and number. `measured` may be
    left out, and be of a calibration that did not know `leave_share`.
    """
    measured = values.get("measured")
    if isinstance(measured, Mapping):
        measured = {"leave_share": 0, **measured}
    return read_profile(HardwareProfile, {**values, "measured": measured}, where)
