"""The host thread: takes one decision after another, in program order, and issues their copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import simpy

from simulator.clock import Clock
from simulator.link import Copy, Link, Process


@dataclass(eq=False)
class Decided:
    """A decision under way: may begin at `ready_ns`, takes `decision_ns`, then `copies` enter the
    link and `done` fires; `done_ns` is then known."""

    ready_ns: int
    decision_ns: int
    copies: Sequence[Copy]
    done: simpy.Event
    done_ns: int = -1


class Host:
    """One thread. A decision begins at max(ready, end of the one before)."""

    def __init__(self, env: Clock, link: Link) -> None:
        self.env = env
        self.link = link
        self._queue = simpy.Store(env)
        env.process(self._run())

    def decide(self, ready_ns: int, decision_ns: int, copies: Sequence[Copy]) -> Decided:
        """Queue a decision; `ready_ns` is now or later."""
        decided = Decided(ready_ns, decision_ns, copies, self.env.event())
        self._queue.put(decided)
        return decided

    def _run(self) -> Process:
        while True:
            decided: Decided = yield self._queue.get()
            yield self.env.timeout(max(0, decided.ready_ns - self.env.now_ns))
            yield self.env.timeout(decided.decision_ns)
            decided.done_ns = self.env.now_ns
            for copy in decided.copies:
                self.link.issue(copy)
            decided.done.succeed()
