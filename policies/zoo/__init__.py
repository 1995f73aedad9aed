"""Named compositions of parts, one literature system or bound per file."""

from collections.abc import Callable

from policies.composed import ComposedPolicy
from policies.zoo.adapmoe import adapmoe
from policies.zoo.all_cpu import all_cpu
from policies.zoo.belady import belady
from policies.zoo.binary_prefetch import binary_prefetch
from policies.zoo.dali import dali, dali_exact
from policies.zoo.fate import fate
from policies.zoo.fiddler import fiddler
from policies.zoo.foresight import foresight
from policies.zoo.freetoken import freetoken
from policies.zoo.hybrimoe import hybrimoe
from policies.zoo.ktransformers import ktransformers
from policies.zoo.least_stale import least_stale
from policies.zoo.lfru_cpu import lfru_cpu
from policies.zoo.lfu_cpu import lfu_cpu
from policies.zoo.lru_cpu import lru_cpu
from policies.zoo.lru_fetch import lru_fetch
from policies.zoo.mixtral_offloading import mixtral_offloading
from policies.zoo.moe_infinity import moe_infinity
from policies.zoo.moe_speq_standin import moe_speq_standin
from policies.zoo.n_cpu_moe import n_cpu_moe, n_cpu_moe_plain
from policies.zoo.no_speculation import lru_cpu_no_speculation, spac_no_speculation
from policies.zoo.ours import ours
from policies.zoo.promoe_standin import promoe_standin
from policies.zoo.sp_moe_standin import sp_moe_standin
from policies.zoo.spac import spac
from policies.zoo.spac_ablations import (
    spac_no_async,
    spac_no_balancer,
    spac_no_calibration,
    spac_no_inertia,
)
from policies.zoo.spac_code import spac_code
from policies.zoo.static_hot import static_hot
from policies.zoo.stream_active import stream_active
from policies.zoo.window_oracle import window_oracle

ZOO: dict[str, Callable[..., ComposedPolicy]] = {
    "all_cpu": all_cpu,
    "stream_active": stream_active,
    "n_cpu_moe": n_cpu_moe,
    "n_cpu_moe_plain": n_cpu_moe_plain,
    "static_hot": static_hot,
    "ktransformers": ktransformers,
    "fiddler": fiddler,
    "lru_fetch": lru_fetch,
    "lru_cpu": lru_cpu,
    "lru_cpu_no_speculation": lru_cpu_no_speculation,
    "lfu_cpu": lfu_cpu,
    "lfru_cpu": lfru_cpu,
    "least_stale": least_stale,
    "freetoken": freetoken,
    "binary_prefetch": binary_prefetch,
    "mixtral_offloading": mixtral_offloading,
    "moe_infinity": moe_infinity,
    "adapmoe": adapmoe,
    "promoe_standin": promoe_standin,
    "fate": fate,
    "hybrimoe": hybrimoe,
    "dali": dali,
    "dali_exact": dali_exact,
    "sp_moe_standin": sp_moe_standin,
    "moe_speq_standin": moe_speq_standin,
    "spac": spac,
    "spac_code": spac_code,
    "spac_no_inertia": spac_no_inertia,
    "spac_no_balancer": spac_no_balancer,
    "spac_no_async": spac_no_async,
    "spac_no_calibration": spac_no_calibration,
    "spac_no_speculation": spac_no_speculation,
    "ours": ours,
    "belady": belady,
    "window_oracle": window_oracle,
    "foresight": foresight,
}
