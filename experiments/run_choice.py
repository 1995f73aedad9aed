"""What `spac run` is asked to run: checkpoints, policy, sizes, prompts, times of the machine."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from experiments.decision_file import choose_decision, source_of, times_of
from experiments.machine import NO_DRAFT
from experiments.policy_choice import PolicyChoice, choose_policies
from experiments.record import choose_prompts
from experiments.sampling_choice import sampling_from
from experiments.values import as_list, as_mapping, number, positive, truth, whole_number
from experiments.winner import Winner, read_winner
from policies.costs import CostTable
from policies.errors import UserError
from runtime.checkpoints import SHIPPED_PAIR, CheckpointFacts, open_target, torch_dtype
from runtime.device import Device
from runtime.devices import STANDIN, device_kind, open_device
from runtime.engine_settings import EngineSettings, check_slots, slots_of_ratio
from runtime.expert_layout import layout_of
from runtime.hazards import HazardChecker
from runtime.ngram_draft import NGRAM
from runtime.prompts import Prompt
from runtime.standin_link import Link
from runtime.tokenizers import Tokenizer
from simulator.cost_tables import cost_table
from simulator.draft_profile import draft_profile
from simulator.hardware import DecisionTimes, HardwareProfile, hardware_profile
from simulator.model_profile import model_profile
from traces.manifest import ModelInfo

GAMMA = 4
CACHE_RATIO = 0.17
WORKLOAD = "mine"  # name of the user's own prompts
NONE = "none"
PROMPT_ROWS = 512  # of the cost table where prompts come later; longer ones cost in proportion

Source = Literal["workload", "prompt", "chat", "lines"]


@dataclass(frozen=True)
class RunChoice:
    """`winner`: the comparison's result that is being run, if any; `costs`: what the policy knows
    of time, and what the stand-in's lanes are stretched to; `decision_source`: where its times
    of decisions come from. `source`: where prompts come from; `prompts` is empty where they come
    later. `draft`: a directory, "ngram" or None. `plan`: "only" if nothing is to be loaded.
    """

    policy: PolicyChoice
    winner: Winner | None
    facts: CheckpointFacts
    draft: Path | str | None
    tokenizer: Tokenizer
    source: Source
    prompts: list[Prompt]
    stop_strings: tuple[str, ...]
    proofs: bool
    max_new_tokens: int
    settings: EngineSettings
    hardware: HardwareProfile
    costs: CostTable
    decision_source: str
    device_name: str = STANDIN
    plan: str = "shown"

    @property
    def on_standin(self) -> bool:
        """Times are kept, not found, and order can be checked."""
        return device_kind(self.device_name)[0] == STANDIN

    @property
    def target(self) -> Path:
        """Directory of the target."""
        return self.facts.path

    def device(self, checker: HazardChecker | None = None) -> Device:
        """A new device; the stand-in has the link of the hardware profile."""
        profile = self.hardware.link
        link = Link(profile.bytes_per_second, profile.latency_ns)
        return open_device(self.device_name, link, checker, self.settings.launch_early)


def choose_run(config: Mapping[str, Any]) -> RunChoice:
    """Read and check everything; UserError before any weight is loaded. Keys: conf/run.yaml."""
    winner = None if config["winner"] is None else read_winner(config["winner"])
    facts = open_target(config["target"] or SHIPPED_PAIR / "target")
    tokenizer = Tokenizer(facts.path)
    source = _source(config)
    prompts = _prompts(config, source, tokenizer)
    settings = _settings(config, winner, facts)
    hardware = hardware_profile(as_mapping(config["hardware"]), "hardware")
    settings = replace(settings, hardware=hardware.name)
    name = _device_name(config, hardware, settings)
    tokens = whole_number("max_new_tokens", config["max_new_tokens"])
    if tokens < 2:
        raise UserError(f"max_new_tokens={tokens}: the first token is prefill, ask for 2 or more")
    longest = max((len(prompt.tokens) for prompt in prompts), default=PROMPT_ROWS)
    rows = max(settings.gamma + 1, longest)
    settings = replace(settings, context=_context(config, facts, prompts, tokens + settings.gamma))
    policy, decision = choose_policy(config, winner), choose_decision(config["decision"])
    return RunChoice(
        policy=policy,
        winner=winner,
        facts=facts,
        draft=_draft(config, settings.gamma),
        tokenizer=tokenizer,
        source=source,
        prompts=prompts,
        stop_strings=_stop_strings(config),
        proofs=_proofs(config, source),
        max_new_tokens=tokens,
        settings=settings,
        hardware=hardware,
        costs=_costs(config, hardware, facts, settings, rows, times_of(policy.name, decision)),
        decision_source=source_of(hardware.name, decision),
        device_name=name,
        plan=_plan(config),
    )


def _device_name(
    config: Mapping[str, Any], hardware: HardwareProfile, settings: EngineSettings
) -> str:
    name = str(config["device"])
    kind, _ = device_kind(name)
    if kind != STANDIN and settings.paced:
        raise UserError(f"device={name} has its own times; use paced=false")
    if kind != STANDIN and hardware.name == STANDIN:
        raise UserError(
            f"device={name}: policies would decide with the costs of the stand-in; use hardware= "
            "with a profile of this machine, such as rtx4090"
        )
    return name


def _context(
    config: Mapping[str, Any], facts: CheckpointFacts, prompts: list[Prompt], room: int
) -> int | None:
    """The given one, else what the known prompts need; None where they come later."""
    longest = max((len(prompt.tokens) for prompt in prompts), default=0)
    needed = min(longest + room, facts.max_positions)
    if config["context"] is None:
        return needed if prompts else None
    context = positive("context", config["context"])
    if prompts and context < needed:
        raise UserError(
            f"context={context}: the longest prompt of {longest} tokens needs {needed} with answer "
            "and drafts; raise context or lower max_new_tokens"
        )
    return context


def _plan(config: Mapping[str, Any]) -> str:
    if config["plan"] not in ("shown", "only"):
        raise UserError(f"plan={config['plan']} is unknown; use shown or only")
    return str(config["plan"])


def _paced(config: Mapping[str, Any]) -> bool:
    wanted = config["paced"]
    on_standin = device_kind(str(config["device"]))[0] == STANDIN
    return on_standin if wanted is None else truth("paced", wanted)


def choose_policy(config: Mapping[str, Any], winner: Winner | None) -> PolicyChoice:
    """The winner's policy, or the one that is named."""
    overrides = as_mapping(config["overrides"])
    if winner is not None:
        if config["policy"] is not None or overrides:
            raise UserError("winner= names a policy with its parameters; leave policy out")
        return winner.choice()
    names = [str(name) for name in as_list(config["policy"] or "spac")]
    choices = choose_policies(names, overrides)
    if len(choices) != 1:
        raise UserError(f"policy={', '.join(names)}: run takes one policy with one set of values")
    return choices[0]


