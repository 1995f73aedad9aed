"""What `spac run` is asked to run: checkpoints, policy, sizes, prompts, times of the machine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.configuration import as_list, as_mapping, number, whole_number
from experiments.decision_file import choose_decision, source_of, times_of
from experiments.policy_choice import PolicyChoice, choose_policies
from experiments.record import choose_prompts
from experiments.winner import Winner, read_winner
from policies.costs import CostTable
from policies.errors import UserError
from runtime.checkpoints import SHIPPED_PAIR, CheckpointFacts, open_target, torch_dtype
from runtime.device import Device
from runtime.devices import STANDIN, device_kind, open_device
from runtime.engine_settings import EngineSettings, slots_of_ratio
from runtime.expert_layout import layout_of
from runtime.hazards import HazardChecker
from runtime.prompts import Prompt
from runtime.standin_link import Link
from runtime.tokenizers import Tokenizer
from simulator.cost_tables import cost_table
from simulator.draft_profile import draft_profile
from simulator.hardware import DecisionTimes, HardwareProfile, hardware_profile
from simulator.model_profile import model_profile
from traces.manifest import ModelInfo, SamplingInfo

GAMMA = 4
CACHE_RATIO = 0.17


@dataclass(frozen=True)
class RunChoice:
    """`winner`: the comparison's result that is being run, if any; `costs`: what the policy knows
    of time, and what the stand-in's lanes are stretched to; `decision_source`: where its times
    of decisions come from.
    """

    policy: PolicyChoice
    winner: Winner | None
    facts: CheckpointFacts
    draft: Path | None
    tokenizer: Tokenizer
    prompts: list[Prompt]
    max_new_tokens: int
    settings: EngineSettings
    hardware: HardwareProfile
    costs: CostTable
    decision_source: str
    device_name: str = STANDIN

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
    prompts = _prompts(config, tokenizer)
    settings = _settings(config, winner, facts)
    hardware = hardware_profile(as_mapping(config["hardware"]), "hardware")
    settings = replace(settings, hardware=hardware.name)
    name = _device_name(config, hardware, settings)
    tokens = whole_number("max_new_tokens", config["max_new_tokens"])
    if tokens < 2:
        raise UserError(f"max_new_tokens={tokens}: the first token is prefill, ask for 2 or more")
    rows = max(settings.gamma + 1, *(len(prompt.tokens) for prompt in prompts))
    policy, decision = _policy(config, winner), choose_decision(config["decision"])
    return RunChoice(
        policy=policy,
        winner=winner,
        facts=facts,
        draft=_draft(config) if settings.gamma else None,
        tokenizer=tokenizer,
        prompts=prompts,
        max_new_tokens=tokens,
        settings=settings,
        hardware=hardware,
        costs=_costs(config, hardware, facts, settings, rows, times_of(policy.name, decision)),
        decision_source=source_of(hardware.name, decision),
        device_name=name,
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


def _paced(config: Mapping[str, Any]) -> bool:
    wanted = config["paced"]
    return device_kind(str(config["device"]))[0] == STANDIN if wanted is None else bool(wanted)


def _policy(config: Mapping[str, Any], winner: Winner | None) -> PolicyChoice:
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


def _draft(config: Mapping[str, Any]) -> Path:
    if config["draft_path"] is not None:
        return Path(config["draft_path"])
    if config["target"] is not None:
        raise UserError("target= needs draft_path= of a draft with its tokenizer, or gamma=0")
    return SHIPPED_PAIR / "draft"


def _prompts(config: Mapping[str, Any], tokenizer: Tokenizer) -> list[Prompt]:
    if config["prompt"] is None:
        return choose_prompts(config, str(config["workload"]), tokenizer)
    if config["prompts"] is not None:
        raise UserError("prompt= and prompts= exclude each other")
    tokens = tokenizer.encode(str(config["prompt"]))
    return [Prompt("prompt", tuple(tokens))]


def _settings(
    config: Mapping[str, Any], winner: Winner | None, facts: CheckpointFacts
) -> EngineSettings:
    layers, experts = len(facts.moe_layers), facts.experts
    if config["slots"] is not None:
        slots = whole_number("slots", config["slots"])
    else:
        won = winner.cache_ratio if winner else CACHE_RATIO
        ratio = won if config["cache_ratio"] is None else config["cache_ratio"]
        slots = slots_of_ratio(number("cache_ratio", ratio), layers, experts)
    won_gamma = winner.gamma if winner else GAMMA
    gamma = won_gamma if config["gamma"] is None else whole_number("gamma", config["gamma"])
    sampling = as_mapping(config["sampling"])
    if config["launch"] not in ("late", "early"):
        raise UserError(f"launch={config['launch']}: must be late or early")
    return EngineSettings(
        slots=slots,
        staging=whole_number("staging", config["staging"]),
        gamma=gamma,
        dtype=str(config["dtype"]),
        mode=config["mode"],
        sampling=SamplingInfo(
            sampling["mode"], float(sampling["temperature"]), int(sampling["seed"])
        ),
        launch_early=config["launch"] == "early",
        paced=_paced(config),
    )


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
    return cost_table(hardware, model, draft, rows, trace_layers=shape.layers, decision=decision)
