"""`spac study paper`: the published numbers of MoE-SpAc, predicted by the simulator."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from experiments.commands import CONF
from experiments.figure_style import save_figure
from experiments.machine import Machine, machine_from
from experiments.outputs import new_folder, removed_if_unused
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.studies import paper_targets as published
from experiments.studies.paper_checks import check_rows
from experiments.studies.paper_figures import sensitivity_figure, speed_figure
from experiments.studies.paper_findings import PaperResults, paper_findings
from experiments.studies.paper_fit import (
    FITTED_FILE,
    Fitted,
    fit_acceptance,
    fit_cpu_rate,
    read_fitted,
    write_fitted,
)
from experiments.studies.paper_memory import memory_of
from experiments.studies.paper_predictions import SPAC, deepseek_systems, played, systems
from experiments.studies.paper_routing import fit_law, reached, window_union
from experiments.studies.paper_sensitivity import sensitivity_rows, variations
from experiments.studies.paper_world import (
    Play,
    World,
    generated_trace,
    play,
    with_cpu_rate,
)
from experiments.tables import write_table
from experiments.values import as_mapping, truth, whole_number
from policies.errors import UserError
from simulator.capacity import slots_from_ratio
from simulator.draft_profile import draft_profile
from simulator.model_profile import model_profile
from traces.atomic import write_atomically
from traces.manifest import ModelInfo
from traces.rows import DECODE
from traces.synthetic_routing import RoutingLaw

TARGET, SECOND = "qwen3-30b-a3b", "deepseek-v2-lite"
SECOND_DRAFT = "deepseek-7b-int4"  # the paper says no more than "int4 dense draft"
LONG = 4096
ROUTING_TOKENS = 768  # of the fit of the generator


@dataclass(frozen=True)
class Stage:
    """Where generated traces go, and how long they are."""

    folder: Path
    tokens: int
    seed: int

    def trace(self, name: str, law: RoutingLaw, machine: Machine, first: int = 0) -> Any:
        """A generated trace of the machine's target."""
        return generated_trace(
            self.folder / name, law, shape_of(machine), self.tokens, self.seed, first
        )


def run(config: DictConfig, console: Console) -> Path:
    """Fit or read, predict, vary, explain; returns the folder."""
    base, second = machine_from(config), second_machine(config)
    if base.model(shape_of(second)).name != TARGET:
        raise UserError(f"model: the study is about {TARGET}; leave model= out")
    given = FITTED_FILE if config.fitted is None else Path(str(config.fitted))
    fitted = None if truth("refit", config.refit) else read_fitted(given)
    sensitivity = truth("sensitivity", config.sensitivity)
    tokens, seed = whole_number("tokens", config.tokens), whole_number("seed", config.seed)
    with removed_if_unused(new_folder(config.outputs, "study")) as folder:
        write_run_file(folder, "study", config, {})
        with tempfile.TemporaryDirectory() as scratch:
            stage = Stage(Path(scratch), tokens, seed)
            if fitted is None:
                fitted = fit_all(base, second, stage, console)
            write_fitted(folder / "fitted.yaml", fitted)
            results = predict(base, second, fitted, stage, sensitivity, console)
        write_table(folder, results.speeds)
        write_table(folder, results.checks, "checks")
        write_table(folder, results.routing, "routing")
        write_table(folder, results.deepseek, "deepseek")
        save_figure(speed_figure(results.speeds), folder / "speeds.png")
        if len(results.sensitivity):
            write_table(folder, results.sensitivity, "sensitivity")
            save_figure(sensitivity_figure(results.sensitivity), folder / "sensitivity.png")
        write_atomically(folder / "findings.md", paper_findings(results).encode())
    return folder


def second_machine(config: DictConfig) -> Machine:
    """The same hardware with DeepSeek-V2-Lite."""
    model = as_mapping(OmegaConf.load(CONF / "model" / f"{SECOND}.yaml"))
    draft = draft_profile(as_mapping(OmegaConf.load(CONF / "draft" / f"{SECOND_DRAFT}.yaml")))
    return replace(machine_from(config), model_values=model, draft=draft)


def shape_of(machine: Machine) -> ModelInfo:
    """The target's own shape."""
    model = model_profile(machine.model_values)
    return ModelInfo(model.name, model.moe_layers, model.experts, model.top_k, 1)


