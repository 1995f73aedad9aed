"""Section decisions: how long the host takes for a policy's decisions, asked from Python as the
runtime asks; the file of these times that both engines can charge."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from experiments.benchmarks.host import host_facts, host_slug
from experiments.benchmarks.measures import Bench, Measure
from experiments.benchmarks.scene import Scene, make_scene
from experiments.benchmarks.timing import spread
from experiments.decision_file import DecisionFile, PolicyTimes, as_yaml
from experiments.policy_choice import PolicyChoice
from policies.api import Shape
from policies.decision import STREAMED
from policies.session import NO_SLOTS, Session
from simulator.foresight import clairvoyant_gamma, future_of, is_clairvoyant
from simulator.observed import observed_routing
from traces.atomic import write_atomically

SECTION = "decisions"
FILE = "decisions.yaml"
WARMUP_PASSES = 2
SPAC_GOAL_US = 20.0


class SlowLink:
    """A backend that lets one copy land before each decision: about what a link does in a layer."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[np.ndarray, np.ndarray]] = deque()

    def start_copy(self, expert: int, slot: int, generation: int, kind: int) -> None:
        """Queue a copy; streamed experts never occupy a slot."""
        if kind != STREAMED:
            self.waiting.append((np.array([slot]), np.array([generation])))

    def landed(self) -> tuple[np.ndarray, np.ndarray]:
        """The oldest copy, or none."""
        return self.waiting.popleft() if self.waiting else (NO_SLOTS, NO_SLOTS)


@dataclass
class Timings:
    """Ns of each decision, by its kind."""

    layer: list[int] = field(default_factory=list)
    leave: list[int] = field(default_factory=list)
    draft: list[int] = field(default_factory=list)

    def times(self) -> PolicyTimes:
        """Medians and 99th percentiles; 0 for a kind that the policy never decides."""
        values: dict[str, int] = {}
        for kind, taken in asdict(self).items():
            found = spread(taken) if taken else None
            values[f"{kind}_ns"] = found.median_ns if found else 0
            values[f"{kind}_p99_ns"] = found.p99_ns if found else 0
        return PolicyTimes(**values)


def measure_decisions(bench: Bench) -> Iterator[Measure]:
    """A row for each policy; the file with all times."""
    scene = make_scene(bench, bench.size.decided_passes + WARMUP_PASSES)
    model, found, decided = scene.replay.model, {}, 0
    for choice in bench.policies:
        timings = time_decisions(choice, scene)
        times, decided = timings.times(), len(timings.layer)
        found[choice.name] = times
        bounds = {"bound": "at most", "goal": SPAC_GOAL_US} if choice.name == "spac" else {}
        yield Measure(
            SECTION, f"{choice.name}: at a layer, median", times.layer_ns / 1e3, "us",
            **bounds,  # type: ignore[arg-type]
            note=f"p99 {times.layer_p99_ns / 1e3:.0f}; at its end {times.leave_ns / 1e3:.1f}; "
            f"a draft step {times.draft_ns / 1e3:.1f}",
        )  # fmt: skip
    shape = {
        "layers": model.layers, "experts": model.experts, "top_k": model.top_k,
        "slots": scene.settings.slots, "gamma": scene.settings.gamma,
    }  # fmt: skip
    host = host_facts()
    kept = DecisionFile(
        host_slug(), host["cpu"], host["cores"], host["load_average"][0], host["versions"],
        host["source_hash"], shape, decided, found,
    )  # fmt: skip
    write_atomically(bench.folder / FILE, as_yaml(kept).encode())


def time_decisions(choice: PolicyChoice, scene: Scene) -> Timings:
    """Every decision of a whole run but its first passes."""
    session, timings = _session(choice.build(), scene), Timings()
    replay, passes = scene.replay, 0
    for request in replay.request_ids:
        session.start_request(replay.prompt(request))
        start = replay.first(request)
        while start < replay.end(request):
            if passes == WARMUP_PASSES:
                timings = Timings()
            start += _time_pass(session, scene, request, start, timings)
            passes += 1
    return timings


def _session(policy: Any, scene: Scene) -> Session:
    model, settings = scene.replay.model, scene.settings
    shape = Shape(
        model.layers, model.experts, model.top_k, settings.slots, settings.staging,
        settings.gamma, settings.launch == "early",
    )  # fmt: skip
    session = Session(policy, shape, scene.costs, SlowLink())
    if is_clairvoyant(policy):
        gamma = clairvoyant_gamma(policy, settings.gamma)
        policy.foresee(future_of(scene.replay, scene.replay.request_ids, gamma))
    return session


def _time_pass(session: Session, scene: Scene, request: int, start: int, timings: Timings) -> int:
    """Tokens committed by the pass."""
    first = scene.replay.window(request, start, 0)
    gamma = session.start_pass(int(first.tokens[0]))
    window = scene.replay.window(request, start, gamma)
    for step in range(window.gamma):
        token = int(window.tokens[step + 1])
        timings.draft.append(_ns(session.draft_step, step, token))
    for layer in range(scene.replay.model.layers):
        routing = observed_routing(window, layer, session.policy.needs)
        timings.layer.append(_ns(session.enter_layer, routing))
        timings.leave.append(_ns(session.leave_layer, layer))
    session.end_pass(window.accepted)
    return window.committed


def _ns(decide: Callable[..., Any], *arguments: Any) -> int:
    begin = time.perf_counter_ns()
    decide(*arguments)
    return time.perf_counter_ns() - begin
