"""Record traces with a target and a draft (`spac record`)."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.outputs import new_folder, removed_if_unused
from experiments.provenance import write_run_file
from experiments.recordable import draft_of, refuse_unrecordable, target_of
from experiments.sampling_choice import sampling_from
from experiments.terminal import terminal
from experiments.values import as_list, as_mapping, threads, truth, whole_number
from policies.errors import UserError
from runtime.checkpoints import open_draft, open_target
from runtime.draft_model import DraftModel, open_draft_model
from runtime.host_memory import available_host_bytes
from runtime.prompts import Prompt, read_prompts, shipped_prompts
from runtime.recorder import RecordingSettings, RecordingSummary, record_dense, record_windowed
from runtime.run_memory import check_resident
from runtime.target_model import TargetModel, open_target_model
from runtime.tokenizers import Tokenizer, tokenizer_hash

SMALL = 1_024  # below this hidden size a second CPU thread waits longer than it computes


@dataclass(frozen=True)
class Pair:
    """A loaded target with its draft, if any, and their tokenizer."""

    target: TargetModel
    draft: DraftModel | None
    tokenizer: Tokenizer


def run(config: DictConfig) -> int:
    """Record one trace per workload into <out>/<workload>; returns the exit code.

    The keys are explained in conf/record.yaml. Everything is checked before the first recording.
    """
    workloads, settings, prompts = planned(config)
    pair = open_pair(config)
    made, own = output_folder(config, workloads), config["out"] is not None
    with nullcontext(made) if own else removed_if_unused(made) as folder:  # the user's own stays
        if not own:
            inputs = {"tokenizer": tokenizer_hash(pair.target.facts.path)}
            write_run_file(folder, "record", config, inputs)
        record_all(config, pair, prompts, settings, folder)
    return 0


def planned(
    config: Mapping[str, Any],
) -> tuple[list[str], RecordingSettings, dict[str, list[Prompt]]]:
    """(workloads, settings, prompts of each); UserError for what needs no loaded model to be known
    as impossible."""
    if config["kind"] not in ("dense", "windowed"):
        raise UserError(f"kind={config['kind']} cannot be recorded; use dense or windowed")
    workloads = workload_names(config)
    settings = settings_from(config, workloads[0])
    facts = open_target(target_of(config))
    tokenizer = Tokenizer(facts.path)
    prompts = {name: choose_prompts(config, name, tokenizer) for name in workloads}
    for chosen in prompts.values():
        refuse_unrecordable(config, settings, facts, chosen)
    return workloads, settings, prompts


def record_all(
    config: DictConfig,
    pair: Pair,
    prompts: Mapping[str, list[Prompt]],
    settings: RecordingSettings,
    folder: Path,
) -> None:
    """A trace of each workload, and a line about it."""
    console = terminal()
    for workload, chosen in prompts.items():
        begun = time.perf_counter()
        total = len(chosen) * settings.max_new_tokens
        with token_bar(console, workload, total) as show:
            named = replace(settings, workload=workload)
            summary = record(config, pair, named, chosen, folder / workload, show)
        report(console, summary, time.perf_counter() - begun)


def workload_names(config: Mapping[str, Any]) -> list[str]:
    """The names asked for; exactly one where the user brings prompts."""
    names = config["workload"]
    workloads = [] if names is None else [str(name) for name in as_list(names)]
    if len(set(workloads)) != len(workloads) or not workloads:
        raise UserError(f"workload={workloads} names none, or one of them twice")
    if config["prompts"] is not None and len(workloads) != 1:
        raise UserError(
            f"prompts={config['prompts']} with {len(workloads)} workloads; name exactly one"
        )
    return workloads


def output_folder(config: DictConfig, workloads: list[str]) -> Path:
    """`out`, where no trace may exist yet, or a new numbered folder."""
    if config["out"] is None:
        return new_folder(config["outputs"], "record")
    folder = Path(config["out"])
    for path in (folder / workload for workload in workloads):
        if path.exists():
            raise UserError(f"{path} exists already; a trace is never overwritten, name a new out")
    return folder


def settings_from(config: Mapping[str, Any], workload: str) -> RecordingSettings:
    """What a recording is made with; UserError names the key that is wrong."""
    sampling, truncation = sampling_from(as_mapping(config["sampling"]))
    return RecordingSettings(
        workload=workload,
        gamma=whole_number("gamma", config["gamma"]),
        sampling=sampling,
        truncation=truncation,
        max_new_tokens=whole_number("max_new_tokens", config["max_new_tokens"]),
        next_layer=truth("next_layer", config["next_layer"]),
        router_weights=truth("router_weights", config["router_weights"]),
    )


def open_pair(config: Mapping[str, Any]) -> Pair:
    """Load target and draft on the configured device."""
    path, draft = target_of(config), draft_of(config)
    facts = open_target(path)
    wanted = config["threads"]
    if wanted is None and facts.hidden < SMALL:
        wanted = 1
    if wanted is not None:
        torch.set_num_threads(threads(wanted))
    device, dtype = str(config["device"]), str(config["dtype"])
    tokenizer = Tokenizer(facts.path)
    models = {"target": facts} | ({} if draft is None else {"draft": open_draft(draft)})
    check_resident(models, dtype, available_host_bytes())
    target = open_target_model(path, device, dtype)
    return Pair(target, open_draft_model(draft, facts, device, dtype), tokenizer)


def choose_prompts(config: Mapping[str, Any], workload: str, tokenizer: Tokenizer) -> list[Prompt]:
    """The first `config.requests` prompts of a workload; UserError if there are fewer."""
    file = config["prompts"] or shipped_prompts(workload)
    return first_prompts(file, config["requests"], tokenizer)


def first_prompts(file: str | Path, asked: object, tokenizer: Tokenizer) -> list[Prompt]:
    """The first `asked` prompts of a file, all for None; UserError if there are fewer."""
    prompts = read_prompts(file, tokenizer.encode)
    wanted = len(prompts) if asked is None else whole_number("requests", asked)
    if not 1 <= wanted <= len(prompts):
        raise UserError(f"requests={wanted}: {file} has {len(prompts)} prompts")
    return prompts[:wanted]


def record(
    config: Mapping[str, Any],
    pair: Pair,
    settings: RecordingSettings,
    prompts: list[Prompt],
    out: Path,
    progress: Callable[[int, int], None],
) -> RecordingSummary:
    """One recording of the configured kind."""
    settings = replace(settings, notes={"tokenizer": tokenizer_hash(pair.target.facts.path)})
    if config["kind"] == "windowed":
        return record_windowed(out, pair.target, pair.draft, prompts, settings, progress=progress)
    assert pair.draft is not None
    return record_dense(out, pair.target, pair.draft, prompts, settings, progress=progress)


@contextmanager
def token_bar(console: Console, title: str, total: int) -> Iterator[Callable[[int, int], None]]:
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
