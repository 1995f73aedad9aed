"""Terminal tables of a trace: its manifest, its statistics."""

from collections.abc import Iterable, Sequence

from experiments.fitted_table import FittedTable
from experiments.text_table import TextRow, TextTable
from traces.reader import Trace
from traces.size_text import size_text
from traces.stats import TraceStats

VALUE = "value"


def info_table(trace: Trace) -> FittedTable:
    """What was recorded, from what, by whom."""
    manifest, model = trace.manifest, trace.manifest.model
    kind = f"{manifest.kind} (approximate)" if manifest.kind == "text" else manifest.kind
    facts = (
        ("kind", kind),
        ("workload", manifest.workload),
        ("model", model.name),
        ("shape", f"{model.layers} layers x {model.experts} experts, top-{model.top_k}"),
        ("size of an expert", f"{size_text(model.expert_bytes)} ({model.expert_bytes:,} bytes)"),
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
    )  # fmt: skip
    return _facts_table(f"trace {trace.path}", facts)


def stats_tables(stats: TraceStats) -> list[FittedTable]:
    """Counts, windows with acceptance, cache hit rates."""
    tables = [_counts(stats), _windows(stats), _caches(stats)]
    return [*tables, _window_caches(stats)] if stats.window_caches else tables


def _counts(stats: TraceStats) -> FittedTable:
    mean = sum(stats.entropy) / len(stats.entropy) if stats.entropy else float("nan")
    within = stats.entropy_within_request
    mean_within = sum(within) / len(within) if within else float("nan")
    facts = (
        ("requests", str(stats.requests)),
        ("prompt tokens", str(stats.prompt_tokens)),
        ("committed tokens", str(stats.tokens)),
        ("experts reused from the token before", f"{stats.reuse_from_previous:.1%}"),
        ("router entropy (1 = uniform)", f"{mean:.2f}"),
        ("router entropy within a request", f"{mean_within:.2f}"),
        ("repeated 4-grams", f"{stats.repeated_4grams:.1%}"),
    )
    return _facts_table(f"{stats.workload}: {stats.kind} trace", facts)


def _windows(stats: TraceStats) -> FittedTable:
    approximate = any(window.approximate for window in stats.windows) or stats.kind == "text"
    passes = {one.gamma: one for one in stats.passes}
    windows = {one.gamma: one for one in stats.windows}
    rows = []
    for gamma in sorted(passes.keys() | windows.keys()):
        distinct = f"{windows[gamma].distinct_experts:.1f}" if gamma in windows else "-"
        played = passes.get(gamma)
        cells = [
            str(gamma),
            distinct,
            f"{played.tokens_per_pass:.2f}" if played else "-",
            f"{played.acceptance_reached:.2f}" if played else "-",
            f"{played.acceptance_proposed:.2f}" if played else "-",
        ]
        rows.append(cells)
    title = "verify windows" + (" (approximate: text trace)" if approximate else "")
    headings = ["gamma", "distinct experts per layer", "tokens per pass",
                "acceptance, reached", "acceptance, proposed"]  # fmt: skip
    return _table(title, headings, rows)


def _caches(stats: TraceStats) -> FittedTable:
    rows = []
    for cache in stats.caches:
        rates = (cache.lru, cache.belady, cache.lru_shuffled, cache.belady_shuffled)
        rows.append([f"{cache.ratio:.0%}", *(f"{rate:.1%}" for rate in rates)])
    title = "hit rates per token, one cache per layer, one row at a time"
    headings = ["cache ratio", "LRU", "Belady", "LRU, shuffled", "Belady, shuffled"]
    return _table(title, headings, rows)


def _window_caches(stats: TraceStats) -> FittedTable:
    rows = []
    for one in stats.window_caches:
        hits = one.hits
        rates = (hits.lru_access, hits.belady_access, hits.lru_window, hits.belady_window)
        rows.append([str(one.gamma), f"{one.ratio:.0%}", *(f"{rate:.1%}" for rate in rates)])
    title = (
        "hit rates of passes, one cache per layer: of single accesses, where a row finds what an "
        "earlier row loaded, and of windows, whose experts are needed at once"
    )
    headings = ["gamma", "cache ratio", "LRU, access", "Belady, access", "LRU, window",
                "Belady, window"]  # fmt: skip
    return _table(title, headings, rows)


def _facts_table(title: str, facts: Iterable[tuple[str, str]]) -> FittedTable:
    """Names and values, without headings."""
    content = TextTable(title, ["", VALUE], [TextRow(fact) for fact in facts])
    return FittedTable(content, texts=[VALUE], bare=True)


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> FittedTable:
    return FittedTable(TextTable(title, headings, [TextRow(row) for row in rows]))
