"""A command that Ctrl-C tears out of a library which then fails in its own clean-up."""

import signal
from typing import Any


def run(config: Any) -> int:
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        config.no_such_key.cache_to_invalidate()
    return 0
