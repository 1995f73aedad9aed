"""What number formats change: logits and routing of a target on given texts, against float32."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from runtime.checkpoints import open_target, torch_dtype
from runtime.expert_layout import INT8, SAME, layout_of
from runtime.resident_target import open_resident_target
from runtime.routing_capture import RoutingCapture
from runtime.standin import StandIn

REFERENCE = ("float32", SAME)
FORMATS = (("float32", INT8), ("bfloat16", SAME), ("bfloat16", INT8))  # dtype, experts


@dataclass(frozen=True)
class FormatError:
    """Over all rows of all texts. logit_error, logit_error_max: absolute, mean and largest; spread:
    standard deviation of the reference's logits within a row; divergence: mean Kullback-Leibler,
    nats; same_token: share of rows whose most probable token is the same; same_experts: share of
    (row, layer) with the same set of experts.
    """

    dtype: str
    experts: str
    expert_bytes: int
    rows: int
    logit_error: float
    logit_error_max: float
    spread: float
    divergence: float
    same_token: float
    same_experts: float


@dataclass(frozen=True)
class _Seen:
    logits: torch.Tensor
    experts: np.ndarray


def format_errors(
    path: str | Path,
    texts: Sequence[Sequence[int]],
    progress: Callable[[str], None] = lambda word: None,
) -> list[FormatError]:
    """One for each of FORMATS; the texts are read, not generated."""
    reference = _read(path, texts, *REFERENCE)
    progress("float32")
    errors = []
    for dtype, experts in FORMATS:
        seen = _read(path, texts, dtype, experts)
        errors.append(_compared(path, dtype, experts, reference, seen))
        progress(f"{dtype}, experts {experts}")
    return errors


def _read(path: str | Path, texts: Sequence[Sequence[int]], dtype: str, experts: str) -> _Seen:
    device = StandIn({})
    try:
        target = open_resident_target(path, device, dtype, experts)
        logits, chosen = [], []
        with RoutingCapture(target.routers, rule=target.facts.routing) as capture:
            for text in texts:
                logits.append(target.prefill(text, keep=len(text)))
                chosen.append(np.sort(capture.take().experts))
    finally:
        device.close()
    return _Seen(torch.cat(logits), np.concatenate(chosen))


def _compared(
    path: str | Path, dtype: str, experts: str, reference: _Seen, seen: _Seen
) -> FormatError:
    error = (seen.logits - reference.logits).abs()
    ours, theirs = (torch.log_softmax(one.logits.double(), -1) for one in (seen, reference))
    layout = layout_of(open_target(path), torch_dtype(dtype), experts)
    return FormatError(
        dtype=dtype,
        experts=experts,
        expert_bytes=layout.expert_bytes,
        rows=len(error),
        logit_error=float(error.mean()),
        logit_error_max=float(error.max()),
        spread=float(reference.logits.std(dim=-1).mean()),
        divergence=float((theirs.exp() * (theirs - ours)).sum(-1).mean()),
        same_token=float((ours.argmax(-1) == theirs.argmax(-1)).double().mean()),
        same_experts=float((seen.experts == reference.experts).all(-1).mean()),
    )
