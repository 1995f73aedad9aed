"""What the sections of the check share: device, model, trace, costs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import yaml

from experiments.commands import CONF
from experiments.model_shapes import shape_of
from policies.costs import CostTable
from policies.zoo.all_cpu import all_cpu
from policies.zoo.lru_cpu import lru_cpu
from policies.zoo.lru_fetch import lru_fetch
from policies.zoo.ours import ours
from policies.zoo.spac import spac
from runtime.device import Device
from runtime.devices import CUDA, STANDIN, device_kind, open_device
from runtime.engine_settings import EngineSettings
from runtime.hazards import HazardChecker
from runtime.model_shape import ModelShape
from runtime.random_model import RandomModel, random_model
from runtime.standin_link import Link
from simulator.cost_tables import cost_table
from simulator.draft_profile import DraftProfile, draft_profile
from simulator.hardware import HardwareProfile, hardware_profile
from simulator.model_profile import ModelProfile, model_profile
from traces.mapped_replay import MappedReplay
from traces.reader import open_trace
from traces.replay import Replay, open_replay

POLICIES: Mapping[str, Callable[[], Any]] = {
    "all_cpu": all_cpu,
    "lru_cpu": lru_cpu,
    "lru_fetch": lru_fetch,
    "spac": spac,
    "ours": ours,
}
ROWS = 64
DISTINCT = 12  # layers with weights of their own: 13.5 GiB, larger than any cache
CACHE_RATIO = 0.17
PROFILES = {CUDA: "rtx4090", STANDIN: "standin"}
SMALL_MODEL = {
    "name": "small", "dtype": "fp32", "layers": 2, "moe_layers": 2, "experts": 64, "top_k": 4,
    "hidden": 32, "expert_width": 16, "expert_bytes": {"fp32": 6144}, "layer_bytes": 24_000,
    "pass_bytes": 3200, "embedding_bytes": 0, "dense_parameter_bytes": 4, "kv_bytes_per_token": 128,
}  # fmt: skip
SMALL_DRAFT = {
    "name": "small",
    "bytes": 400,
    "step_bytes": 400,
    "layers": 1,
    "kv_bytes_per_token": 8,
}


@dataclass(frozen=True)
class Setup:
    """`device`: its name; `small`: sizes for the tests of the check itself."""

    device: str
    small: bool

    @property
    def on_gpu(self) -> bool:
        """False on the stand-in."""
        return device_kind(self.device)[0] == CUDA

    @property
    def dtype(self) -> torch.dtype:
        """Of experts and dense parts."""
        return torch.float32 if self.small else torch.bfloat16

    @property
    def gamma(self) -> int:
        """Drafted tokens per pass."""
        return 2 if self.small else 4

    @cached_property
    def hardware(self) -> HardwareProfile:
        """For the costs that policies know before anything was measured."""
        return hardware_profile(_conf("hardware", PROFILES[device_kind(self.device)[0]]))

    @cached_property
    def model(self) -> ModelProfile:
        """Qwen3-30B-A3B, or a tiny one."""
        return model_profile(SMALL_MODEL if self.small else _conf("model", "qwen3-30b-a3b"))

    @cached_property
    def draft(self) -> DraftProfile:
        """The draft whose time is charged."""
        return draft_profile(SMALL_DRAFT if self.small else _conf("draft", "qwen3-0.6b"))

    @property
    def shape(self) -> ModelShape:
        """Of the random model."""
        return shape_of(self.model, self.draft, 1 if self.small else DISTINCT)

    @property
    def slots(self) -> int:
        """As many as the cache ratio gives."""
        return int(CACHE_RATIO * self.model.moe_layers * self.model.experts)

    def settings(self, **changes: Any) -> EngineSettings:
        """Of an engine with forced routing."""
        name = str(self.dtype).removeprefix("torch.")
        given = {"slots": self.slots, "staging": 2, "gamma": self.gamma, "dtype": name}
        return EngineSettings(**(given | changes))

    def costs(self) -> CostTable:
        """From the profile, not from this machine."""
        return cost_table(self.hardware, self.model, self.draft, ROWS)

    def open(self, early: bool = False, checker: HazardChecker | None = None) -> Device:
        """A new device."""
        link = self.hardware.link
        rate = 1e9 if self.small else link.bytes_per_second
        return open_device(self.device, Link(rate, link.latency_ns), checker, early)

    def random_model(self, device: Device) -> RandomModel:
        """The model on `device`."""
        return random_model(self.shape, self.dtype, device, self.slots, staging=2)

    def replay(self, workload: str, requests: int) -> Replay:
        """A bundled trace with the model's shape."""
        path = Path(__file__).parents[2] / "traces" / "data" / workload
        return MappedReplay(open_replay(open_trace(path)), self.shape.info(self.dtype), requests)


def _conf(group: str, name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((CONF / group / f"{name}.yaml").read_text("utf-8"))
    return values
