"""`spac demo`: the chain from a fresh recording to the winner on the stand-in, step by step."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from experiments import record
from experiments import run as run_command
from experiments.bounding import check_method
from experiments.commands import COMMANDS
from experiments.compare import compare, digests, jobs_from, keep_runlogs, planned_rows
from experiments.comparison import Job
from experiments.configuration import compose_config
from experiments.demo_order import other_order
from experiments.outcome import show_report, write_report
from experiments.outputs import new_folder, removed_if_unused
from experiments.provenance import read_run_file, write_run_file
from experiments.run_choice import choose_run
from experiments.sweep import Place
from experiments.terminal import terminal
from experiments.trace_choice import bundled_names, find_trace
from experiments.values import as_list, positive, truth
from experiments.winner import DRAFTING_FILE, WINNER_FILE
from experiments.workers import workers_from
from policies.errors import UserError
from traces.check import check_trace
from traces.reader import open_trace
from traces.replay import open_replay
from traces.report_json import write_json
from traces.stats import trace_stats

FRESH = "fresh"
STEPS = 6


def run(config: DictConfig) -> int:
    """All steps; each leaves its files in one output folder."""
    console = terminal()
    names = bundled_names() if config.trace is None else [str(one) for one in as_list(config.trace)]
    if config.sweep is not None:
        raise UserError(f"sweep={config.sweep}: a demo is not continued; spac compare takes sweep=")
    pictures = truth("pictures", config.pictures)
    # What cannot be done is said before anything is recorded.
    refuse_impossible(config)
    demo_jobs(config, None, [find_trace(name) for name in names], Console(quiet=True))
    with removed_if_unused(new_folder(config.outputs, "demo")) as folder:
        return _demo(config, names, folder, pictures, console)


def _demo(
    config: DictConfig, names: list[str], folder: Path, pictures: bool, console: Console
) -> int:
    announce(console, 1, f"record {config.record_requests} requests with the model pair")
    fresh = record_fresh(config, folder)
    traces = [fresh, *(find_trace(name) for name in names)]
    announce(console, 2, f"check {len(traces)} traces")
    check(traces, folder, console)
    announce(console, 3, "compare policies in the simulator")
    jobs = demo_jobs(config, fresh, traces[1:], console)
    write_run_file(folder, "demo", config, digests(jobs), planned_rows(jobs))
    rows = compare(jobs, Place(folder), config, console)
    announce(console, 4, "choose the winner, draw pictures")
    keep_runlogs(jobs, rows, Place(folder))
    report = write_report(rows, read_run_file(folder), folder, folder, pictures)
    announce(console, 5, "run the winner with the real model on the stand-in, with proofs")
    code = run_winners(config, folder, console)
    announce(console, 6, f"done: {folder} has traces, tables, pictures, winner and run logs\n")
    show_report(report, console)
    if code != 0:
        console.print("error: a proof of the runs on the stand-in failed, see step 5", style="bold")
    return code


def announce(console: Console, number: int, text: str) -> None:
    """A line before each step."""
    console.print(f"\n[{number}/{STEPS}] {text}", style="bold", markup=False, highlight=False)


def record_fresh(config: DictConfig, folder: Path) -> Path:
    """A short dense recording; its directory."""
    if record.run(recording_config(config, folder)) != 0:
        raise UserError("the recording failed")
    return folder / "traces" / FRESH


def refuse_impossible(config: DictConfig) -> None:
    """UserError for a step after the comparison, or before it, that cannot be done."""
    check_method(config.bound)
    workers_from(config.workers, 1)
    place = Path(config.outputs)
    record.planned(recording_config(config, place))
    # The winner is not known yet; what it decides is none of the user's keys.
    run_command.refuse_impossible(choose_run(running_config(config, None, place)))


def recording_config(config: DictConfig, folder: Path) -> DictConfig:
    """Settings of the fresh recording below `folder`."""
    overrides = {
        "workload": FRESH,
        "prompts": str(config.record_prompts or record.shipped_prompts(config.record_workload)),
        "out": str(folder / "traces"),
        "requests": config.record_requests,
        "max_new_tokens": config.record_tokens,
        "target": config.record_target,
        "draft_path": config.record_draft,
    }
    recording = compose_config(COMMANDS["record"], [])
    recording.update(overrides)
    return recording


def check(traces: list[Path], folder: Path, console: Console) -> None:
    """Refuse damaged traces; print and keep the statistics."""
    kept: dict[str, Any] = {}
    for path in traces:
        report = check_trace(path)
        if not report.ok:
            raise UserError(f"{path}: {'; '.join(report.problems)}")
        stats = trace_stats(open_trace(path), gammas=(4,), ratios=(0.17,))
        kept[path.name] = asdict(stats)
        (cache,) = stats.caches
        console.print(
            f"  {path.name}: {stats.requests} requests, {stats.tokens} tokens, no problem; "
            f"{stats.reuse_from_previous:.0%} of experts reused from the token before, "
            f"hit rate at 17 %: LRU {cache.lru:.0%}, Belady {cache.belady:.0%}",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
    write_json(folder / "stats.json", kept)


def demo_jobs(
    config: DictConfig, fresh: Path | None, named: list[Path], console: Console
) -> list[Job]:
    """The main comparison on the fresh recording, None while there is none, and the named traces;
    then sweeps over ratio and gamma on some of them."""
    silent, jobs = Console(quiet=True), list[Job]()
    count = positive("sweep_traces", config.sweep_traces)
    base = changed(config, trace=[str(path) for path in named])
    if not named:
        if config.acceptance is not None or config.seed:
            raise UserError("trace=[]: acceptance= and seed= are for text traces; leave them out")
        base = None if fresh is None else short_config(config, fresh)
    if fresh is not None:
        jobs += jobs_from(short_config(config, fresh), console)
    if named:
        jobs += jobs_from(base, silent)
    for key, values in (("cache_ratio", config.sweep_ratios), ("gamma", config.sweep_gammas)):
        if base is not None and (values := as_list(values)):
            sweep = jobs_from(changed(base, trace=base.trace[:count], **{key: values}), silent)
            jobs += [replace(job, sweep=True) for job in sweep]
    return jobs


def short_config(config: DictConfig, fresh: Path) -> DictConfig:
    """For the fresh recording: it is short, and more requests than a trace has are refused; it has
    drafts, and acceptance= is for text traces among the named ones."""
    asked, there = config.requests, len(open_replay(open_trace(fresh)).request_ids)
    return changed(
        config, trace=[str(fresh)], requests=asked and min(asked, there), acceptance=None, seed=0
    )


def changed(config: DictConfig, **values: Any) -> DictConfig:
    """A copy of `config` with other values."""
    copy = OmegaConf.create(OmegaConf.to_container(config))
    assert isinstance(copy, DictConfig)
    for key, value in values.items():
        copy[key] = value
    return copy


def run_winners(config: DictConfig, folder: Path, console: Console) -> int:
    """The winner on the stand-in by the run command, then, where it drafts nothing, the best policy
    that does, and a line if that is the faster; 1 if a proof fails."""
    plain, drafting = folder / "run", folder / "run_with_draft"
    codes = [run_winner(config, folder / WINNER_FILE, plain)]
    if (folder / DRAFTING_FILE).exists():
        codes.append(run_winner(config, folder / DRAFTING_FILE, drafting))
        note = other_order(folder, plain, drafting)
        if note is not None:
            console.print(note, highlight=False, soft_wrap=True)
    return max(codes)


def run_winner(config: DictConfig, winner: Path, out: Path) -> int:
    """One winner file on the stand-in."""
    return run_command.run(running_config(config, winner, out))


def running_config(config: DictConfig, winner: Path | None, out: Path) -> DictConfig:
    """Settings of a run into `out`."""
    running = compose_config(COMMANDS["run"], [])
    running.update(
        {
            "winner": None if winner is None else str(winner),
            "out": str(out),
            "workload": config.record_workload,
            "prompts": config.record_prompts,
            "decision": config.decision,
            "requests": config.run_requests,
            "max_new_tokens": config.run_tokens,
            "target": config.record_target,
            "draft_path": config.record_draft,
        }
    )
    return running
