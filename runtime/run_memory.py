"""The memory plan of a run, from the headers of its checkpoints: nothing is loaded for it."""

import math
from collections.abc import Mapping
from pathlib import Path

import torch

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts, open_draft, torch_dtype
from runtime.engine_settings import EngineSettings
from runtime.expert_layout import layout_of
from runtime.memory_plan import MemoryPlan, plan_memory
from runtime.ngram_draft import NGRAM
from runtime.weight_files import stored_tensors
from traces.size_text import size_text


def plan_run(
    facts: CheckpointFacts, draft: str | Path | None, settings: EngineSettings
) -> MemoryPlan:
    """What an engine with these checkpoints and settings will take."""
    dtype = torch_dtype(settings.dtype)
    proposer = None if draft is None or draft == NGRAM else open_draft(draft)
    elements = facts.kv_elements + (0 if proposer is None else proposer.kv_elements)
    return plan_memory(
        layout_of(facts, dtype, settings.experts),
        settings.slots,
        settings.staging,
        dense=weight_bytes(facts, dtype),
        draft=0 if proposer is None else weight_bytes(proposer, dtype),
        kv_token_bytes=elements * dtype.itemsize,
        context=settings.planned_context(facts.max_positions),
    )


def positions_of(target: CheckpointFacts, draft: str | Path | None) -> int:
    """Tokens that target and draft can both read."""
    if draft is None or draft == NGRAM:
        return target.max_positions
    return min(target.max_positions, open_draft(draft).max_positions)


def weight_bytes(facts: CheckpointFacts, dtype: torch.dtype, experts: bool = False) -> int:
    """Bytes in `dtype` of all weights; without `experts` of those that are no routed experts."""
    family = facts.family
    total = 0
    for name, stored in stored_tensors(facts.path).items():
        if experts or family is None or not family.names.is_expert(name):
            used = dtype if family is None else family.dtype_of(name, dtype)
            total += math.prod(stored.shape) * used.itemsize
    return total


def check_resident(models: Mapping[str, CheckpointFacts], dtype: str, available: int) -> None:
    """UserError if `models` (role -> checkpoint), experts included, do not fit `available` bytes of
    host memory: recording keeps them whole.
    """
    number_format = torch_dtype(dtype)
    sizes = {role: weight_bytes(one, number_format, True) for role, one in models.items()}
    if sum(sizes.values()) > available:
        parts = " + ".join(f"{role} {size_text(size)}" for role, size in sizes.items())
        remedy = "use dtype=bfloat16, a smaller model, or close other programs"
        raise UserError(
            f"{parts} in {dtype} do not fit the {size_text(available)} of host memory that are "
            f"available, and recording keeps whole models in memory; {remedy}"
        )