def fit_all(base: Machine, second: Machine, stage: Stage, console: Console) -> Fitted:
    """Generator first, then CPU bandwidth, then acceptance."""
    with progress_bar(console, "fit", 4) as advance:
        laws = {}
        for machine in (base, second):
            shape = shape_of(machine)
            laws[shape.name] = fit_law(
                published.ROUTING[shape.name], shape, ROUTING_TOKENS, stage.seed
            )
            advance(f"routing of {shape.name}")
        trace = stage.trace("fit", laws[TARGET], base)
        world = World(base, trace, 0.0, published.SLOTS, stage.seed)
        rate = fit_cpu_rate(world)
        advance("CPU bandwidth")
        acceptance = fit_acceptance(replace(world, machine=with_cpu_rate(base, rate)))
        advance("acceptance")
    return Fitted(rate, acceptance, laws)


def predict(
    base: Machine, second: Machine, fitted: Fitted, stage: Stage, vary: bool, console: Console
) -> PaperResults:
    """Every run of the study; nothing is adjusted here."""
    base = with_cpu_rate(base, fitted.cpu_bytes_per_second)
    second = with_cpu_rate(second, fitted.cpu_bytes_per_second)
    trace = stage.trace("start", fitted.routing[TARGET], base)
    world = World(base, trace, fitted.acceptance, published.SLOTS, stage.seed)
    model, shape = base.model(world.model), world.model
    draft_slots = int(base.draft_share(shape) * shape.layers * shape.experts)
    chosen = systems(shape.layers * shape.experts, draft_slots)
    other = shape_of(second)
    small = World(
        second, stage.trace("second", fitted.routing[SECOND], second), fitted.acceptance,
        slots_from_ratio(0.17, other.layers, other.experts), stage.seed,
    )  # fmt: skip
    late = stage.trace("long", fitted.routing[TARGET], base, first=LONG - stage.tokens)
    varied = variations(world) if vary else []
    rows, rival_rows, sensitivity = [], [], []
    total = len(chosen) + len(deepseek_systems()) + 1 + len(varied)
    with progress_bar(console, "predict", total) as advance:
        for system, _, row in played(world, chosen):
            rows.append(row)
            advance(system.name)
        for system, _, row in played(small, deepseek_systems()):
            rival_rows.append(row)
            advance(f"{SECOND}: {system.name}")
        far = play(replace(world, trace=late), Play("spac", published.GAMMA))
        advance("long text")
        for row in sensitivity_rows(varied):
            sensitivity.append(row)
            advance(f"{row['unknown']} {row['value']}")
    speeds, deepseek = pd.DataFrame(rows), pd.DataFrame(rival_rows)
    near = speeds.set_index("system").loc[SPAC]
    passes = near["tokens_per_second"] / near["tokens_per_pass"]
    long = far.tokens_per_second / far.tokens_per_pass / passes
    memory = memory_of(base, model, published.LARGEST_RATIO)
    return PaperResults(
        fitted=fitted,
        speeds=speeds,
        deepseek=deepseek,
        checks=check_rows(speed_by_name(speeds), speed_by_name(deepseek), long, memory),
        routing=pd.concat([routing_rows(world), routing_rows(small)], ignore_index=True),
        sensitivity=pd.DataFrame(sensitivity),
        memory=memory,
        draft_kv_ms=draft_kv_ms(base),
    )


def speed_by_name(rows: pd.DataFrame) -> dict[str, float]:
    """System -> TPS."""
    return dict(zip(rows["system"], rows["tokens_per_second"], strict=True))


def routing_rows(world: World) -> pd.DataFrame:
    """The statistics reached by the trace in use, beside the published ones."""
    batch = world.trace.load()
    experts = batch.experts[batch.phase == DECODE]
    shape = world.model
    rows = [
        {
            "model": shape.name,
            "statistic": one.kind if one.kind == "reuse" else f"{one.kind} at {one.ratio:.1%}",
            "published": one.value,
            "generated": reached(experts, shape.experts, one),
        }
        for one in published.ROUTING[shape.name]
    ]
    for count in (2, 5, 9):
        name = f"distinct experts of {count} rows"
        rows.append(
            {"model": shape.name, "statistic": name, "published": None,
             "generated": window_union(experts, count)}
        )  # fmt: skip
    return pd.DataFrame(rows)


def draft_kv_ms(machine: Machine) -> float:
    """Time that one draft step needs to read its KV of LONG tokens, which the cost table leaves
    out."""
    gpu = machine.hardware.gpu
    rate = gpu.bytes_per_second * gpu.dense_efficiency
    return 1e3 * LONG * machine.draft.kv_bytes_per_token / rate
