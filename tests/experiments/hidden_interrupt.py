"""A command whose Ctrl-C is hidden or lost in the way that $HIDDEN_BY names."""

import os
import signal
import time
from typing import Any

from policies.errors import UserError


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def failing_clean_up() -> None:
    try:
        press()
    finally:
        raise AttributeError("half undone")


def other_error() -> None:
    try:
        press()
    except KeyboardInterrupt:
        raise ValueError("could not determine a shape") from None


def refused() -> None:
    try:
        press()
    except KeyboardInterrupt:
        raise UserError("half read") from None


class Dropping:
    def __del__(self) -> None:
        press()


def dropped() -> None:
    Dropping()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.001)


def terminated() -> None:
    signal.raise_signal(signal.SIGTERM)


def terminated_and_hidden() -> None:
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        raise ValueError("could not determine a shape") from None


def nothing() -> None:
    raise ZeroDivisionError


WAYS = {
    way.__name__: way
    for way in (
        failing_clean_up, other_error, refused, dropped, terminated, terminated_and_hidden, nothing,
    )
}  # fmt: skip


def run(config: Any) -> int:
    WAYS[os.environ["HIDDEN_BY"]]()
    return 0
