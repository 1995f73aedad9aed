"""`spac run`: generate text with a policy, measure it, prove that it is right."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from omegaconf import DictConfig
from rich.console import Console

from experiments import proofs
from experiments.outputs import new_folder
from experiments.proofs import Proof
from experiments.provenance import write_run_file
from experiments.record import SMALL, token_bar
from experiments.run_choice import RunChoice, choose_run
from experiments.simulate import metrics_table
from policies.api import Routing
from policies.errors import UserError
from policies.session import Session
from policies.sources import source_hash
from runtime.device import DeviceError
from runtime.engine import OffloadedEngine
from runtime.hazards import HazardChecker
from runtime.observation_replay import RecordedLandings
from runtime.tokenizers import tokenizer_hash
from traces.atomic import write_atomically
from traces.metrics import metrics
from traces.runlog import read_runlog

RUNLOG = "runlog"
UNFINISHED = "\ufffd"  # a character whose last bytes are in a token to come


def run(config: DictConfig) -> int:
    """Generate, print figures and proofs, keep run log, metrics.json, texts.json, proofs.json.

    The keys are explained in conf/run.yaml. Exit code 1 if a proof fails.
    """
    console = Console()
    choice = choose_run(config)
    if choice.facts.hidden < SMALL:
        # A second thread would wait in a spin barrier for longer than it computes.
        torch.set_num_threads(1)
    folder = _folder(config)
    write_run_file(folder, "run", config, {"tokenizer": tokenizer_hash(choice.target)})
    announce(choice, console)
    checker = HazardChecker() if config["proofs"] and choice.on_standin else None
    stream = config["prompt"] is not None
    try:
        texts, engine = generate(choice, folder / RUNLOG, console, stream, checker)
    except DeviceError as error:
        console.print(f"error: {error}; finished passes are in {folder / RUNLOG}", **_PLAIN)
        return 1
    decoded = [choice.tokenizer.decode(text) for text in texts]
    write_atomically(folder / "texts.json", json.dumps(decoded, indent=2).encode())
    figures = metrics(read_runlog(folder / RUNLOG))
    write_atomically(folder / "metrics.json", json.dumps(asdict(figures), indent=2).encode())
    console.print(
        metrics_table(figures, f"{choice.policy.label}, measured on {engine.device.name}")
    )
    tried = []
    if config["proofs"]:
        tried = prove(choice, engine, texts, console)
        tried += [] if checker is None else [proofs.ordered(checker)]
        keep(tried, folder, console)
    console.print(str(folder), highlight=False, soft_wrap=True)
    return 1 if any(proof.holds is False for proof in tried) else 0


def announce(choice: RunChoice, console: Console) -> None:
    """One line on what is run; one more if a winner was found by other code."""
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
        "are measured", **_PLAIN,
    )  # fmt: skip
    if choice.winner is not None and choice.winner.source_hash != source_hash():
        console.print("note: the winner was found with other versions of policies or simulator")


def generate(
    choice: RunChoice,
    log: Path,
    console: Console,
    stream: bool,
    checker: HazardChecker | None = None,
) -> tuple[list[list[int]], OffloadedEngine]:
    """New tokens of every prompt, and the closed engine. The first of several is warm-up."""
    rehearse(choice)
    engine = OffloadedEngine(
        choice.target, choice.draft, choice.device(checker), choice.policy.build(), choice.costs,
        choice.settings, log,
    )  # fmt: skip
    texts: list[list[int]] = []
    total = len(choice.prompts) * choice.max_new_tokens
    with engine:
        if stream:
            texts.append(_print_stream(choice, engine, console))
            return texts, engine
        with token_bar(console, choice.policy.label, total) as show:
            for number, prompt in enumerate(choice.prompts):
                warmup = number == 0 and len(choice.prompts) > 1
                texts.append([])
                for block in engine.generate(prompt.tokens, choice.max_new_tokens, warmup):
                    texts[-1] += block
                    show(number, sum(map(len, texts)))
    return texts, engine


def rehearse(choice: RunChoice) -> None:
    """Ask a policy of the same kind once, so that compiling its kernels is not measured."""
    settings, facts = choice.settings, choice.facts
    shape = settings.shape(len(facts.moe_layers), facts.experts, facts.top_k)
    session = Session(choice.policy.build(), shape, choice.costs, RecordedLandings())
    session.start_request(np.array(choice.prompts[0].tokens, np.int32))
    session.start_pass(0)
    if settings.gamma:
        session.draft_step(0, 0)
    experts = np.arange(facts.top_k, dtype=np.int32)[None]
    weights = np.full(experts.shape, 1.0 / facts.top_k)
    session.enter_layer(Routing(0, experts, weights, experts[None]))
    session.leave_layer(0)
    session.end_pass(0)


def prove(
    choice: RunChoice,
    engine: OffloadedEngine,
    texts: list[list[int]],
    console: Console,
) -> list[Proof]:
    """Same text, same plans from the same observations, same plans as the simulator."""
    build, tokens = choice.policy.build, choice.max_new_tokens
    with console.status("proving"):
        return [
            proofs.lossless(engine, choice.prompts, texts, tokens),
            proofs.replayed(engine, build, choice.costs),
            proofs.logical_time(engine, choice.prompts, build, choice.device, tokens),
        ]


def keep(tried: list[Proof], folder: Path, console: Console) -> None:
    """Write proofs.json and print the table."""
    data = json.dumps([proof.as_data() for proof in tried], indent=2)
    write_atomically(folder / "proofs.json", data.encode())
    console.print(proofs.proofs_table(tried))


def _folder(config: DictConfig) -> Path:
    if config["out"] is None:
        return new_folder(config["outputs"], "run")
    folder = Path(config["out"])
    if folder.exists():
        raise UserError(f"out={folder} exists; nothing is overwritten, name a new folder")
    folder.mkdir(parents=True)
    return folder


def _print_stream(choice: RunChoice, engine: OffloadedEngine, console: Console) -> list[int]:
    (prompt,) = choice.prompts
    console.print(choice.tokenizer.decode(prompt.tokens), end="", style="dim", **_PLAIN)
    text: list[int] = []
    for part in _pieces(choice, engine.generate(prompt.tokens, choice.max_new_tokens), text):
        console.print(part, end="", **_PLAIN)
    console.print()
    return text


def _pieces(choice: RunChoice, blocks: Iterator[list[int]], text: list[int]) -> Iterator[str]:
    """Text as it grows, only whole characters; collects the tokens in `text`."""
    shown = ""
    for block in blocks:
        text += block
        decoded = choice.tokenizer.decode(text).rstrip(UNFINISHED)
        yield decoded[len(shown) :]
        shown = decoded


_PLAIN = {"markup": False, "highlight": False, "soft_wrap": True}
