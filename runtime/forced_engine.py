"""ForcedEngine: a random model under a policy, routed as a trace says, pass by pass.

So the copies, lanes, messages and decisions are those of the real engine, and their times are those
of the model's shape; only the words mean nothing. Prompts are not played: the cache of keys is
filled to the length they had.
"""

from collections.abc import Callable
from typing import Any

from policies.costs import CostTable
from policies.errors import UserError
from policies.session import Session
from policies.streaming import check_staging
from runtime.core_owner import CoreOwner
from runtime.engine_core import EngineCore, ModelParts, refuse_clairvoyant
from runtime.engine_settings import EngineSettings
from runtime.experts import connect, gating_of
from runtime.forced_routing import ForcedNextLayers, ForcedRouting
from runtime.model_shape import ModelShape
from runtime.next_layers import NextLayers, horizon_of
from runtime.random_model import RandomModel
from runtime.verify_rules import Verdict
from traces.replay import Replay

Advance = Callable[[int], None]


class ForcedEngine(CoreOwner):
    """Owns the device of `model` only if it fails: a closed engine leaves it to the next one.

    replay: with the shape of the model, see traces.mapped_replay. log: as in EngineCore.
    """

    def __init__(
        self,
        model: RandomModel,
        replay: Replay,
        policy: Any,
        costs: CostTable,
        settings: EngineSettings,
        log: str | None = None,
        trace: tuple[str, str] = ("", ""),
    ) -> None:
        check_forced(model.shape, replay, policy, settings)
        self._model, self._replay, self._settings = model, replay, settings
        self._routing = ForcedRouting(model.device.torch_device)
        horizon, shape = horizon_of(policy.needs), model.shape
        own = NextLayers(model.target.routers, horizon, shape.top_k)
        parts = ModelParts(
            shape.name,
            shape.top_k,
            model.arena,
            gating_of(model.target),
            ForcedNextLayers(own, self._routing, horizon),
            *trace,
        )
        self._core = EngineCore(parts, model.device, policy, costs, settings, log, keep_device=True)
        connect(model.target, self._routing.around(self._core.driver.forward))

    @property
    def session(self) -> Session:
        """The session whose ledger and policy the engine uses."""
        return self._core.session

    def play(self, advance: Advance | None = None) -> None:
        """All requests of the replay; the first of several is warm-up. `advance` is called with the
        tokens committed by each pass.
        """
        ids = self._replay.request_ids
        try:
            for number, request in enumerate(ids):
                self._core.log.warmup = number == 0 and len(ids) > 1
                self._request(request, advance)
        except (Exception, KeyboardInterrupt):
            self._core.abandon()
            raise

    def _request(self, request: int, advance: Advance | None) -> None:
        listener, replay = self._core.listener, self._replay
        start, end = replay.first(request), replay.end(request)
        listener.start_forced_request(request, start)
        self._fill_cache(start)
        while start < end:
            committed = self._pass(request, start)
            start += committed
            if advance is not None:
                advance(committed)

    def _fill_cache(self, length: int) -> None:
        self._routing.hide()
        if length:
            self._model.target.prefill([0] * length)
        else:
            self._model.target.cut(0)

    def _pass(self, request: int, start: int) -> int:
        listener, target, replay = self._core.listener, self._model.target, self._replay
        # Only tokens of the trace are told to the policy; the first of a window is always the same.
        token = int(replay.window(request, start, replay.fixed_gamma or 0).tokens[0])
        gamma = listener.start_pass(token, self._settings.gamma)
        window = replay.window(request, start, gamma)
        for step in range(window.gamma):
            self._model.draft.step()
            listener.draft_step(step, int(window.tokens[step + 1]), 0.0)
        self._routing.show(window)
        rows = [int(token) % self._model.shape.vocabulary for token in window.tokens]
        listener.before_verify(rows)
        choices = tuple(target.forward(rows).argmax(dim=-1).tolist())
        target.cut(start + window.committed)
        following = int(window.choices[window.accepted])
        verdict = Verdict(window.accepted, following, choices, (0.0,) * len(choices))
        listener.after_verify(start, rows, verdict)
        listener.end_pass(window.accepted, [following] * window.committed)
        return window.committed


def check_forced(shape: ModelShape, replay: Replay, policy: Any, settings: EngineSettings) -> None:
    """UserError if trace, model and policy cannot go together."""
    refuse_clairvoyant(policy)
    check_staging(policy, settings.staging)
    traced = replay.model
    mine = (shape.layers, shape.experts, shape.top_k)
    if mine != (traced.layers, traced.experts, traced.top_k):
        raise UserError(
            f"model {shape.name} has {mine[0]} layers x {mine[1]} experts, top-{mine[2]}, the "
            f"trace {traced.layers} x {traced.experts}, top-{traced.top_k}; map it first"
        )
    if settings.gamma > replay.gamma_limit:
        raise UserError(
            f"gamma={settings.gamma}: this {replay.kind} trace goes up to {replay.gamma_limit}"
        )
    if replay.fixed_gamma is not None and settings.gamma != replay.fixed_gamma:
        raise UserError(
            f"gamma={settings.gamma}: this {replay.kind} trace was recorded at gamma "
            f"{replay.fixed_gamma} and can be played at no other"
        )
    held = {"router_mass" if name == "router_weights" else name for name in replay.columns}
    held |= set() if replay.kind == "text" else {"draft_tokens"}
    lacking = sorted(set(policy.needs) - held)
    if lacking:
        raise UserError(
            f"policy {policy.name} needs {', '.join(lacking)}, which this {replay.kind} trace "
            "lacks; record again with it, or choose another policy"
        )
