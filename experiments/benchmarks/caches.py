"""Section caches: pure hit-rate replay of LRU, LFU and Belady, beside libCacheSim's C engine.

One expert a request, one cache for each layer, both on the same requests: ours from an array, its
engine from a file that the system holds in memory.
"""

import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks.measures import Bench, LeftOut, Measure
from experiments.benchmarks.scene import CACHE_RATIO
from experiments.benchmarks.timing import core_seconds
from traces.caches import belady_hits, capacity_of, lfu_hits, lru_hits
from traces.oracle_general import write_oracle_general
from traces.synthetic_replay import BankReplay

SECTION = "caches"
HASH_POWER = 10
Hits = Callable[[NDArray[np.int64], int, int], int]


def belady_that_loads_all(tokens: NDArray[np.int64], experts: int, capacity: int) -> int:
    """Belady as libCacheSim has it: a miss is always kept."""
    return belady_hits(tokens, experts, capacity, True)


OURS: dict[str, Hits] = {"LRU": lru_hits, "LFU": lfu_hits, "Belady": belady_that_loads_all}


def measure_caches(bench: Bench) -> Iterator[Measure]:
    """For each policy: our requests per second, the ratio of times, and the difference in hits."""
    if importlib.util.find_spec("libcachesim") is None:
        raise LeftOut("libcachesim is not installed: pip install 'moe-spac-lab[bench]'")
    layers, experts = layer_requests(bench)
    capacity, total = capacity_of(CACHE_RATIO, experts), layers.size
    with TemporaryDirectory() as folder:
        files = [
            write_oracle_general(Path(folder) / f"{layer}.bin", requests, experts)
            for layer, requests in enumerate(layers)
        ]
        for name, hits in OURS.items():
            seconds, found = replayed(hits, layers, experts, capacity, bench.size.repeats)
            theirs, their_hits = libcachesim(
                name, files, capacity, layers.shape[1], bench.size.repeats
            )
            yield Measure(SECTION, f"{name}: requests per second", total / seconds / 1e6, "million")
            yield Measure(
                SECTION, f"{name}: our time over libCacheSim's", seconds / theirs, "x", "at most",
                1.0, note=f"{total} requests, hit rate {found / total:.1%}",
            )  # fmt: skip
            yield Measure(
                SECTION, f"{name}: difference in hits", abs(found - their_hits), "hits", "at most",
                0,
            )  # fmt: skip


def replayed(
    hits: Hits, layers: NDArray[np.int64], experts: int, capacity: int, repeats: int
) -> tuple[float, int]:
    """(CPU seconds of our replay, hits), summed over the layers."""
    tokens = [np.ascontiguousarray(requests[:, None]) for requests in layers]
    hits(tokens[0][:1], experts, capacity)  # compiled, or loaded from the disk
    return core_seconds(lambda: sum(hits(one, experts, capacity) for one in tokens), repeats)


def layer_requests(bench: Bench) -> tuple[NDArray[np.int64], int]:
    """(int64 [layers, requests], experts): each layer's experts in the order of their use."""
    shape = replace(bench.size.shape, requests=1, tokens=bench.size.cache_tokens)
    rows = BankReplay(shape).arrays(0).experts
    return rows.transpose(1, 0, 2).reshape(shape.layers, -1).astype(np.int64), shape.experts


def libcachesim(
    name: str, files: list[Path], capacity: int, requests: int, repeats: int
) -> tuple[float, int]:
    """(CPU seconds in its C loop, hits), summed over the layers; a small hash table, which suits so
    few objects best."""
    import libcachesim as engine

    times, hits = [], 0
    for _ in range(repeats):
        spent, hits = 0, 0
        for path in files:
            reader = engine.TraceReader(
                str(path), engine.TraceType.ORACLE_GENERAL_TRACE,
                engine.ReaderInitParam(ignore_obj_size=True),
            )  # fmt: skip
            cache = getattr(engine, name)(cache_size=capacity, hashpower=HASH_POWER)
            begin = time.process_time_ns()
            misses, _ = cache.process_trace(reader)
            spent += time.process_time_ns() - begin
            hits += round((1 - misses) * requests)
        times.append(spent)
    return float(np.median(times)) / 1e9, hits
