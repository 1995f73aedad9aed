"""Named compositions of parts, one literature system or bound per file."""

from collections.abc import Callable

from policies.composed import ComposedPolicy
from policies.zoo.all_cpu import all_cpu
from policies.zoo.belady import belady
from policies.zoo.binary_prefetch import binary_prefetch
from policies.zoo.lru_cpu import lru_cpu
from policies.zoo.lru_fetch import lru_fetch
from policies.zoo.spac import spac
from policies.zoo.static_hot import static_hot
from policies.zoo.window_oracle import window_oracle

ZOO: dict[str, Callable[..., ComposedPolicy]] = {
    "all_cpu": all_cpu,
    "static_hot": static_hot,
    "lru_fetch": lru_fetch,
    "lru_cpu": lru_cpu,
    "binary_prefetch": binary_prefetch,
    "spac": spac,
    "belady": belady,
    "window_oracle": window_oracle,
}
