"""Keyed Gumbel noise: g(seed, request, position) for every token of the vocabulary.

Target and draft add the same noise to their log-probabilities and take the best token. The choice
at a position then depends on the committed text alone, never on how many tokens were drafted, so
one recording can be replayed at any window. argmax(log p + g) is distributed as p (the Gumbel-max
rule).

The values come from a counter-based generator and from IEEE additions, multiplications and
divisions only, so that they are the same bits on every machine: math libraries differ in the last
bit of a logarithm.
"""

import numpy as np
import torch
from numpy.typing import NDArray

_LN2 = 0.6931471805599453
# log(m) = 2 s (1 + s^2/3 + s^4/5 + ...), s = (m - 1) / (m + 1), |s| <= 0.172: 11 terms reach 1e-17.
_SERIES = [1.0 / (2 * n + 1) for n in range(11)]


def keyed_noise(seed: int, request: int, position: int, vocabulary: int) -> NDArray[np.float32]:
    """Gumbel noise, float32 [vocabulary], for the token at `position` of the text of `request`."""
    uniform = _uniforms(seed, request, position, 0, vocabulary)
    return (-logarithm(-logarithm(uniform))).astype(np.float32)


def keyed_uniforms(seed: int, request: int, position: int, count: int) -> NDArray[np.float64]:
    """Uniform numbers in (0, 1), float64 [count]: a stream of its own, apart from the noise."""
    return _uniforms(seed, request, position, 1, count)


def _uniforms(
    seed: int, request: int, position: int, stream: int, count: int
) -> NDArray[np.float64]:
    # As uint64 arrays: numpy turns a list with a number above 2**63 into floats and rounds it.
    key = np.array([seed % 2**64, request], dtype=np.uint64)
    counter = np.array([0, position, stream, 0], dtype=np.uint64)  # the generator counts in word 0
    bits = np.random.Philox(key=key, counter=counter).random_raw(count) >> np.uint64(12)
    return (bits.astype(np.float64) + 0.5) * 2.0**-52  # strictly between 0 and 1, exact


def logarithm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Natural logarithm of positive float64 numbers, the same bits on every machine."""
    mantissa, exponent = np.frexp(values)
    small = mantissa < 0.7071067811865476
    mantissa = np.where(small, mantissa * 2.0, mantissa)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    total = np.full_like(square, _SERIES[-1])
    for coefficient in reversed(_SERIES[:-1]):
        total *= square
        total += coefficient
    return 2.0 * ratio * total + (exponent - small) * _LN2


class NoiseRows:
    """The noise of consecutive positions of one request on a device; recent positions are kept.

    A dense recording asks for each position once per window row, so keeping them saves most of the
    work.
    """

    def __init__(self, seed: int, vocabulary: int, device: torch.device, kept: int = 64) -> None:
        self._seed, self._vocabulary, self._device, self._kept = seed, vocabulary, device, kept
        self._rows: dict[tuple[int, int], torch.Tensor] = {}

    def rows(self, request: int, first: int, count: int) -> torch.Tensor:
        """Noise float32 [count, vocabulary] of positions first, first + 1, ..."""
        return torch.stack([self._row(request, first + offset) for offset in range(count)])

    def _row(self, request: int, position: int) -> torch.Tensor:
        key = (request, position)
        if key not in self._rows:
            if len(self._rows) >= self._kept:
                del self._rows[next(iter(self._rows))]  # dicts keep insertion order: the oldest
            noise = keyed_noise(self._seed, request, position, self._vocabulary)
            self._rows[key] = torch.from_numpy(noise).to(self._device)
        return self._rows[key]
