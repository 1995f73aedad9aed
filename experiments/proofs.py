"""The proofs of `spac run`, as rows of a table and of proofs.json."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experiments.fitted_table import FittedTable
from experiments.logical_time import prove_logical_time
from experiments.text_table import TextRow, TextTable
from policies.costs import CostTable
from runtime.device import Device
from runtime.engine import OffloadedEngine
from runtime.hazards import HazardChecker
from runtime.lossless import prove_lossless
from runtime.ngram_draft import NgramDraft
from runtime.observation_replay import prove_observation_replay
from runtime.observations import FILE_NAME, read_observations
from runtime.plans import plans_of
from runtime.prompts import Prompt
from runtime.recording_session import LONGEST_GENERATION
from runtime.target_model import open_target_model
from traces.runlog import read_runlog

LOGICAL_PROMPTS = 2  # the whole decoding is done three times more for each


@dataclass(frozen=True)
class Proof:
    """`holds` None: not tried, `detail` says why."""

    name: str
    holds: bool | None
    detail: str

    def as_data(self) -> dict[str, Any]:
        """For proofs.json."""
        return asdict(self)


def lossless(
    engine: OffloadedEngine,
    prompts: Sequence[Prompt],
    texts: Sequence[Sequence[int]],
    tokens: int,
    stop_strings: Sequence[str] = (),
) -> Proof:
    """Texts equal plain decoding of the plain target with the same noise."""
    name, settings = "text equals plain decoding", engine.settings
    if settings.dtype != "float32" or settings.sampling.mode == "rejection":
        return Proof(name, None, "needs dtype=float32 and greedy or keyed sampling")
    target = open_target_model(
        engine.facts.path, dtype=settings.dtype, expert_format=settings.experts
    )
    given = [one.tokens for one in prompts]
    proof = prove_lossless(target, given, texts, settings, tokens, stop_strings)
    detail = f"{proof.tokens} tokens of {proof.prompts} prompts"
    if proof.first_difference is not None:
        detail += ", first difference: prompt {} token {}".format(*proof.first_difference)
    return Proof(name, proof.identical, detail)


def replayed(engine: OffloadedEngine, make_policy: Callable[[], Any], costs: CostTable) -> Proof:
    """A fresh policy, told the recorded observations, makes the recorded plans."""
    log = engine.log_path
    assert log is not None
    observations = read_observations(log / FILE_NAME)
    plans = plans_of(read_runlog(log))
    shape = engine.session.shape
    result = prove_observation_replay(make_policy(), shape, costs, observations, plans)
    return Proof("observation replay: identical plans", result.identical, _counted(result))


def logical_time(
    engine: OffloadedEngine,
    prompts: Sequence[Prompt],
    make_policy: Callable[[], Any],
    new_device: Callable[[], Device],
    tokens: int,
) -> Proof:
    """Simulator and runtime make the same plans when the link is drained before each decision."""
    name, settings = "logical time: simulator = runtime", engine.settings
    if settings.sampling.mode == "rejection" or tokens < 2:
        return Proof(name, None, "needs greedy or keyed sampling, two tokens or more")
    if isinstance(engine.draft, NgramDraft):
        return Proof(name, None, "needs a draft that is a model, or none")
    result = prove_logical_time(
        engine.facts.path,
        engine.draft.facts.path if engine.draft else None,
        prompts[:LOGICAL_PROMPTS],
        make_policy,
        new_device(),
        settings,
        min(tokens, LONGEST_GENERATION),
    )
    return Proof(name, result.identical, _counted(result))


def ordered(checker: HazardChecker) -> Proof:
    """Every access to a slot or message buffer was ordered after those that it must follow."""
    found = checker.hazards
    detail = f"{checker.checked} accesses"
    if found:
        detail += f", {len(found)} not ordered, first: {found[0]}"
    return Proof("no copy races with a reader", not found, detail)


def proofs_table(proofs: Sequence[Proof]) -> FittedTable:
    """One row per proof."""
    holds = {True: "yes", False: "NO", None: "not tried"}
    rows = [TextRow([one.name, holds[one.holds], one.detail]) for one in proofs]
    content = TextTable("", ["proof", "holds", "about"], rows)
    return FittedTable(content, words=["holds"], texts=["about"])


def _counted(result: Any) -> str:
    if result.identical:
        return f"{result.decisions} decisions"
    return f"{result.different} of {result.decisions} decisions differ: {result.first_difference}"
