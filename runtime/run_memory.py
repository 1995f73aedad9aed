"""The memory plan of a run, from the headers of its checkpoints: nothing is loaded for it."""

import math
from pathlib import Path

import torch

from runtime.checkpoints import CheckpointFacts, open_draft, torch_dtype
from runtime.engine_settings import EngineSettings
from runtime.expert_layout import layout_of
from runtime.memory_plan import MemoryPlan, plan_memory
from runtime.ngram_draft import NGRAM
from runtime.weight_files import stored_tensors


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


def weight_bytes(facts: CheckpointFacts, dtype: torch.dtype) -> int:
    """Bytes in `dtype` of all weights but routed experts."""
    family = facts.family
    total = 0
    for name, stored in stored_tensors(facts.path).items():
        if family is None or not family.names.is_expert(name):
            used = dtype if family is None else family.dtype_of(name, dtype)
            total += math.prod(stored.shape) * used.itemsize
    return total
