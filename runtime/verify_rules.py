"""How tokens are chosen: one rule object serves draft and target in a pass.

`KeyedRule` covers greedy decoding (no noise) and keyed noise; `RejectionRule` is ordinary rejection
sampling, whose outcome depends on the window and so cannot be replayed at another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from policies.errors import UserError
from runtime.acceptance import accepted_prefix, distribution, draw, reject
from runtime.keyed_noise import NoiseRows, keyed_uniforms
from runtime.truncation import ALL_TOKENS, Truncation
from traces.manifest import SamplingInfo

UNDECIDED = -1


@dataclass(frozen=True)
class Choice:
    """A token and by how much it beat the runner-up, in log-probability plus noise."""

    token: int
    margin: float


@dataclass(frozen=True)
class Verdict:
    """Outcome of one verify window.

    accepted: drafts accepted; following: the token after them; choices [gamma + 1]: the target's
    choice per row, UNDECIDED where rejection sampling never decided; margins [gamma + 1]: see
    Choice, infinite if undefined.
    """

    accepted: int
    following: int
    choices: tuple[int, ...]
    margins: tuple[float, ...]


class VerifyRule(Protocol):
    """`position` is the place in the text of the (first) token to choose."""

    def first(self, logits: torch.Tensor, request: int, position: int) -> Choice:
        """The target's token after the prompt; logits [vocabulary]."""

    def propose(self, logits: torch.Tensor, request: int, position: int) -> Choice:
        """The draft's token; logits [vocabulary] of the draft."""

    def verify(
        self, logits: torch.Tensor, drafts: Sequence[int], request: int, position: int
    ) -> Verdict:
        """Judge `drafts`, proposed in this order since the last verify; logits [gamma + 1,
        vocabulary].
        """


class KeyedRule:
    """Take the best of logits / temperature + keyed noise; accept a draft that equals the target's
    choice. A truncation leaves fewer tokens to choose from, for both alike.

    Without noise (greedy) temperature and truncation do not matter. log_softmax would shift all
    scores of a row alike.
    """

    def __init__(
        self, temperature: float, noise: NoiseRows | None, truncation: Truncation = ALL_TOKENS
    ) -> None:
        self._temperature, self._noise, self._truncation = temperature, noise, truncation

    def choose(
        self, logits: torch.Tensor, request: int, position: int
    ) -> tuple[list[int], list[float]]:
        """Tokens and margins for rows of logits [n, vocabulary], the first row choosing for
        `position`.
        """
        scores = logits
        if self._noise is not None:
            noise = self._noise.rows(request, position, len(logits))
            allowed = self._truncation.apply(logits, self._temperature)
            scores = allowed / self._temperature + noise
        best = torch.topk(scores, 2, dim=-1)
        return best.indices[:, 0].tolist(), (best.values[:, 0] - best.values[:, 1]).tolist()

    def first(self, logits: torch.Tensor, request: int, position: int) -> Choice:
        tokens, margins = self.choose(logits[None], request, position)
        return Choice(tokens[0], margins[0])

    def propose(self, logits: torch.Tensor, request: int, position: int) -> Choice:
        return self.first(logits, request, position)

    def verify(
        self, logits: torch.Tensor, drafts: Sequence[int], request: int, position: int
    ) -> Verdict:
        choices, margins = self.choose(logits, request, position)
        accepted = accepted_prefix(drafts, choices)
        return Verdict(accepted, choices[accepted], tuple(choices), tuple(margins))


class RejectionRule:
    """Rejection sampling at a temperature; the uniform numbers are keyed by seed, request and
    position. p and q are those left by the truncation.
    """

    def __init__(self, temperature: float, seed: int, truncation: Truncation = ALL_TOKENS) -> None:
        self._temperature, self._seed, self._truncation = temperature, seed, truncation
        self._proposed_from: list[np.ndarray] = []

    def first(self, logits: torch.Tensor, request: int, position: int) -> Choice:
        self._proposed_from.clear()
        return Choice(self._draw(self._distribution(logits), request, position, 0), float("inf"))

    def propose(self, logits: torch.Tensor, request: int, position: int) -> Choice:
        q = self._distribution(logits)
        self._proposed_from.append(q)
        return Choice(self._draw(q, request, position, 1), float("inf"))

    def verify(
        self, logits: torch.Tensor, drafts: Sequence[int], request: int, position: int
    ) -> Verdict:
        q, self._proposed_from = self._proposed_from[-len(drafts) :] if drafts else [], []
        places = range(position, position + len(drafts))
        uniforms = [keyed_uniforms(self._seed, request, place, 4)[2] for place in places]
        uniforms.append(keyed_uniforms(self._seed, request, position, 4)[3])
        accepted, following = reject(self._distribution(logits), q, drafts, np.array(uniforms))
        choices = (*drafts[:accepted], following, *[UNDECIDED] * (len(drafts) - accepted))
        return Verdict(accepted, following, choices, (float("inf"),) * len(choices))

    def _distribution(self, logits: torch.Tensor) -> np.ndarray:
        allowed = self._truncation.apply(logits, self._temperature)
        return distribution(allowed.cpu().numpy(), self._temperature)

    def _draw(self, p: np.ndarray, request: int, position: int, purpose: int) -> int:
        return draw(p, float(keyed_uniforms(self._seed, request, position, 4)[purpose]))


def make_rule(
    sampling: SamplingInfo,
    vocabulary: int,
    device: torch.device,
    truncation: Truncation = ALL_TOKENS,
) -> VerifyRule:
    """The rule for a sampling mode; UserError for an unknown mode or an impossible temperature."""
    if sampling.mode == "greedy" and truncation.limits:
        raise UserError("sampling.top_k and sampling.top_p do nothing with sampling.mode=greedy")
    if sampling.mode == "greedy":
        return KeyedRule(1.0, None)
    if sampling.mode not in ("keyed", "rejection"):
        raise UserError(f"sampling.mode={sampling.mode} is unknown; use greedy, keyed or rejection")
    if not 0.0 < sampling.temperature < float("inf"):
        raise UserError(
            f"sampling.temperature={sampling.temperature} must be above 0; "
            "for no randomness use sampling.mode=greedy"
        )
    if sampling.mode == "keyed":
        noise = NoiseRows(sampling.seed, vocabulary, device)
        return KeyedRule(sampling.temperature, noise, truncation)
    return RejectionRule(sampling.temperature, sampling.seed, truncation)
