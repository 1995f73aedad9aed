"""`spac run mode=forced`: a policy on a model of any shape, routed as a trace says."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from experiments.decision_file import choose_decision, times_of
from experiments.forced_choice import ForcedChoice, choose_forced, hardware_from
from experiments.metrics_table import metrics_table
from experiments.outputs import removed_if_unused
from experiments.policy_choice import PolicyChoice
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.record import SMALL
from experiments.terminal import terminal
from experiments.values import truth, whole_number
from experiments.winner import Winner
from policies.errors import UserError
from runtime.device import DeviceError
from runtime.devices import STANDIN, device_kind
from runtime.forced_engine import ForcedEngine, check_forced
from traces.metrics import metrics
from traces.report_json import write_json
from traces.runlog import read_runlog

# Keys of decoding, with the values that change nothing.
OF_DECODING = {
    "prompt": (None,), "prompts": (None,), "workload": (None,), "stop": (None,), "target": (None,),
    "draft_path": (None,), "context": (None,), "max_new_tokens": (64,), "experts": ("same",),
    "plan": ("shown",), "proofs": (None, False),
    "sampling": ({"mode": "keyed", "temperature": 0.8, "seed": 0, "top_k": None, "top_p": None},),
}  # fmt: skip
OF_FORCING = {"trace": None, "distinct_layers": None, "slow_motion": 1}


def run_forced(
    config: DictConfig,
    policy: PolicyChoice,
    winner: Winner | None,
    make_folder: Callable[[], Path],
) -> int:
    """Run, print figures; keep run log and metrics.json in the folder, made once all keys are
    checked. UserError if the device fails.
    """
    console = terminal()
    choice = forced_choice_of(config, winner)
    check_forced(choice.shape, choice.replay, policy.build(), choice.settings)
    times_of(policy.name, choose_decision(config["decision"]))
    if choice.shape.hidden < SMALL:
        torch.set_num_threads(1)
    with removed_if_unused(make_folder()) as folder:
        return _force(config, policy, choice, folder, console)


def _force(
    config: DictConfig, policy: PolicyChoice, choice: ForcedChoice, folder: Path, console: Console
) -> int:
    digest = choice.workload.trace.digest
    write_run_file(folder, "run", config, {choice.workload.name: digest})
    log = folder / "runlog"
    device = choice.device()
    try:
        with console.status("building the model"):
            model = choice.build(device)
        note = f"{choice.note()}; {model.note}"
        _announce(choice, policy.label, note, console)
        decision = times_of(policy.name, choose_decision(config["decision"]))
        engine = ForcedEngine(
            model, choice.replay, policy.build(), choice.costs(decision=decision), choice.settings,
            str(log), (choice.workload.name, digest),
        )  # fmt: skip
        total = sum(
            choice.replay.end(request) - choice.replay.first(request)
            for request in choice.replay.request_ids
        )
        with engine, progress_bar(console, policy.label, total) as advance:

            def show(committed: int) -> None:
                for _ in range(committed):
                    advance("tokens")

            engine.play(show)
    except DeviceError as error:
        kept = f"; finished passes are in {log}, which is marked incomplete"
        raise UserError(f"{error}{kept if log.exists() else ''}") from error
    finally:
        device.close()
    figures = metrics(read_runlog(log))
    slow = max(1, choice.slow)
    data = asdict(figures) | {"forced": note, "slow_motion": slow}
    write_json(folder / "metrics.json", data)
    where = "the stand-in" if device_kind(choice.device_name)[0] == STANDIN else device.name
    console.print(metrics_table(figures, f"{policy.label}, forced routing, measured on {where}"))
    if choice.slow:
        console.print(
            f"times are those of the padded clock: {slow} times slower than {choice.hardware.name}"
        )
    console.print(str(folder), highlight=False, soft_wrap=True)
    return 0


def refuse_idle(config: DictConfig) -> None:
    """UserError for a key of forced routing in a run that decodes."""
    for key, idle in OF_FORCING.items():
        if config[key] != idle:
            raise UserError(f"{key}={config[key]} changes nothing without mode=forced")


def forced_choice_of(config: DictConfig, winner: Winner | None = None) -> ForcedChoice:
    """What `spac run` is asked to force; UserError where keys do not go together."""
    for key, idle in OF_DECODING.items():
        if config.get(key) not in idle:
            raise UserError(
                f"{key}={config[key]} has no meaning with mode=forced, which plays a trace"
            )
    if config["launch"] not in ("late", "early"):
        raise UserError(f"launch={config['launch']}: must be late or early")
    if winner is not None:
        given = {"cache_ratio": winner.cache_ratio, "gamma": winner.gamma}
        unset = {key: value for key, value in given.items() if config[key] is None}
        config = OmegaConf.merge(config, unset)  # type: ignore[assignment]
    hardware = hardware_from(config)
    on_standin = device_kind(str(config["device"]))[0] == STANDIN
    paced = on_standin if config["paced"] is None else truth("paced", config["paced"])
    slow = whole_number("slow_motion", config["slow_motion"])
    if slow < 1:
        raise UserError(f"slow_motion={slow}: must be at least 1")
    if slow > 1 and not paced:
        raise UserError(f"slow_motion={slow} changes nothing here: only paced times are slowed")
    return choose_forced(config, hardware, slow if paced else 0)


def _announce(choice: ForcedChoice, label: str, note: str, console: Console) -> None:
    settings, shape = choice.settings, choice.shape
    console.print(
        f"{label} on {shape.name}: {settings.slots} of {shape.layers * shape.experts} experts in "
        f"slots, gamma {settings.gamma}, {choice.hardware.name}, forced",
        highlight=False,
        soft_wrap=True,
    )
    console.print(note, highlight=False, soft_wrap=True)
