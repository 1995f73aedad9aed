"""OffloadedEngine: a target with its experts in host memory, decoded speculatively."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from policies.costs import CostTable
from policies.errors import UserError
from policies.session import Session
from policies.streaming import check_staging
from runtime.checkpoints import open_target, torch_dtype
from runtime.core_owner import CoreOwner
from runtime.device import Device
from runtime.draft_model import DraftModel
from runtime.drafters import open_drafter
from runtime.engine_core import EngineCore, ModelParts, refuse_clairvoyant
from runtime.engine_settings import EngineSettings
from runtime.expert_layout import layout_of
from runtime.experts import connect, gating_of
from runtime.failures import as_device_error
from runtime.host_arena import load_arena
from runtime.memory_plan import check_memory
from runtime.next_layers import NextLayers, horizon_of
from runtime.observations import Observation
from runtime.prompts import Prompt, check_prompts
from runtime.run_memory import plan_run
from runtime.speculative import SpeculativeDecoder
from runtime.stopping import StopRule
from runtime.target_shell import load_shell
from runtime.tokenizers import Tokenizer
from runtime.verify_rules import make_rule


class OffloadedEngine(CoreOwner):
    """One policy over one slot pool; slots and policy state survive requests. Owns `device`.

    target: a checkpoint directory. draft: one too, or "ngram", or None with gamma 0. log: a new
    directory for run log and observations, which then keep all finished passes whatever happens;
    None: in memory, see `runlog`. After an error the engine is closed.
    """

    def __init__(
        self,
        target: str | Path,
        draft: str | Path | None,
        device: Device,
        policy: Any,
        costs: CostTable,
        settings: EngineSettings,
        log: str | Path | None = None,
    ) -> None:
        self.settings, self.device = settings, device
        self.facts = open_target(target)
        self.layout = layout_of(self.facts, torch_dtype(settings.dtype), settings.experts)
        refuse_clairvoyant(policy)
        check_staging(policy, settings.staging)
        self.log_path = None if log is None else Path(log)
        self._requests = 0
        try:
            self._build(draft, policy, costs)
        except BaseException:
            device.close()
            raise

    def _build(self, draft: str | Path | None, policy: Any, costs: CostTable) -> None:
        settings, device, facts, layout = self.settings, self.device, self.facts, self.layout
        # First, because it may refuse the settings.
        rule = make_rule(
            settings.sampling, facts.vocabulary, device.torch_device, settings.truncation
        )
        self.memory_plan = plan_run(facts, draft, settings)
        check_memory(self.memory_plan, device.memory())
        self.arena = load_arena(facts, layout, device)
        self.target = target = load_shell(facts, device.torch_device, layout.dtype)
        place = str(device.torch_device)
        self.draft = open_drafter(draft, facts, place, settings.dtype)
        routers = NextLayers(target.routers, horizon_of(policy.needs), facts.top_k, facts.routing)
        parts = ModelParts(facts.name, facts.top_k, self.arena, gating_of(target), routers)
        self._core = EngineCore(parts, device, policy, costs, settings, self.log_path)
        connect(target, self._core.driver.forward)
        self.listener = self._core.listener
        self._decoder = SpeculativeDecoder(target, self.draft, rule, settings.gamma, self.listener)

    @property
    def session(self) -> Session:
        """The session whose ledger and policy the engine uses."""
        return self._core.session

    @property
    def observations(self) -> list[Observation]:
        """What the session was told so far."""
        return self._core.observations

    @property
    def positions(self) -> int:
        """Tokens that target and draft can read: prompt, answer, and gamma drafts past its end."""
        draft = self.draft.facts if isinstance(self.draft, DraftModel) else self.facts
        return min(self.facts.max_positions, draft.max_positions)

    @property
    def room(self) -> int:
        """Tokens of prompt and answer together for which there are positions and memory."""
        planned = self.settings.planned_context(self.facts.max_positions)
        return min(self.positions, planned) - self.settings.gamma

    def generate(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        warmup: bool = False,
        stop_strings: Sequence[str] = (),
    ) -> Iterator[list[int]]:
        """Yield newly committed tokens, pass by pass. warmup: leave the request out of all rates.

        stop_strings: texts that end the answer, read with the target's tokenizer. DeviceError if a
        copy or a worker fails or memory runs out; the log then ends with the last whole pass.
        """
        self._core.check_open()
        request = self._requests
        numbered = Prompt(f"number {request}", tuple(prompt))
        room = max_new_tokens + self.settings.gamma
        self._check_context(len(prompt) + room)
        check_prompts([numbered], self.facts.vocabulary, room, self.positions)
        decode = Tokenizer(self.facts.path).decode if stop_strings else None
        stop = StopRule(max_new_tokens, self.facts.end_tokens, tuple(stop_strings), decode)
        self._requests += 1
        self._core.log.warmup = warmup
        try:
            yield from self._decoder.generate(request, prompt, stop)
        except (Exception, KeyboardInterrupt) as error:
            self._core.abandon()
            known = as_device_error(error)
            if known is None:
                raise
            raise known from error

    @property
    def requests(self) -> int:
        """Requests begun so far: the number of the next one."""
        return self._requests

    def keep_log(self) -> None:
        """Write what the log holds by now to its directory."""
        if self.log_path is not None:
            self._core.log.builder.flush()

    def _check_context(self, tokens: int) -> None:
        planned = self.settings.planned_context(self.facts.max_positions)
        if planned < tokens <= self.facts.max_positions:
            raise UserError(
                f"{tokens} tokens of prompt, text and drafts, but memory is planned for "
                f"{planned}; raise context"
            )
