"""What fits the card: the largest cache ratio, and whether anything must be offloaded at all."""

from dataclasses import dataclass

from experiments.machine import NO_DRAFT, Machine
from simulator.capacity import slots_from_vram
from simulator.model_profile import ModelProfile

# Bytes of an expert in Q4_K_M files of Qwen3-30B-A3B, smallest and largest reported.
Q4_K_M = (2_860_000, 3_060_000)
STAGING = 4


@dataclass(frozen=True)
class Memory:
    """GB, except ratios. `largest_ratio`: of fp16 experts beside draft and KV; `..._no_draft`: the
    same without a draft. `q4_model`: experts of a Q4_K_M file (the larger size), dense part in fp16
    and KV, `card`: VRAM less what is reserved."""

    largest_ratio: float
    largest_ratio_no_draft: float
    draft: float
    whole_fp16: float
    q4_model: float
    card: float
    missing_at_paper_ratio: float

    @property
    def q4_fits(self) -> bool:
        """True if nothing need be offloaded in Q4_K_M without a draft."""
        return self.q4_model <= self.card


def memory_of(machine: Machine, model: ModelProfile, paper_ratio: float) -> Memory:
    """The capacity model's answers. `missing_at_paper_ratio`: VRAM that something not in the model
    must take if `paper_ratio` is where the card was full."""
    experts, size = model.moe_layers * model.experts, model.bytes_of_expert()
    hardware, context = machine.hardware, machine.context
    slots = slots_from_vram(hardware, model, machine.draft, context, STAGING)
    without = slots_from_vram(hardware, model, NO_DRAFT, context, STAGING)
    kv = context * model.kv_bytes_per_token
    return Memory(
        largest_ratio=slots / experts,
        largest_ratio_no_draft=without / experts,
        draft=(machine.draft.bytes + context * machine.draft.kv_bytes_per_token) / 1e9,
        whole_fp16=(experts * size + model.dense_bytes) / 1e9,
        q4_model=(experts * Q4_K_M[1] + model.dense_bytes + kv) / 1e9,
        card=(hardware.gpu.vram_bytes - hardware.gpu.reserved_bytes) / 1e9,
        missing_at_paper_ratio=(slots - paper_ratio * experts) * size / 1e9,
    )
