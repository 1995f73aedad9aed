"""`spac simulate`: one policy on one trace, every metric on the terminal, the run log on disk."""

from dataclasses import asdict
from pathlib import Path

from omegaconf import DictConfig
from rich.console import Console

from experiments.compare import digests
from experiments.comparison import Job, play, refuse_impossible
from experiments.figure_style import save_figure
from experiments.lanes_figure import pass_lanes_figure
from experiments.machine import capacities_from, machine_from
from experiments.metrics_table import metrics_table
from experiments.outcome import RUNLOGS
from experiments.outputs import new_folder, removed_if_unused
from experiments.policy_choice import choose_policies
from experiments.provenance import write_run_file
from experiments.setting import settings_from
from experiments.terminal import terminal
from experiments.trace_choice import acceptance_from, open_workloads, refuse_idle_seed
from experiments.values import as_list, as_mapping, whole_number
from policies.errors import UserError
from simulator.engines import choose_engine
from traces.metrics import metrics
from traces.report_json import write_json
from traces.window_caches import belady_of_run

GAMMA = 4


def run(config: DictConfig) -> int:
    """Simulate, print, write run log, metrics.json and the picture of a typical pass."""
    console = terminal()
    job = job_from(config)
    refuse_impossible([job])
    with removed_if_unused(new_folder(config.outputs, "simulate")) as folder:
        return _simulate(config, job, folder, console)


def _simulate(config: DictConfig, job: Job, folder: Path, console: Console) -> int:
    workload = open_workloads([str(job.trace)], job.acceptance, job.seed)[0]
    write_run_file(folder, "simulate", config, digests([job]))
    console.print(job.setting.scale_note(workload.replay.model), highlight=False, soft_wrap=True)
    engine = choose_engine(job.choice.build(), job.setting.engine)  # type: ignore[arg-type]
    console.print(f"engine: {engine.engine} ({engine.reason})", highlight=False, soft_wrap=True)
    console.print(f"decision times: {job.setting.decision_source}", highlight=False, soft_wrap=True)
    _, log = play(job, folder / RUNLOGS / f"1-{job.choice.name}-{job.trace.name}")
    result, best = metrics(log), belady_of_run(log)
    kept = asdict(result) | {"belady_hit_rate_per_window": best}
    write_json(folder / "metrics.json", kept)
    console.print(metrics_table(result, f"{job.label} on {job.workload}", best))
    picture = save_figure(pass_lanes_figure(log), folder / "verify_pass_lanes.png")
    for path in (picture, folder / "metrics.json", folder / RUNLOGS):
        console.print(str(path), highlight=False, soft_wrap=True)
    return 0


def job_from(config: DictConfig) -> Job:
    """The one run that the config describes; a list is refused."""
    for key in ("trace", "policy", "cache_ratio", "slots", "gamma"):
        if len(as_list(config[key])) != 1:
            raise UserError(f"{key}={config[key]}: simulate plays one; spac compare plays grids")
    acceptance = acceptance_from(config.acceptance)
    (workload,) = open_workloads([str(config.trace)], acceptance, whole_number("seed", config.seed))
    refuse_idle_seed([workload], config.seed)
    choices = choose_policies([str(config.policy)], as_mapping(config.overrides))
    if len(choices) != 1:
        raise UserError("a list of parameter values is a grid; spac compare plays grids")
    capacities = capacities_from(config, [config.cache_ratio], [config.slots])
    gamma = config.gamma
    if gamma is None:
        gamma = GAMMA if choices[0].gamma is None else choices[0].gamma
    (setting,) = settings_from(config, machine_from(config), capacities, [gamma])
    return Job(
        workload.name, workload.path, workload.acceptance, workload.seed, setting, choices[0],
        choices[0].label,
    )  # fmt: skip
