"""Top-k and top-p: which tokens may be chosen at all, the same for target and draft."""

from dataclasses import dataclass

import torch

from policies.errors import UserError

FORBIDDEN = -float("inf")


@dataclass(frozen=True)
class Truncation:
    """top_k: only the k most probable tokens. top_p: of these the fewest, most probable first,
    whose probabilities add up to p. None: no limit. Of equally probable tokens the lower ids stay.

    Order and rules as in transformers: temperature, then top-k, then top-p on what is left.
    """

    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if self.top_k is not None and self.top_k < 1:
            raise UserError(
                f"sampling.top_k={self.top_k} must be at least 1; null keeps all tokens"
            )
        if self.top_p is not None and not 0.0 < self.top_p <= 1.0:
            raise UserError(f"sampling.top_p={self.top_p} must be above 0 and at most 1")

    @property
    def limits(self) -> dict[str, str]:
        """The limits that are set, for notes of traces and run logs."""
        given = {"top_k": self.top_k, "top_p": self.top_p}
        return {key: str(value) for key, value in given.items() if value is not None}

    def apply(self, logits: torch.Tensor, temperature: float) -> torch.Tensor:
        """Logits [..., vocabulary] with -inf for the tokens that may not be chosen; a new tensor
        unless there is no limit.
        """
        if not self.limits:
            return logits
        ordered, ids = torch.sort(logits, dim=-1, descending=True, stable=True)
        places = torch.arange(logits.shape[-1], device=logits.device)
        kept = places < (logits.shape[-1] if self.top_k is None else self.top_k)
        if self.top_p is not None:
            scaled = (ordered.double() / temperature).masked_fill(~kept, FORBIDDEN)
            share = torch.softmax(scaled, dim=-1)
            # A token stays if those before it do not reach p yet; the first always does.
            kept = kept & (share.cumsum(dim=-1) - share < self.top_p)
        masked = ordered.masked_fill(~kept, FORBIDDEN)
        return torch.empty_like(logits).scatter_(-1, ids, masked)


ALL_TOKENS = Truncation()
