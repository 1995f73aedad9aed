"""Size of a generated text, and what was asked of it beside what came out."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.text_rows import TextRows

MOST_CHOICES = 2**30  # of an expert or not, in all: they are drawn in arrays of up to 8 bytes each


@dataclass(frozen=True)
class TextShape:
    """`requests` texts of `tokens` rows each, one after the other."""

    layers: int = 8
    experts: int = 64
    top_k: int = 4
    requests: int = 4
    tokens: int = 512

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 1:
                raise UserError(f"{one.name}={getattr(self, one.name)}, must be at least 1")
        if self.top_k > self.experts:
            raise UserError(f"top_k={self.top_k} of experts={self.experts}")
        if self.experts > 0xFFFF:
            raise UserError(f"experts={self.experts}, at most 65535 fit")
        choices = self.rows * self.layers * self.experts
        if choices > MOST_CHOICES:
            raise UserError(
                f"requests={self.requests} texts of tokens={self.tokens} in layers={self.layers} "
                f"of experts={self.experts} are {choices:,} choices to draw, {MOST_CHOICES:,} "
                "fit in memory; lower one of them"
            )

    @property
    def rows(self) -> int:
        """Rows of all requests."""
        return self.requests * self.tokens

    @property
    def request(self) -> NDArray[np.int64]:
        """int64 [rows]: the request of each row."""
        return np.repeat(np.arange(self.requests), self.tokens)


@dataclass(frozen=True)
class Drawn:
    """A shape with the experts drawn for it, uint16 [rows, L, K]."""

    shape: TextShape
    experts: NDArray[np.uint16]

    @property
    def text(self) -> TextRows:
        """As the functions of `traces.locality` take it."""
        request = self.shape.request.astype(np.int32)
        return TextRows(request, np.zeros_like(request), self.experts)


@dataclass(frozen=True)
class Statistic:
    """`asked` is the expected value under the parameters, `measured` that of the rows drawn."""

    name: str
    asked: float
    measured: float


def probability(name: str, value: float) -> None:
    """UserError unless 0 <= value <= 1."""
    if not 0 <= value <= 1:
        raise UserError(f"{name}={value}, must be between 0 and 1")
