"""A line on stderr when kernels begin to compile, whatever command meets them first: the wait of a
first use is explained, and one for a cache that keeps nothing is not overlooked."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core.event import Event, Listener, install_listener

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
        if not self._told:
            self._told = True
            print(NOTICE, file=sys.stderr, flush=True)

    def on_end(self, event: Event) -> None:
        pass


@contextmanager
def compile_notice() -> Iterator[None]:
    """Inside, the first kernel that this process compiles is told of."""
    with install_listener(COMPILING, _Teller()):
        yield
