"""Take one wait out of the engine and the hazard checker must say so: the zero elsewhere means
something.
"""

from typing import Any

import pytest
from conftest import LoadedPair
from offload_setup import ForcedPolicy, tiny_engine

from runtime.device import COMPUTE, COPY
from runtime.hazards import HazardChecker
from runtime.standin import StandIn

PROMPT = [10, 20, 30, 40, 50]


class ForgetfulStandIn(StandIn):
    """Does not wait on one of its streams."""

    def __init__(self, checker: HazardChecker, deaf: str) -> None:
        super().__init__({}, checker)
        self._deaf = deaf

    def wait(self, stream: Any, event: Any) -> None:
        if stream.name != self._deaf:
            super().wait(stream, event)


def hazards(tiny: LoadedPair, deaf: str) -> list[str]:
    """Kinds of hazards of a run with every placement and many evictions."""
    checker = HazardChecker()
    device = ForgetfulStandIn(checker, deaf)
    with tiny_engine(tiny.path, ForcedPolicy("MIXED"), device, slots=4, staging=1) as engine:
        for _ in engine.generate(PROMPT, 16):
            pass
    return [hazard.kind for hazard in checker.hazards]


def test_nothing_is_reported_while_all_waits_are_there(tiny: LoadedPair) -> None:
    assert hazards(tiny, deaf="none") == []


@pytest.mark.parametrize(
    ("deaf", "kind"), [(COPY, "write after read"), (COMPUTE, "read after write")]
)
def test_a_missing_wait_is_reported(deaf: str, kind: str, tiny: LoadedPair) -> None:
    assert kind in hazards(tiny, deaf)
