"""Terminal tables of a trace: its manifest, its statistics."""

from rich.table import Table

from traces.reader import Trace
from traces.stats import TraceStats


def info_table(trace: Trace) -> Table:
    """What was recorded, from what, by whom."""
    manifest, model = trace.manifest, trace.manifest.model
    kind = f"{manifest.kind} (approximate)" if manifest.kind == "text" else manifest.kind
    table = Table(title=f"trace {trace.path}", show_header=False)
    for name, value in (
        ("kind", kind),
        ("workload", manifest.workload),
        ("model", model.name),
        ("shape", f"{model.layers} layers x {model.experts} experts, top-{model.top_k}"),
        ("bytes per expert", f"{model.expert_bytes:,}"),
        ("draft", manifest.draft or "none"),
        ("largest gamma", str(manifest.gamma_max)),
        ("sampling", f"{manifest.sampling.mode}, T = {manifest.sampling.temperature}, "
                     f"seed {manifest.sampling.seed}"),
        ("rows", f"{sum(part.rows for part in manifest.parts):,} in {len(manifest.parts)} parts"),
        ("optional columns", ", ".join(manifest.columns) or "none"),
        ("complete", "yes" if manifest.complete else "NO: the recording was cut short"),
        ("recorder", manifest.recorder),
        ("digest", trace.digest),
        *manifest.notes.items(),
    ):  # fmt: skip
        table.add_row(name, value)
    return table


def stats_tables(stats: TraceStats) -> list[Table]:
    """Counts, windows with acceptance, cache hit rates."""
    tables = [_counts(stats), _windows(stats), _caches(stats)]
    return [*tables, _window_caches(stats)] if stats.window_caches else tables


def _counts(stats: TraceStats) -> Table:
    table = Table(title=f"{stats.workload}: {stats.kind} trace", show_header=False)
    mean = sum(stats.entropy) / len(stats.entropy) if stats.entropy else float("nan")
    within = stats.entropy_within_request
    mean_within = sum(within) / len(within) if within else float("nan")
    for name, value in (
        ("requests", str(stats.requests)),
        ("prompt tokens", str(stats.prompt_tokens)),
        ("committed tokens", str(stats.tokens)),
        ("experts reused from the token before", f"{stats.reuse_from_previous:.1%}"),
        ("router entropy (1 = uniform)", f"{mean:.2f}"),
        ("router entropy within a request", f"{mean_within:.2f}"),
        ("repeated 4-grams", f"{stats.repeated_4grams:.1%}"),
    ):
        table.add_row(name, value)
    return table


def _windows(stats: TraceStats) -> Table:
    approximate = any(window.approximate for window in stats.windows) or stats.kind == "text"
    table = Table(
        "gamma", "distinct experts per layer", "tokens per pass",
        "accepted / (accepted + rejected)", "accepted / proposed",
        title="verify windows" + (" (approximate: text trace)" if approximate else ""),
    )  # fmt: skip
    passes = {one.gamma: one for one in stats.passes}
    windows = {one.gamma: one for one in stats.windows}
    for gamma in sorted(passes.keys() | windows.keys()):
        distinct = f"{windows[gamma].distinct_experts:.1f}" if gamma in windows else "-"
        played = passes.get(gamma)
        table.add_row(
            str(gamma),
            distinct,
            f"{played.tokens_per_pass:.2f}" if played else "-",
            f"{played.acceptance_reached:.2f}" if played else "-",
            f"{played.acceptance_proposed:.2f}" if played else "-",
        )
    return table


def _caches(stats: TraceStats) -> Table:
    table = Table(
        "cache ratio", "LRU", "Belady", "LRU, shuffled", "Belady, shuffled",
        title="hit rates per token, one cache per layer, one row at a time",
    )  # fmt: skip
    for cache in stats.caches:
        table.add_row(
            f"{cache.ratio:.0%}",
            *(f"{share:.1%}" for share in
              (cache.lru, cache.belady, cache.lru_shuffled, cache.belady_shuffled)),
        )  # fmt: skip
    return table


def _window_caches(stats: TraceStats) -> Table:
    table = Table(
        "gamma", "cache ratio", "LRU, access", "Belady, access", "LRU, window", "Belady, window",
        title="hit rates of passes, one cache per layer: of single accesses, where a row finds "
              "what an earlier row loaded, and of windows, whose experts are needed at once",
    )  # fmt: skip
    for one in stats.window_caches:
        hits = one.hits
        rates = (hits.lru_access, hits.belady_access, hits.lru_window, hits.belady_window)
        table.add_row(str(one.gamma), f"{one.ratio:.0%}", *(f"{rate:.1%}" for rate in rates))
    return table
