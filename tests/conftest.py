"""Every test draws the same numbers wherever and in whatever order it runs."""

import random
import signal
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("same_examples", derandomize=True)
settings.load_profile("same_examples")


@pytest.fixture(autouse=True)
def seeded_draws() -> None:
    """Global generators start afresh, so that a test never depends on those before it (the tests
    are spread over processes) and a failure repeats. torch is seeded where it is loaded: its own
    first seed is fixed too."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (libraries draw from it)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C works in tests and in what they start, even if they run as a background job, from
    which the shell keeps it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
