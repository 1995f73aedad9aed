"""trace_stats: what a trace is like, as numbers that figures and model cards show."""

from dataclasses import dataclass

import numpy as np

from traces.acceptance import Acceptance, leading_matches
from traces.caches import hit_rates
from traces.locality import (
    distinct_experts,
    repeated_ngrams,
    reuse_from_previous,
    router_entropy,
    sliding_windows,
)
from traces.manifest import Manifest
from traces.reader import Trace
from traces.replay import open_replay, passes
from traces.rows import DECODE, RowBatch
from traces.text_rows import TextRows, text_rows
from traces.window import Window
from traces.window_caches import WindowHits, window_hit_rates

GAMMAS = (0, 1, 2, 4, 8)
RATIOS = (0.10, 0.17, 0.25, 0.50)


@dataclass(frozen=True)
class CacheStats:
    """Hit rates per token activation of one cache per layer (semantics: caches.py), 0..1.

    The shuffled ones have the same rows in random order: what popularity alone gives.
    """

    ratio: float
    lru: float
    belady: float
    lru_shuffled: float
    belady_shuffled: float


@dataclass(frozen=True)
class WindowCacheStats:
    """Hit rates of one cache per layer over the passes at one gamma; semantics: window_caches."""

    gamma: int
    ratio: float
    hits: WindowHits


@dataclass(frozen=True)
class PassStats:
    """All passes of all requests at one gamma.

    acceptance_reached = accepted / (accepted + rejected); acceptance_proposed = accepted /
    proposed.
    """

    gamma: int
    passes: int
    tokens_per_pass: float
    acceptance_reached: float
    acceptance_proposed: float


@dataclass(frozen=True)
class WindowStats:
    """Mean distinct experts per layer in a window of gamma + 1 rows, over all starts recorded.

    `approximate`: made of consecutive text rows, since rejected drafts were not recorded.
    """

    gamma: int
    distinct_experts: float
    approximate: bool


@dataclass(frozen=True)
class PositionStats:
    """Draft position i over all starts: reached (all before it accepted), accepted, their ratio.

    acceptance_proposed = accepted / starts, whether reached or not.
    """

    position: int
    reached: int
    accepted: int
    acceptance_reached: float
    acceptance_proposed: float


@dataclass(frozen=True)
class TraceStats:
    """Everything; dataclasses.asdict makes it JSON. What the trace cannot give is left empty."""

    kind: str
    workload: str
    requests: int
    rows: int
    prompt_tokens: int
    tokens: int
    reuse_from_previous: float
    positions: tuple[PositionStats, ...]
    passes: tuple[PassStats, ...]
    windows: tuple[WindowStats, ...]
    caches: tuple[CacheStats, ...]
    window_caches: tuple[WindowCacheStats, ...]
    entropy: tuple[float, ...]
    entropy_within_request: tuple[float, ...]
    repeated_4grams: float


def trace_stats(
    trace: Trace,
    acceptance: Acceptance | None = None,
    gammas: tuple[int, ...] = GAMMAS,
    ratios: tuple[float, ...] = RATIOS,
    seed: int = 0,
) -> TraceStats:
    """Statistics of a whole trace (loads it). `acceptance` as in open_replay; text only."""
    manifest, batch = trace.manifest, trace.load()
    text = text_rows(batch, manifest)
    experts = manifest.model.experts
    texts = [text.token[text.request == request] for request in np.unique(text.request)]
    played = _played(trace, acceptance, gammas, seed)
    return TraceStats(
        kind=manifest.kind,
        workload=manifest.workload,
        requests=len(texts),
        rows=len(batch),
        prompt_tokens=int((batch.phase != DECODE).sum()),
        tokens=len(text.token),
        reuse_from_previous=reuse_from_previous(text),
        positions=_position_stats(batch, manifest),
        passes=tuple(_pass_stats(gamma, windows) for gamma, windows in played.items()),
        windows=_window_stats(batch, text, manifest, gammas),
        caches=tuple(_cache_stats(text, experts, ratio, seed) for ratio in ratios),
        window_caches=tuple(
            WindowCacheStats(
                gamma, ratio, window_hit_rates([one.experts for one in windows], experts, ratio)
            )
            for gamma, windows in played.items()
            for ratio in ratios
        ),
        entropy=tuple(router_entropy(text.experts, experts)),
        entropy_within_request=_entropy_within(text, experts),
        repeated_4grams=repeated_ngrams(texts),
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _position_stats(batch: RowBatch, manifest: Manifest) -> tuple[PositionStats, ...]:
    match = batch.match[batch.phase == DECODE].reshape(-1, manifest.rows_per_start)
    accepted = leading_matches(match)
    stats = []
    for position in range(1, manifest.gamma_max + 1):
        reached, kept = int((accepted >= position - 1).sum()), int((accepted >= position).sum())
        proposed = _ratio(kept, len(match))
        stats.append(PositionStats(position, reached, kept, _ratio(kept, reached), proposed))
    return tuple(stats)


def _played(
    trace: Trace, acceptance: Acceptance | None, gammas: tuple[int, ...], seed: int
) -> dict[int, list[Window]]:
    """All passes at each gamma that the trace can be played at; none of text without acceptance."""
    if trace.manifest.kind == "text" and acceptance is None:
        return {}
    replay = open_replay(trace, acceptance, seed)
    if replay.fixed_gamma is not None:
        gammas = (replay.fixed_gamma,)
    return {
        gamma: list(passes(replay, gamma)) for gamma in gammas if 0 < gamma <= replay.gamma_limit
    }


def _pass_stats(gamma: int, played: list[Window]) -> PassStats:
    windows = [(w.gamma, w.accepted, w.committed) for w in played]
    proposed, accepted, committed = (sum(column) for column in zip(*windows, strict=True))
    rejected = sum(taken < offered for offered, taken, _ in windows)
    return PassStats(
        gamma=gamma,
        passes=len(windows),
        tokens_per_pass=committed / len(windows),
        acceptance_reached=_ratio(accepted, accepted + rejected),
        acceptance_proposed=_ratio(accepted, proposed),
    )


def _window_stats(
    batch: RowBatch, text: TextRows, manifest: Manifest, gammas: tuple[int, ...]
) -> tuple[WindowStats, ...]:
    window, is_text = manifest.rows_per_start, manifest.kind == "text"
    if not is_text:
        recorded = batch.experts[batch.phase == DECODE]
        recorded = recorded.reshape(-1, window, *recorded.shape[1:])
    stats = []
    for gamma in gammas:
        if not is_text and gamma > manifest.gamma_max:
            continue
        rows = sliding_windows(text, gamma) if is_text else recorded[:, : gamma + 1]
        if len(rows):
            mean = float(distinct_experts(rows).mean())
            stats.append(WindowStats(gamma, mean, approximate=is_text and gamma > 0))
    return tuple(stats)


def _cache_stats(text: TextRows, experts: int, ratio: float, seed: int) -> CacheStats:
    order = np.random.default_rng(seed).permutation(len(text.experts))
    lru, belady = hit_rates(text.experts, experts, ratio)
    shuffled = hit_rates(text.experts[order], experts, ratio)
    return CacheStats(ratio, lru, belady, *shuffled)


def _entropy_within(text: TextRows, experts: int) -> tuple[float, ...]:
    """Mean over requests of each layer's entropy within one request."""
    each = [
        router_entropy(text.experts[text.request == request], experts)
        for request in np.unique(text.request)
    ]
    return tuple(np.mean(each, axis=0).tolist()) if each else ()
