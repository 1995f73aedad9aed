"""`spac study formats`: what do int8 experts change, beside bfloat16, on the shipped pair?"""

from dataclasses import asdict
from pathlib import Path

import pandas as pd
import torch
from matplotlib.figure import Figure
from omegaconf import DictConfig
from rich.console import Console

from experiments.figure_style import new_figure, save_figure, styles
from experiments.outputs import new_folder, removed_if_unused
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.record import first_prompts
from experiments.studies.markdown import markdown_table
from experiments.tables import write_table
from experiments.values import as_list
from policies.errors import UserError
from runtime.checkpoints import SHIPPED_PAIR
from runtime.format_error import FORMATS, format_errors
from runtime.prompts import shipped_prompts
from runtime.tokenizers import Tokenizer, tokenizer_hash
from traces.atomic import write_atomically


def run(config: DictConfig, console: Console) -> Path:
    """Read the first prompts of each workload in every format; returns the folder."""
    torch.set_num_threads(1)
    target = SHIPPED_PAIR / "target"
    texts = _texts(config, target)
    with removed_if_unused(new_folder(config.outputs, "study")) as folder:
        write_run_file(folder, "study", config, {"tokenizer": tokenizer_hash(target)})
        with progress_bar(console, "formats", len(FORMATS) + 1) as advance:
            errors = format_errors(target, texts, advance)
        table = pd.DataFrame([asdict(one) for one in errors])
        write_table(folder, table)
        save_figure(format_figure(table), folder / "formats.png")
        write_atomically(folder / "findings.md", format_findings(table).encode())
    return folder


def format_figure(table: pd.DataFrame) -> Figure:
    """Divergence of the next token's distribution from float32, per format."""
    rows = table.set_index(["dtype", "experts"])
    int8, half = rows.loc[("float32", "int8")], rows.loc[("bfloat16", "same")]
    title = (
        f"int8 experts move the next token's distribution {_times(int8, half)} as far from "
        "float32 as bfloat16 does, and keep the most probable token in "
        f"{int8.same_token:.2%} of rows"
    )
    figure, axes = new_figure(title, height=3.2)
    names = _names(table)
    for name, value, look in zip(names, table["divergence"], styles(names).values(), strict=True):
        axes.barh(name, value, color=look.colour, hatch=look.hatch, edgecolor="white")
        axes.annotate(f" {value:.2g}", (value, name), va="center", fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("Kullback-Leibler divergence from float32, nats per row")
    return figure


def format_findings(table: pd.DataFrame) -> str:
    """The whole file, every number from the table."""
    rows = table.set_index(["dtype", "experts"])
    int8, half = rows.loc[("float32", "int8")], rows.loc[("bfloat16", "same")]
    both = rows.loc[("bfloat16", "int8")]
    shown = pd.DataFrame({
        "format": _names(table),
        "bytes of an expert": [f"{size:,}" for size in table["expert_bytes"]],
        "mean logit error": [f"{value:.4f}" for value in table["logit_error"]],
        "largest": [f"{value:.3f}" for value in table["logit_error_max"]],
        "divergence, nats": [f"{value:.2e}" for value in table["divergence"]],
        "same most probable token": [f"{value:.2%}" for value in table["same_token"]],
        "same experts": [f"{value:.2%}" for value in table["same_experts"]],
    })  # fmt: skip
    parts = [
        "# What do int8 experts change?",
        f"The shipped target reads {int(int8.rows):,} rows of its prompts, none of them generated, "
        "so that every format sees the same text; compared with float32, whose logits spread by "
        f"{int8.spread:.2f} within a row. Written by `spac study formats`.",
        markdown_table(shown),
        f"int8 experts (one scale per output) change a logit by {int8.logit_error:.4f} on average, "
        f"bfloat16 by {half.logit_error:.4f}, both together by {both.logit_error:.4f}. The "
        f"divergence of int8 is {_times(int8, half)} that of bfloat16. Routing changes in "
        f"{1 - int8.same_experts:.2%} of layers and rows with int8 and in "
        f"{1 - half.same_experts:.2%} with bfloat16: experts change the input of later routers.",
        "So `experts=int8` is another model, close to the first one. What is proved lossless is "
        "speculative decoding and placement: on the stand-in all placements give bit for bit the "
        "same logits, and the text equals plain decoding of the model whose experts were rounded.",
        "This is one small model trained in float32; a large one may behave otherwise.",
    ]
    return "\n\n".join(parts) + "\n"


def _texts(config: DictConfig, target: Path) -> list[tuple[int, ...]]:
    tokenizer, texts = Tokenizer(target), []
    for name in as_list(config.trace):
        prompts = first_prompts(shipped_prompts(str(name)), config.requests, tokenizer)
        texts += [prompt.tokens for prompt in prompts]
    if not texts:
        raise UserError("trace=[]: name at least one workload")
    return texts


def _names(table: pd.DataFrame) -> list[str]:
    return [
        f"{row.dtype}, experts int8" if row.experts == "int8" else f"{row.dtype}"
        for row in table.itertuples()
    ]


def _times(one: pd.Series, other: pd.Series) -> str:
    return f"{one.divergence / other.divergence:.2g} times"
