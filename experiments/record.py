"""Record traces with a target and a draft (`spac record`)."""

import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.outputs import new_folder
from policies.errors import UserError
from runtime.checkpoints import SHIPPED_PAIR, open_target
from runtime.draft_model import DraftModel, open_draft_model
from runtime.prompts import Prompt, read_prompts, shipped_prompts
from runtime.recorder import RecordingSettings, RecordingSummary, record_dense, record_windowed
from runtime.target_model import TargetModel, open_target_model
from runtime.tokenizers import Tokenizer, tokenizer_hash
from traces.manifest import SamplingInfo

SMALL = 1_024  # below this hidden size a second CPU thread waits longer than it computes


@dataclass(frozen=True)
class Pair:
    """A loaded target with its draft, if any, and their tokenizer."""

    target: TargetModel
    draft: DraftModel | None
    tokenizer: Tokenizer


def run(config: Mapping[str, Any]) -> int:
    """Record one trace per workload into `config.out`/<workload>; returns the exit code.

    out: null for a new output folder under `outputs`;
    target, draft: checkpoint directories (null: the shipped pair; draft=none: no draft);
    workload: names of shipped prompt files, or one name of your own with prompts=<file>.jsonl;
    kind: dense | windowed; gamma; sampling: {mode, temperature, seed}; max_new_tokens; requests:
    prompts per workload (null: all); device; dtype; next_layer, router_weights: optional columns;
    threads: of the CPU (null: one for small models). Raises UserError for anything impossible.
    """
    if config["kind"] not in ("dense", "windowed"):
        raise UserError(f"kind={config['kind']} cannot be recorded; use dense or windowed")
    names = config["workload"]
    workloads = [names] if isinstance(names, str) else list(names)
    if config["prompts"] is not None and len(workloads) != 1:
        raise UserError(
            f"prompts={config['prompts']} with {len(workloads)} workloads; name exactly one"
        )
    pair = open_pair(config)
    console = Console()
    root = new_folder(config["outputs"], "record") if config["out"] is None else config["out"]
    for workload in workloads:
        out = Path(root) / workload
        prompts = choose_prompts(config, workload, pair.tokenizer)
        begun = time.perf_counter()
        with progress_bar(console, workload, len(prompts) * config["max_new_tokens"]) as show:
            summary = record(config, pair, workload, prompts, out, show)
        report(console, summary, time.perf_counter() - begun)
    return 0


def open_pair(config: Mapping[str, Any]) -> Pair:
    """Load target and draft on the configured device."""
    path = config["target"] or SHIPPED_PAIR / "target"
    draft = config["draft"]
    if draft is None and config["target"] is None:
        draft = SHIPPED_PAIR / "draft"
    facts = open_target(path)
    threads = config["threads"] or (1 if facts.hidden < SMALL else None)
    if threads is not None:
        torch.set_num_threads(int(threads))
    device, dtype = config["device"], config["dtype"]
    tokenizer = Tokenizer(facts.path)
    target = open_target_model(path, device, dtype)
    chosen = None if draft == "none" else draft
    return Pair(target, open_draft_model(chosen, facts, device, dtype), tokenizer)


def choose_prompts(config: Mapping[str, Any], workload: str, tokenizer: Tokenizer) -> list[Prompt]:
    """The first `config.requests` prompts of a workload; UserError if there are fewer."""
    file = config["prompts"] or shipped_prompts(workload)
    prompts = read_prompts(file, tokenizer.encode)
    wanted = len(prompts) if config["requests"] is None else int(config["requests"])
    if not 1 <= wanted <= len(prompts):
        raise UserError(f"requests={wanted}: {file} has {len(prompts)} prompts")
    return prompts[:wanted]


def record(
    config: Mapping[str, Any],
    pair: Pair,
    workload: str,
    prompts: list[Prompt],
    out: Path,
    progress: Callable[[int, int], None],
) -> RecordingSummary:
    """One recording of the configured kind."""
    sampling = config["sampling"]
    settings = RecordingSettings(
        workload=workload,
        gamma=int(config["gamma"]),
        sampling=SamplingInfo(
            sampling["mode"], float(sampling["temperature"]), int(sampling["seed"])
        ),
        max_new_tokens=int(config["max_new_tokens"]),
        next_layer=bool(config["next_layer"]),
        router_weights=bool(config["router_weights"]),
        notes={"tokenizer": tokenizer_hash(pair.target.facts.path)},
    )
    if config["kind"] == "windowed":
        return record_windowed(out, pair.target, pair.draft, prompts, settings, progress=progress)
    if pair.draft is None:
        raise UserError(
            "kind=dense needs a draft; give draft=<checkpoint> or kind=windowed gamma=0"
        )
    return record_dense(out, pair.target, pair.draft, prompts, settings, progress=progress)


@contextmanager
def progress_bar(console: Console, title: str, total: int) -> Any:
    """A bar that counts tokens; texts that end early leave it short of `total`."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task(title, total=total)
        yield lambda request, tokens: bar.update(task, completed=tokens)


def report(console: Console, summary: RecordingSummary, seconds: float) -> None:
    """One line per fact that a reader of the trace should know."""
    speed = summary.committed / seconds
    console.print(
        f"{summary.path}: {len(summary.texts)} requests, {summary.committed} tokens, "
        f"{speed:.0f} tokens/s, {summary.repetition:.1%} repeated 4-grams, "
        f"{len(summary.near_ties)} near ties",
        highlight=False,
        soft_wrap=True,
    )
    for tie in summary.near_ties:
        console.print(f"  near tie: {tie}", highlight=False)
    if summary.skipped:
        console.print(f"  left out, ended with their first token: {list(summary.skipped)}")
