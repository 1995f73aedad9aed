"""Speculative decoding of one request at a time: draft, verify, commit, cut both caches back.

The loop that the windowed recorder and the offloading engine share. Plain decoding is the same loop
with gamma 0. Tree drafts and batches are not supported.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch

from policies.errors import UserError
from runtime.pass_listener import PassListener
from runtime.stopping import StopRule
from runtime.verify_rules import VerifyRule


class Target(Protocol):
    """What the loop needs of a target; `runtime.target_model.TargetModel` is one."""

    @property
    def length(self) -> int: ...
    def prefill(self, tokens: Sequence[int]) -> torch.Tensor: ...
    def forward(self, tokens: Sequence[int]) -> torch.Tensor: ...
    def cut(self, length: int) -> None: ...


class Draft(Protocol):
    """What the loop needs of a draft; `runtime.draft_model.DraftModel` is one.

    reach: how many of `gamma` tokens it can propose after the committed `text`, asked once a pass.
    """

    def prefill(self, tokens: Sequence[int]) -> object: ...
    def reach(self, text: Sequence[int], gamma: int) -> int: ...
    def next_logits(self, text: Sequence[int]) -> torch.Tensor: ...
    def forget_after(self, length: int) -> None: ...


class SpeculativeDecoder:
    """Generates texts with a target and an optional draft of at most `gamma_max` tokens per pass.

    Between passes the target's cache holds all committed tokens but the last; the draft's a prefix
    of them.
    """

    def __init__(
        self,
        target: Target,
        draft: Draft | None,
        rule: VerifyRule,
        gamma_max: int,
        listener: PassListener | None = None,
    ) -> None:
        if gamma_max < 0 or (gamma_max > 0 and draft is None):
            raise UserError(
                f"gamma={gamma_max} needs a draft and must not be negative; use gamma=0 without one"
            )
        self._target, self._draft, self._rule = target, draft, rule
        self._gamma_max = gamma_max
        self._listener = listener or PassListener()

    def generate(self, request: int, prompt: Sequence[int], stop: StopRule) -> Iterator[list[int]]:
        """Yield the newly committed tokens: one after the prompt, then those of each pass, until
        `stop` says so.
        """
        if not prompt:
            raise UserError(f"request {request}: the prompt is empty; give at least one token")
        listener = self._listener
        listener.start_request(request, prompt)
        logits = self._target.prefill(prompt)
        if self._draft is not None and self._gamma_max > 0:
            self._draft.prefill(prompt)
        first = self._rule.first(logits[-1], request, len(prompt))
        listener.after_prefill(prompt, first.token, first.margin)
        text = [*prompt, first.token]
        _, reason = stop.cut([], [first.token])
        yield [first.token]
        while reason is None:
            try:
                block = self._pass(request, text)
                kept, reason = stop.cut(text[len(prompt) :], block)
                self._commit(text, block, kept)
            except BaseException:
                self._rewind(len(text) - 1)
                raise
            # Accepted drafts behind the end of the text do not count, as in a replay of it.
            listener.end_pass(min(len(block) - 1, kept), block[:kept])
            yield block[:kept]
        listener.end_request(reason)

    def _pass(self, request: int, text: list[int]) -> list[int]:
        """Draft and verify after `text`; the tokens to commit. Leaves the caches too long."""
        listener, start = self._listener, len(text) - 1
        limit = self._gamma_max
        if self._draft is not None and limit > 0:
            limit = self._draft.reach(text, limit)
        gamma = listener.start_pass(text[-1], limit)
        if not 0 <= gamma <= limit:
            raise ValueError(f"a listener asked for gamma {gamma}, allowed is 0..{limit}")
        drafts: list[int] = []
        for step in range(gamma):
            assert self._draft is not None  # gamma_max is 0 without a draft
            logits = self._draft.next_logits([*text, *drafts])
            choice = self._rule.propose(logits, request, start + 1 + step)
            drafts.append(choice.token)
            listener.draft_step(step, choice.token, choice.margin)
        rows = [text[-1], *drafts]
        listener.before_verify(rows)
        verdict = self._rule.verify(self._target.forward(rows), drafts, request, start + 1)
        listener.after_verify(start, rows, verdict)
        return [*drafts[: verdict.accepted], verdict.following]

    def _commit(self, text: list[int], block: list[int], kept: int) -> None:
        """Append the first `kept` tokens and cut the caches to what they have read of the committed
        text.
        """
        text.extend(block[:kept])
        # The token after the accepted drafts was never read; a text that ends inside them was read
        # whole.
        self._rewind(len(text) - (kept == len(block)))

    def _rewind(self, length: int) -> None:
        self._target.cut(min(self._target.length, length))
        if self._draft is not None:
            self._draft.forget_after(length)