def _draft(config: Mapping[str, Any], gamma: int) -> Path | str | None:
    """None where nothing is drafted."""
    if not gamma:
        # A winner that drafts nothing is run with whatever checkpoints there are.
        if config["gamma"] == 0 and config["draft_path"] not in (None, NONE):
            raise UserError(
                f"draft_path={config['draft_path']} changes nothing here: gamma=0 drafts nothing"
            )
        return None
    if config["draft_path"] is not None:
        return NGRAM if config["draft_path"] == NGRAM else Path(config["draft_path"])
    if config["target"] is not None:
        raise UserError(
            "target= needs draft_path= of a draft with its tokenizer, draft_path=ngram, or "
            "draft_path=none"
        )
    return SHIPPED_PAIR / "draft"


def _source(config: Mapping[str, Any]) -> Source:
    given = [key for key in ("prompt", "prompts", "workload") if config[key] is not None]
    if "prompt" in given:
        if len(given) > 1:
            raise UserError(f"prompt= and {given[1]}= exclude each other")
        return "prompt"
    if given:
        return "workload"
    return "chat" if sys.stdin is not None and sys.stdin.isatty() else "lines"


def _prompts(config: Mapping[str, Any], source: Source, tokenizer: Tokenizer) -> list[Prompt]:
    if source == "workload":
        return choose_prompts(config, str(config["workload"] or WORKLOAD), tokenizer)
    if source == "prompt":
        return [Prompt("prompt", tuple(tokenizer.encode(str(config["prompt"]))))]
    return []


