"""What a speculative decoder tells its surroundings: the recorder and the offloading engine listen
here.
"""

from collections.abc import Sequence

from runtime.stopping import StopReason
from runtime.verify_rules import Verdict


class PassListener:
    """All methods do nothing; override what you need. Calls of one request come in the order
    written here.

    An exception raised by a listener ends the request with both caches cut to the committed text.
    """

    def start_request(self, request: int, prompt: Sequence[int]) -> None:
        """Before the target reads `prompt`."""

    def after_prefill(self, prompt: Sequence[int], token: int, margin: float) -> None:
        """The target has read the prompt and chosen the first new token."""

    def start_pass(self, last_token: int, gamma_max: int) -> int:
        """How many tokens to draft, 0..gamma_max. `last_token` is committed and not yet in the
        target's cache.
        """
        return gamma_max

    def draft_step(self, step: int, token: int, margin: float) -> None:
        """The draft has proposed its token number `step`, counted from 0."""

    def before_verify(self, rows: Sequence[int]) -> None:
        """The target is about to read `rows`: the last committed token and the drafts."""

    def after_verify(self, start: int, rows: Sequence[int], verdict: Verdict) -> None:
        """The target has read `rows`, the first of which stands at place `start` of the text."""

    def end_pass(self, accepted: int, committed: Sequence[int]) -> None:
        """`accepted` drafts passed; `committed` tokens were added, fewer than accepted + 1 where
        the text ended.
        """

    def end_request(self, reason: StopReason) -> None:
        """The text has ended."""
