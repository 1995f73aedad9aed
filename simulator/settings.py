"""SimulationSettings: how a run is played; RunLabels: names for run.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from policies.errors import UserError
from traces.manifest import ModelInfo


@dataclass(frozen=True)
class SimulationSettings:
    """`gamma`: largest window a policy may choose; `staging`: buffers for STREAM, VRAM besides
    `slots`.

    launch "early": residents start when the router is done; "late": when the plan is there.
    lanes "serial": GPU experts wait for the CPU lane, as the published code of MoE-SpAc runs.
    `warmup_requests`: the first so many requests are marked as warm-up. `cold_start`: every request
    begins with empty slots and a fresh policy. `requests`: play only the first so many.
    """

    gamma: int
    slots: int
    staging: int = 4
    launch: Literal["early", "late"] = "late"
    lanes: Literal["concurrent", "serial"] = "concurrent"
    warmup_requests: int = 1
    cold_start: bool = False
    requests: int | None = None

    def __post_init__(self) -> None:
        for key, least in (("gamma", 0), ("slots", 1), ("staging", 0), ("warmup_requests", 0)):
            if getattr(self, key) < least:
                raise UserError(f"{key}={getattr(self, key)}: must be at least {least}")
        if self.requests is not None and self.requests < 1:
            raise UserError(f"requests={self.requests}: must be at least 1, or none for all")
        for key, choices in (("launch", ("early", "late")), ("lanes", ("concurrent", "serial"))):
            if getattr(self, key) not in choices:
                raise UserError(f"{key}={getattr(self, key)}: must be {' or '.join(choices)}")


@dataclass(frozen=True)
class RunLabels:
    """`model`: name of the model whose bytes and costs are in the cost table, None for the recorded
    one; the others go to run.json as they are."""

    hardware: str = ""
    trace: str = ""
    trace_digest: str = ""
    model: str | None = None
    decision_source: str = "hardware profile"
    notes: dict[str, str] = field(default_factory=dict)


def run_notes(settings: SimulationSettings, labels: RunLabels, model: ModelInfo) -> dict[str, str]:
    """What run.json says about the settings, as text."""
    notes = {
        "gamma": str(settings.gamma),
        "launch": settings.launch,
        "lanes": settings.lanes,
        "warmup_requests": str(settings.warmup_requests),
        "cold_start": str(settings.cold_start).lower(),
        "recorded_model": f"{model.name}, {model.layers} layers",
    }
    return notes | labels.notes
