"""findings.md of `study paper`, in plain words, every number from the results."""

from dataclasses import dataclass

import pandas as pd

from experiments.studies.markdown import markdown_table
from experiments.studies.paper_explanations import (
    ablation_words,
    fit_words,
    gain_words,
    memory_words,
    offload_words,
    rival_words,
    spac_words,
)
from experiments.studies.paper_fit import Fitted
from experiments.studies.paper_memory import Memory


@dataclass(frozen=True)
class PaperResults:
    """Tables of the study. `draft_kv_ms`: per draft step at 4,096 tokens, not in the cost table."""

    fitted: Fitted
    speeds: pd.DataFrame
    deepseek: pd.DataFrame
    checks: pd.DataFrame
    routing: pd.DataFrame
    sensitivity: pd.DataFrame
    memory: Memory
    draft_kv_ms: float


def paper_findings(results: PaperResults) -> str:
    """The whole file."""
    speeds = results.speeds.set_index("system")
    checks = results.checks.set_index("quantity")
    parts = [
        "# The published numbers of MoE-SpAc and what the simulator says",
        "Qwen3-30B-A3B (fp16 experts) with Qwen3-4B-FP8 as draft on an RTX 4090, 1,024 slots, "
        "gamma 8. Routing is generated, costs are published hardware figures, nothing was "
        "measured on a GPU. Written by `spac study paper`.",
        "## Generated routing beside the published statistics",
        markdown_table(shown(results.routing, ("published", "generated"), "{:.3f}")),
        "Layers are independent in the generated trace and rejected drafts route like the text "
        "that follows, which helps whatever remembers the last window.",
        "## What was fitted",
        fit_words(results.fitted, speeds),
        "## Tokens per second",
        markdown_table(speeds_shown(results.speeds)),
        spac_words(speeds),
        rival_words(speeds),
        "## Other published figures",
        markdown_table(shown(results.checks, ("published", "predicted"), "{:.3f}", "error")),
        gain_words(checks, results.deepseek.set_index("system"), results.draft_kv_ms),
        ablation_words(checks),
        memory_words(results.memory),
        "## Where nothing should be offloaded",
        offload_words(results.memory, speeds),
    ]
    if len(results.sensitivity):
        columns = tuple(results.sensitivity.columns[2:])
        parts += [
            "## What is unknown, one thing at a time",
            markdown_table(shown(results.sensitivity, columns, "{:.2f}")),
        ]
    return "\n\n".join(parts) + "\n"


def speeds_shown(speeds: pd.DataFrame) -> pd.DataFrame:
    """Columns for the reader."""
    table = pd.DataFrame(
        {
            "system": speeds["system"],
            "": speeds["kind"],
            "published": speeds["published"],
            "simulated": speeds["tokens_per_second"],
            "error": speeds["error"],
            "hits": speeds["hit_rate_per_token"].map("{:.0%}".format),
            "link busy": speeds["link_busy_share"].map("{:.0%}".format),
            "note": speeds["note"],
        }
    )
    return shown(table, ("published", "simulated"), "{:.2f}", "error")


def shown(
    table: pd.DataFrame, numbers: tuple[str, ...], form: str, error: str | None = None
) -> pd.DataFrame:
    """`table` as text: `numbers` in `form`, the error in percent, "-" where there is none."""
    result = table.copy()
    for name in numbers:
        result[name] = [_text(value, form) for value in table[name]]
    if error is not None:
        result[error] = [_text(value, "{:+.1%}") for value in table[error]]
    return result


def _text(value: object, form: str) -> str:
    return "-" if value is None or pd.isna(value) else form.format(value)  # type: ignore[call-overload]
