"""How an engine ends: with its core, whole on success, broken off on an error."""

from types import TracebackType
from typing import Self

from runtime.engine_core import EngineCore
from traces.runlog import RunLog


class CoreOwner:
    """What engines share: a context that closes `_core`, and its log."""

    _core: EngineCore

    def runlog(self) -> RunLog:
        """The log of an engine without a directory, once it is closed."""
        return self._core.runlog()

    def close(self) -> None:
        """Let the last copies land, write the rest of the log, stop all threads."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._core.close()
        else:
            self._core.abandon()
