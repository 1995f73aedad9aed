"""Ones in a word, by the one instruction that processors have for it; numba has no name for it."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic


@intrinsic
def count_ones(context: Any, word: Any) -> Any:
    """Number of ones in a uint64, as uint64; to be called from kernels only."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate
