"""A line on stderr when kernels begin to compile, whatever command meets them first: the wait of a
first use is explained, and one for a cache that keeps nothing is not overlooked."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Event, Listener, install_listener

from policies.sources import PACKAGES

COMPILING = "numba:compile"  # not for machine code that is found on the disk
NOTICE = (
    "compiling kernels, once after an installation or a change of them; up to 20 s on two quiet "
    "cores ..."
)


class _Teller(Listener):
    """Tells of the first compilation only."""

    def __init__(self) -> None:
        self._told = False

    def on_start(self, event: Event) -> None:
        if not self._told and is_kernel(event.data["dispatcher"]):
            self._told = True
            print(NOTICE, file=sys.stderr, flush=True)

    def on_end(self, event: Event) -> None:
        pass


def is_kernel(dispatcher: Any) -> bool:
    """One of this project. Small functions of numba's own are compiled in every process."""
    # Functions that numba writes itself may have no module.
    module = str(dispatcher.py_func.__module__)
    return module.partition(".")[0] in PACKAGES


@contextmanager
def compile_notice() -> Iterator[None]:
    """Inside, the first kernel that this process compiles is told of."""
    with install_listener(COMPILING, _Teller()):
        yield
