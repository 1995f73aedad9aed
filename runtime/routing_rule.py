"""Which experts a router chooses, given its logits, and how close the choice was."""

from dataclasses import dataclass

import torch

NO_RIVAL = float("inf")


@dataclass(frozen=True)
class RoutingRule:
    """The top-k of all experts, or of the best `kept` of `groups` groups of neighbouring experts,
    a group being as good as its best expert (DeepSeek-V2's group-limited routing).

    Any router whose scores rise with its logits chooses so, whatever it makes of the weights.
    """

    groups: int = 1
    kept: int = 1

    def choose(self, logits: torch.Tensor, top_k: int) -> torch.Tensor:
        """logits [..., experts] -> experts int64 [..., top_k], best first."""
        return torch.topk(self._allowed(logits), top_k, dim=-1).indices

    def margins(self, logits: torch.Tensor, top_k: int) -> torch.Tensor:
        """logits [..., experts] -> [...]: how far apart logits must come to meet for another
        choice; infinite if there is none. With groups a lower bound: another group can be kept
        without another expert being chosen.
        """
        margin = _gap(self._allowed(logits), top_k)
        if self.kept == self.groups:
            return margin
        return torch.minimum(margin, _gap(self._group_best(logits), self.kept))

    def _allowed(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits, minus infinity in groups that are left out."""
        if self.kept == self.groups:
            return logits
        best = torch.topk(self._group_best(logits), self.kept, dim=-1).indices
        left_out = torch.ones_like(self._group_best(logits), dtype=torch.bool)
        left_out.scatter_(-1, best, False)
        size = logits.shape[-1] // self.groups
        return logits.masked_fill(left_out.repeat_interleave(size, dim=-1), -torch.inf)

    def _group_best(self, logits: torch.Tensor) -> torch.Tensor:
        return logits.unflatten(-1, (self.groups, -1)).amax(dim=-1)


TOP_K = RoutingRule()


def _gap(values: torch.Tensor, chosen: int) -> torch.Tensor:
    """The last one chosen minus the first one left out."""
    if values.shape[-1] == chosen:
        return torch.full(values.shape[:-1], NO_RIVAL)
    best = torch.topk(values, chosen + 1, dim=-1).values
    return best[..., -2] - best[..., -1]
