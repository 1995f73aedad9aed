"""Balancers: who computes each active expert of a layer."""

from __future__ import annotations

from dataclasses import dataclass

from policies import kinds
from policies.parts.part import Part


@dataclass(frozen=True)
class AllCpu(Part):
    """Every expert on the CPU."""

    kind = kinds.ALL_CPU


@dataclass(frozen=True)
class ByResidency(Part):
    """Residents on the GPU, misses on the CPU."""

    kind = kinds.RESIDENT


@dataclass(frozen=True)
class FetchMisses(Part):
    """Misses are fetched and stay; `bypass` streams those that would be the first victims
    themselves."""

    levels: int = 0
    io_share: float = 0.0
    fixed_tau: int = 0
    bypass: bool = False
    kind = kinds.FETCH_MISSES


@dataclass(frozen=True)
class StreamMisses(Part):
    """Misses are streamed: copied, computed, dropped."""

    kind = kinds.STREAM_MISSES


@dataclass(frozen=True)
class Cheaper(Part):
    """Fiddler: each miss by itself, CPU if t_cpu(n) < copy + t_gpu(n), else streamed."""

    kind = kinds.CHEAPER


@dataclass(frozen=True)
class Split(Part):
    """FreeToken: of m misses, q* = m * B_P / B_H are fetched and the others run on the CPU."""

    kind = kinds.SPLIT


@dataclass(frozen=True)
class Threshold(Part):
    """MoE-SpAc's threshold program; see policies.balancers.threshold. `fixed_tau` > 0 replaces the
    program."""

    levels: int = 5
    io_share: float = 1.0
    fixed_tau: int = 0
    kind = kinds.THRESHOLD


@dataclass(frozen=True)
class Assignment(Part):
    """The full assignment program, solved exactly; see policies.balancers.assignment. `keep`:
    copied experts stay where their utility exceeds a victim's, else all are streamed; `contended`:
    CPU times as under a busy link."""

    keep: bool = True
    contended: bool = False
    kind = kinds.ASSIGNMENT


@dataclass(frozen=True)
class Priced(Part):
    """As many misses fetched as makes the join, less the CPU time saved later, shortest; see
    policies.balancers.priced. `worth`: CPU times that one expected later use counts."""

    worth: float = 1.0
    kind = kinds.PRICED


@dataclass(frozen=True)
class Greedy(Part):
    """The same program, solved greedily as DALI does."""

    keep: bool = True
    contended: bool = False
    kind = kinds.GREEDY


@dataclass(frozen=True)
class GreedyGain(Part):
    """The same program, solved greedily as HybriMoE does: copies while the join gets shorter."""

    keep: bool = True
    contended: bool = False
    kind = kinds.BY_GAIN
