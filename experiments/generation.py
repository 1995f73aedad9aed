"""The four ways in which `spac run` gets its prompts, and the engine that answers them."""

import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from rich.console import Console

from experiments.answers import Answer, answer, closing_line, printable
from experiments.chat import chat, note, read_prompts_of_lines, show
from experiments.interrupts import Interrupts
from experiments.record import token_bar
from experiments.run_choice import RunChoice
from policies.api import Routing
from policies.errors import UserError
from policies.session import Session
from runtime.engine import OffloadedEngine
from runtime.hazards import HazardChecker
from runtime.observation_replay import RecordedLandings
from runtime.prompts import Prompt

Serve = Callable[[OffloadedEngine, Interrupts], Iterator[tuple[Prompt, list[int]]]]


def open_engine(choice: RunChoice, log: Path, checker: HazardChecker | None) -> OffloadedEngine:
    """The engine of a run, its policy's kernels compiled."""
    rehearse(choice)
    return OffloadedEngine(
        choice.target, choice.draft, choice.device(checker), choice.policy.build(), choice.costs,
        choice.settings, log,
    )  # fmt: skip


def server(choice: RunChoice, console: Console) -> Serve:
    """What yields each prompt with its new tokens, also one that was interrupted. UserError at once
    if there is nothing to answer.
    """
    if choice.source == "workload":
        return lambda engine, interrupts: _workload(choice, console, engine, interrupts)
    if choice.source == "chat":
        return lambda engine, interrupts: _chat(choice, engine, interrupts)
    if choice.source == "prompt":
        return lambda engine, interrupts: _answers(choice, _echoed(choice), engine, interrupts)
    lines = read_prompts_of_lines(sys.stdin)
    first = next(lines, None)
    if first is None:
        raise UserError(
            "no prompt: give prompt=, workload= or prompts=, or lines of text on standard input"
        )
    prompts = _prompts_of(choice, first, lines)
    return lambda engine, interrupts: _answers(choice, prompts, engine, interrupts)


def rehearse(choice: RunChoice) -> None:
    """Ask a policy of the same kind once, so that compiling its kernels is not measured."""
    settings, facts = choice.settings, choice.facts
    shape = settings.shape(len(facts.moe_layers), facts.experts, facts.top_k)
    session = Session(choice.policy.build(), shape, choice.costs, RecordedLandings())
    session.start_request(np.zeros(1, np.int32))
    session.start_pass(0)
    if settings.gamma:
        session.draft_step(0, 0)
    experts = np.arange(facts.top_k, dtype=np.int32)[None]
    weights = np.full(experts.shape, 1.0 / facts.top_k)
    session.enter_layer(Routing(0, experts, weights, experts[None]))
    session.leave_layer(0)
    session.end_pass(0)


def _workload(
    choice: RunChoice, console: Console, engine: OffloadedEngine, interrupts: Interrupts
) -> Iterator[tuple[Prompt, list[int]]]:
    """All prompts under a bar; the first of several is warm-up."""
    total, done = len(choice.prompts) * choice.max_new_tokens, 0
    with token_bar(console, choice.policy.label, total) as progress:
        for number, prompt in enumerate(choice.prompts):
            warmup = number == 0 and len(choice.prompts) > 1
            text: list[int] = []
            blocks = engine.generate(
                prompt.tokens, choice.max_new_tokens, warmup, choice.stop_strings
            )
            for block in blocks:
                text += block
                progress(number, done + len(text))
                if interrupts.pressed:
                    break
            blocks.close()
            done += len(text)
            yield prompt, text
            interrupts.check()


def _answers(
    choice: RunChoice,
    prompts: Iterator[Prompt],
    engine: OffloadedEngine,
    interrupts: Interrupts,
) -> Iterator[tuple[Prompt, list[int]]]:
    for prompt in prompts:
        given = answer(engine, choice, prompt.tokens, choice.max_new_tokens, interrupts, show)
        note(closing_line(engine, given.request, len(given.tokens)))
        yield prompt, given.tokens
        interrupts.check()


def _chat(
    choice: RunChoice, engine: OffloadedEngine, interrupts: Interrupts
) -> Iterator[tuple[Prompt, list[int]]]:
    given: Answer
    for given in chat(engine, choice, interrupts):
        yield Prompt(f"turn {given.request}", ()), given.tokens


def _echoed(choice: RunChoice) -> Iterator[Prompt]:
    for prompt in choice.prompts:
        show(printable(choice.tokenizer.decode(prompt.tokens)))
        yield prompt


def _prompts_of(choice: RunChoice, first: str, lines: Iterator[str]) -> Iterator[Prompt]:
    for number, line in enumerate(chain([first], lines), start=1):
        yield Prompt(f"line {number}", tuple(choice.tokenizer.encode(line)))
