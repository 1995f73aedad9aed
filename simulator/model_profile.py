"""ModelProfile: sizes of a target, from conf/model/*.yaml, completed from the trace at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policies.errors import UserError
from simulator.profiles import check_numbers, number, read_profile
from traces.manifest import ModelInfo

TRACE_DTYPE = "trace"


@dataclass(frozen=True)
class ModelProfile:
    """A mixture-of-experts target. An expert is three matrices of hidden x expert_width.

    `dtype`: the one used unless told otherwise; `expert_bytes`: of one routed expert, by dtype;
    `layer_bytes`: what one MoE layer reads besides routed experts (attention, norms, router, shared
    experts); `pass_bytes`: what one pass reads once (output head, layers without routed experts);
    `embedding_bytes`: held in VRAM, barely read (0 if tied to the head); `dense_parameter_bytes`:
    of one parameter outside routed experts; `kv_bytes_per_token`: over all layers.
    """

    name: str
    dtype: str
    expert_bytes: dict[str, int]
    layers: int = number(1)
    moe_layers: int = number(1)
    experts: int = number(1, 65535)
    top_k: int = number(1)
    hidden: int = number(1)
    expert_width: int = number(1)
    layer_bytes: int = number(0)
    pass_bytes: int = number(0)
    embedding_bytes: int = number(0)
    dense_parameter_bytes: int = number(1)
    kv_bytes_per_token: int = number(0)

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.moe_layers > self.layers:
            raise UserError(f"moe_layers: {self.moe_layers} of {self.layers} layers")
        if self.top_k > self.experts:
            raise UserError(f"top_k: {self.top_k} of {self.experts} experts")
        for dtype, size in self.expert_bytes.items():
            if size < 1:
                raise UserError(f"expert_bytes.{dtype}: {size} bytes, must be at least 1")
        self.bytes_of_expert(self.dtype)

    @property
    def dense_bytes(self) -> int:
        """VRAM of everything but routed experts and KV."""
        return self.moe_layers * self.layer_bytes + self.pass_bytes + self.embedding_bytes

    def bytes_of_expert(self, dtype: str | None = None) -> int:
        """Bytes of one routed expert; UserError for a dtype that the profile does not know."""
        chosen = self.dtype if dtype is None else dtype
        if chosen not in self.expert_bytes:
            known = ", ".join(self.expert_bytes)
            raise UserError(f"model {self.name}: dtype {chosen!r} is unknown, there are {known}")
        return self.expert_bytes[chosen]


def model_profile(
    values: Mapping[str, Any], where: str = "model", trace: ModelInfo | None = None
) -> ModelProfile:
    """From a plain mapping. Null entries (layers, moe_layers, experts, top_k, expert_bytes) are
    taken from `trace`. UserError names `where` (the file), key and number."""
    missing = [key for key, value in values.items() if value is None]
    if missing and trace is None:
        raise UserError(f"{where}: {missing[0]} is null, so it needs a trace to take it from")
    filled = dict(values)
    if trace is not None:
        known = {
            "layers": trace.layers,
            "moe_layers": trace.layers,
            "experts": trace.experts,
            "top_k": trace.top_k,
            "expert_bytes": {TRACE_DTYPE: trace.expert_bytes},
        }
        filled.update({key: known[key] for key in missing if key in known})
    return read_profile(ModelProfile, filled, where)