def _stop_strings(config: Mapping[str, Any]) -> tuple[str, ...]:
    given = [] if config["stop"] is None else as_list(config["stop"])
    if not all(isinstance(text, str) and text for text in given):
        raise UserError(f"stop={given}: must be texts that are not empty")
    return tuple(given)


def _proofs(config: Mapping[str, Any], source: Source) -> bool:
    if config["proofs"] is None:
        return source == "workload"
    wanted = truth("proofs", config["proofs"])
    if wanted and source == "chat":
        raise UserError("proofs=true: a chat is not proved; give prompt= or workload=")
    return wanted


def _settings(
    config: Mapping[str, Any], winner: Winner | None, facts: CheckpointFacts
) -> EngineSettings:
    layers, experts = len(facts.moe_layers), facts.experts
    if config["slots"] is not None:
        slots = check_slots(whole_number("slots", config["slots"]), layers, experts)
    else:
        won = winner.cache_ratio if winner else CACHE_RATIO
        ratio = won if config["cache_ratio"] is None else config["cache_ratio"]
        slots = slots_of_ratio(number("cache_ratio", ratio), layers, experts)
    gamma = _gamma(config, winner)
    if gamma >= facts.max_positions:
        raise UserError(f"gamma={gamma}: the model reads {facts.max_positions} tokens in all")
    sampling, truncation = sampling_from(as_mapping(config["sampling"]))
    if config["launch"] not in ("late", "early"):
        raise UserError(f"launch={config['launch']}: must be late or early")
    return EngineSettings(
        slots=slots,
        staging=whole_number("staging", config["staging"]),
        gamma=gamma,
        dtype=str(config["dtype"]),
        experts=str(config["experts"]),
        mode=config["mode"],
        sampling=sampling,
        truncation=truncation,
        launch_early=config["launch"] == "early",
        paced=_paced(config),
    )


def _gamma(config: Mapping[str, Any], winner: Winner | None) -> int:
    """The given one, else the winner's or that of the policy's file, else the default; 0 with
    draft_path=none."""
    none = config["draft_path"] == NONE
    tuned = choose_policy(config, winner).gamma
    won = winner.gamma if winner else (0 if none else GAMMA if tuned is None else tuned)
    gamma = won if config["gamma"] is None else whole_number("gamma", config["gamma"])
    if none and gamma > 0:
        raise UserError(f"draft_path=none cannot draft {gamma} tokens a pass; add gamma=0")
    return gamma


def _costs(
    config: Mapping[str, Any],
    hardware: HardwareProfile,
    facts: CheckpointFacts,
    settings: EngineSettings,
    rows: int,
    decision: DecisionTimes | None,
) -> CostTable:
    shape = ModelInfo(
        facts.name, len(facts.moe_layers), facts.experts, facts.top_k,
        layout_of(facts, torch_dtype(settings.dtype), settings.experts).expert_bytes,
    )  # fmt: skip
    model = model_profile(as_mapping(config["model"]), "model", shape)
    draft = draft_profile(as_mapping(config["draft"]), "draft")
    if config["draft_path"] == NGRAM:
        draft = NO_DRAFT  # looking up costs no time on the accelerator
    return cost_table(hardware, model, draft, rows, trace_layers=shape.layers, decision=decision)
