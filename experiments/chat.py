"""A small chat in the terminal, and its quiet sister that reads prompts from a pipe."""

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from experiments.answers import Answer, answer, closing_line
from experiments.conversation import Conversation
from experiments.interrupts import Interrupts
from experiments.run_choice import RunChoice
from policies.errors import UserError
from runtime.engine import OffloadedEngine

HELP = "/reset forgets the conversation, /exit or Ctrl-D leaves, Ctrl-C stops an answer"
PROMPT = "> "
COMMANDS = ("/reset", "/exit", "/help")
LEAST_ROOM = 2  # tokens of an answer: the first comes from reading the prompt


def chat(engine: OffloadedEngine, choice: RunChoice, interrupts: Interrupts) -> Iterator[Answer]:
    """Ask, answer, and so on until the person leaves. Yields the answers."""
    conversation = Conversation(choice.tokenizer)
    note(f"{conversation.style}; {HELP}")
    for line in _lines_of_a_person(interrupts):
        if line == "/reset":
            conversation.reset()
            note("forgotten")
        elif line == "/help" or (line.startswith("/") and " " not in line):
            note(HELP if line == "/help" else f"{line}: there are {', '.join(COMMANDS)}")
        else:
            yield from _turn(engine, choice, interrupts, conversation, line)


def _turn(
    engine: OffloadedEngine,
    choice: RunChoice,
    interrupts: Interrupts,
    conversation: Conversation,
    line: str,
) -> Iterator[Answer]:
    try:
        tokens = conversation.ask(line)
    except UserError as error:  # the template refuses
        conversation.take_back()
        note(str(error))
        return
    room = engine.room - len(tokens)
    if room < LEAST_ROOM:
        conversation.take_back()
        note(f"{len(tokens)} tokens, and there is room for {engine.room}: /reset forgets")
        return
    limit = min(choice.max_new_tokens, room)
    given = answer(engine, choice, tokens, limit, interrupts, show)
    conversation.answered(given.text)
    note(closing_line(engine, given.request, len(given.tokens)))
    if interrupts.take():
        note("stopped")
    yield given


def read_prompts_of_lines(lines: Iterable[str]) -> Iterator[str]:
    """Lines that are not blank, without their ends; UserError for one that is no text."""
    read = 0
    try:
        for line in lines:
            line.encode()
            read += 1
            if line.strip():
                yield line.rstrip("\n")
    except UnicodeError as error:  # of the stream itself, or of what it has put for foreign bytes
        raise UserError(
            f"standard input, after line {read}: no text in UTF-8 ({error.args[-1]})"
        ) from error


def show(text: str) -> None:
    """To the terminal at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def note(text: str) -> None:
    """What is about the chat and not of it goes to the other stream."""
    print(text, file=sys.stderr, flush=True)


def _lines_of_a_person(interrupts: Interrupts) -> Iterator[str]:
    """Until /exit or the end of input; Ctrl-C gives a fresh line."""
    with suppress(ImportError):
        importlib.import_module("readline")  # line editing and history where the platform has it
    while True:
        try:
            with interrupts.raising():
                line = input(PROMPT).strip()
        except KeyboardInterrupt:
            note("\n/exit or Ctrl-D leaves")
            continue
        except UnicodeDecodeError:
            note("no text in UTF-8")
            continue
        except EOFError:
            show("\n")
            return
        if line == "/exit":
            return
        if line:
            yield line
