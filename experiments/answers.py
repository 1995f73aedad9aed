"""One answer of an engine, shown while it grows, with a closing line of figures."""

import math
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from experiments.interrupts import Interrupts
from experiments.run_choice import RunChoice
from runtime.engine import OffloadedEngine
from runtime.text_stream import TextStream
from traces.metrics import metrics
from traces.runlog import read_runlog
from traces.runlog_schema import DECODE_PHASE

Show = Callable[[str], None]


@dataclass(frozen=True)
class Answer:
    """`request`: its number in the run log; `text` is what was shown, without a stop string."""

    request: int
    tokens: list[int]
    text: str


def answer(
    engine: OffloadedEngine,
    choice: RunChoice,
    prompt: Sequence[int],
    max_new_tokens: int,
    interrupts: Interrupts,
    show: Show,
) -> Answer:
    """Continue `prompt`, up to the end of a line. Ctrl-C ends the answer with the pass at hand; it
    stays noted.
    """
    stream = TextStream(choice.tokenizer, choice.stop_strings, engine.facts.end_tokens)
    request, tokens = engine.requests, list[int]()
    blocks = engine.generate(prompt, max_new_tokens, stop_strings=choice.stop_strings)
    try:
        with closing(blocks):
            for block in blocks:
                tokens += block
                show(printable(stream.push(block)))
                if interrupts.pressed:
                    break
    finally:
        show(printable(stream.finish()) + "\n")
    return Answer(request, tokens, stream.text)


def closing_line(engine: OffloadedEngine, request: int, tokens: int) -> str:
    """Speed, acceptance and hit rate of one request, from the run log."""
    assert engine.log_path is not None
    engine.keep_log()
    log = read_runlog(engine.log_path)
    passes = log.passes[log.passes["request"] == request]
    said = f"{tokens} tokens"
    if not (passes["phase"] == DECODE_PHASE).any():
        return f"{said}, all from reading the prompt"
    figures = metrics(replace(log, passes=passes))
    accepted = figures.acceptance_reached
    drafts = "no drafts" if math.isnan(accepted) else f"{accepted:.0%} of checked drafts accepted"
    return (
        f"{said}, {figures.tokens_per_second:.1f} tokens/s, {drafts}, "
        f"{figures.hit_rate_per_expert:.0%} of experts hit"
    )


def printable(text: str) -> str:
    """Without control characters but line breaks and tabs: a model must not steer the terminal."""
    return "".join(
        character if character in "\n\t" or unicodedata.category(character) != "Cc" else "\ufffd"
        for character in text
    )
