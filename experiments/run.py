"""`spac run`: generate text with a policy, measure it, prove that it is right."""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from omegaconf import DictConfig
from rich.console import Console

from experiments import proofs
from experiments.chat import note
from experiments.forced_run import refuse_idle, run_forced
from experiments.generation import Serve, open_engine, server
from experiments.interrupts import Interrupts
from experiments.memory_table import ONLY, plan_line, plan_of, show_plan_only
from experiments.metrics_table import metrics_table
from experiments.outputs import new_folder, removed_if_unused
from experiments.proofs import Proof
from experiments.provenance import write_run_file
from experiments.record import SMALL
from experiments.run_choice import RunChoice, choose_policy, choose_run
from experiments.run_report import RUNLOG, figures_of
from experiments.terminal import terminal
from experiments.winner import read_winner
from policies.errors import UserError
from policies.sources import source_hash
from policies.streaming import check_staging
from runtime.device import DeviceError
from runtime.engine import OffloadedEngine
from runtime.engine_core import refuse_clairvoyant
from runtime.failures import as_device_error
from runtime.hazards import HazardChecker
from runtime.host_cores import reserve_cores
from runtime.prompts import Prompt, check_prompts
from runtime.run_memory import positions_of
from runtime.tokenizers import tokenizer_hash
from runtime.verify_rules import make_rule
from traces.atomic import write_atomically
from traces.report_json import write_json

Texts = list[tuple[Prompt, list[int]]]
FORCED = "forced"


def run(config: DictConfig) -> int:
    """Generate, print figures and proofs, keep run log, metrics.json, texts.json, proofs.json.

    The keys are explained in conf/run.yaml. Exit code 1 if a proof fails.
    """
    if config["mode"] == FORCED:
        winner = None if config["winner"] is None else read_winner(config["winner"])
        policy = choose_policy(config, winner)
        return run_forced(config, policy, winner, lambda: _folder(config))
    refuse_idle(config)
    choice = choose_run(config)
    # Answers alone go to standard output, so that they can be piped on.
    console = terminal(stderr=choice.source != "workload")
    if choice.facts.hidden < SMALL:
        # A second thread would wait in a spin barrier for longer than it computes.
        torch.set_num_threads(1)
    elif not choice.on_standin:
        reserve_cores()
    if choice.plan == ONLY:
        show_plan_only(choice, plan_of(choice), console)
        return 0
    refuse_impossible(choice)
    serve = server(choice, console)
    with removed_if_unused(_folder(config)) as folder:
        return _run(config, choice, serve, folder, console)


def _run(
    config: DictConfig, choice: RunChoice, serve: Serve, folder: Path, console: Console
) -> int:
    write_run_file(folder, "run", config, {"tokenizer": tokenizer_hash(choice.target)})
    announce(choice, console)
    checker = HazardChecker() if choice.proofs and choice.on_standin else None
    texts: Texts = []
    try:
        engine = generate(choice, serve, folder / RUNLOG, checker, texts)
    finally:
        if texts:
            decoded = [choice.tokenizer.decode(tokens) for _, tokens in texts]
            write_atomically(folder / "texts.json", json.dumps(decoded, indent=2).encode())
    tell(choice, folder, engine.device.name, console)
    tried = []
    if choice.proofs:
        tried = prove(choice, engine, texts, console)
        tried += [] if checker is None else [proofs.ordered(checker)]
        keep(tried, folder, console)
    console.print(str(folder), highlight=False, soft_wrap=True)
    return 1 if any(proof.holds is False for proof in tried) else 0


def refuse_impossible(choice: RunChoice) -> None:
    """UserError for what needs no loaded model to be known as impossible; the engine would refuse
    it as well, later.
    """
    policy, settings = choice.policy.build(), choice.settings
    refuse_clairvoyant(policy)
    check_staging(policy, settings.staging)
    cpu = torch.device("cpu")
    make_rule(settings.sampling, choice.facts.vocabulary, cpu, settings.truncation)
    plan_of(choice)
    room = choice.max_new_tokens + choice.settings.gamma
    positions = positions_of(choice.facts, choice.draft)
    check_prompts(choice.prompts, choice.facts.vocabulary, room, positions)


def announce(choice: RunChoice, console: Console) -> None:
    """What is run, in how much memory; one more line if a winner was found by other code."""
    settings = choice.settings
    total = len(choice.facts.moe_layers) * choice.facts.experts
    console.print(
        f"{choice.policy.label} on {choice.facts.name}: {settings.slots} of {total} experts in "
        f"slots, gamma {settings.gamma}, {choice.hardware.name}, {settings.mode}",
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"decision times in the policy's cost table: {choice.decision_source}; those of this run "
        "are measured",
        highlight=False,
        soft_wrap=True,
    )
    console.print(plan_line(choice, plan_of(choice)), highlight=False, soft_wrap=True)
    if choice.winner is not None and choice.winner.source_hash != source_hash():
        console.print("note: the winner was found with other versions of policies or simulator")


def generate(
    choice: RunChoice, serve: Serve, log: Path, checker: HazardChecker | None, texts: Texts
) -> OffloadedEngine:
    """Fill `texts` as they come; the closed engine.

    UserError where the machine fails, KeyboardInterrupt for Ctrl-C: both leave a readable log.
    """
    try:
        with Interrupts() as interrupts:
            with interrupts.raising():
                engine = open_engine(choice, log, checker)
            with engine:
                for prompt, tokens in serve(engine, interrupts):
                    texts.append((prompt, tokens))
        return engine
    except Exception as error:
        known = error if isinstance(error, DeviceError) else as_device_error(error)
        if known is None:
            raise
        kept = f"; finished passes are in {log}, which is marked incomplete"
        raise UserError(f"{known}{kept if log.exists() else ''}") from error


def tell(choice: RunChoice, folder: Path, device: str, console: Console) -> None:
    """Keep metrics.json; print the table of a workload."""
    figures = figures_of(folder / RUNLOG)
    if figures is None:
        note("no answer of more than one token: nothing was measured")
        return
    write_json(folder / "metrics.json", asdict(figures))
    if choice.source == "workload":
        console.print(metrics_table(figures, f"{choice.policy.label}, measured on {device}"))


def prove(
    choice: RunChoice, engine: OffloadedEngine, texts: Texts, console: Console
) -> list[Proof]:
    """Same text, same plans from the same observations, same plans as the simulator."""
    build, tokens = choice.policy.build, choice.max_new_tokens
    prompts = [prompt for prompt, _ in texts]
    with console.status("proving"):
        return [
            proofs.lossless(
                engine, prompts, [text for _, text in texts], tokens, choice.stop_strings
            ),
            proofs.replayed(engine, build, choice.costs),
            proofs.logical_time(engine, prompts, build, choice.device, tokens),
        ]


def keep(tried: list[Proof], folder: Path, console: Console) -> None:
    """Write proofs.json and print the table."""
    write_json(folder / "proofs.json", [proof.as_data() for proof in tried])
    console.print(proofs.proofs_table(tried))


def _folder(config: DictConfig) -> Path:
    if config["out"] is None:
        return new_folder(config["outputs"], "run")
    folder = Path(config["out"])
    if folder.exists():
        raise UserError(f"out={folder} exists; nothing is overwritten, name a new folder")
    folder.mkdir(parents=True)
    return folder
