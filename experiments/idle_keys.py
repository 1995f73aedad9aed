"""Keys that change nothing beside the others that were given: refused, in no command in silence.

Which parts of a command a key is for is said by its help, in the words before a colon. What hangs
on a value that only the command knows (a policy, a trace) is refused there.
"""

import os
import re
from collections.abc import Mapping

from experiments.commands import Command
from experiments.help_text import all_keys
from policies.errors import UserError

Given = Mapping[str, str]
ON_STANDIN = "stand-in only"  # in the help of a key
NO_DATA = ("acceptance", "text_requests")  # of `spac study theory`: for the traces of data=
NO_DRAFTS = ("ngram", "none")  # draft_path= without a model that could cost anything


def refuse_idle_keys(command: Command, given: Given, present: set[str]) -> None:
    """UserError for the first such key. `given`: key -> word key=value; `present`: those whose
    value is not null."""
    for refuse in IDLE:
        refuse(command, given, present)


def _refuse(word: str, reason: str) -> None:
    raise UserError(f"{word} changes nothing here: {reason}")


def _idle_context(command: Command, given: Given, present: set[str]) -> None:
    """The context counts where VRAM is divided: by budget=vram, and where a comparison gives the
    draft's VRAM, its KV with it, to slots. `spac run` plans its memory with it."""
    if "context" not in present or "budget" in present or command.kinds:
        return
    if command.name in ("simulate", "tune") or given.get("no_speculation") == "no_speculation=null":
        _refuse(
            given["context"],
            "slots come from cache_ratio= or slots=; it counts with budget=vram",
        )


def _idle_kind(command: Command, given: Given, present: set[str]) -> None:
    """Keys whose help names other kinds of the command than those asked for."""
    asked = _asked_kinds(command, given)
    for key in all_keys(command) if asked else ():
        served = served_kinds(command, key.meaning)
        word = _first_of(key.name, given)
        if word is not None and served and not asked & set(served):
            begin = f"spac {command.name} " if command.positional else f"{command.chosen_by}="
            _refuse(word, f"it counts with {begin}{' or '.join(served)}")


def _asked_kinds(command: Command, given: Given) -> set[str]:
    """The kinds that the words choose; empty where they choose none, which means all."""
    value = given.get(command.chosen_by, "").partition("=")[2]
    asked = set(re.findall(r"[\w-]+", value)) & set(command.kinds)
    if not asked and command.name == "validate" and _off_standin(given):
        return {"unpadded"}  # the one clock that a GPU has
    return asked


def _idle_on_device(command: Command, given: Given, present: set[str]) -> None:
    """Keys of the stand-in beside a device= that is another."""
    for key in all_keys(command) if _off_standin(given) else ():
        if ON_STANDIN in key.meaning and key.name in present:
            _refuse(given[key.name], f"it counts on the stand-in only, not with {given['device']}")


def _off_standin(given: Given) -> bool:
    return given.get("device", "device=standin").startswith("device=cuda")


def _idle_requests(command: Command, given: Given, present: set[str]) -> None:
    """A chat and lines from a pipe are as long as they are."""
    counts = present & {"workload", "prompts"} or given.get("mode") == "mode=forced"
    if command.name == "run" and "requests" in present and not counts:
        _refuse(given["requests"], "it counts with workload=, prompts= or mode=forced")


def _idle_draft(command: Command, given: Given, present: set[str]) -> None:
    """What a draft model costs, beside a draft_path= that is no model."""
    path, word = given.get("draft_path", ""), _first_of("draft", given)
    if command.name == "run" and word is not None and path.partition("=")[2] in NO_DRAFTS:
        _refuse(word, f"these are the costs of a draft model, which {path} is not")


def _idle_data(command: Command, given: Given, present: set[str]) -> None:
    """Keys for the traces of a data folder that there is not."""
    data = given.get("data", "data=null")
    none = data == "data=false" or (data == "data=null" and "SPAC_DATA" not in os.environ)
    for key in NO_DATA:
        if command.name == "study" and none and key in present:
            _refuse(given[key], "it is for the text traces of data=FOLDER")


def _idle_sampling(command: Command, given: Given, present: set[str]) -> None:
    """What draws tokens, beside greedy decoding. sampling.top_k and top_p are refused later."""
    if given.get("sampling.mode") == "sampling.mode=greedy":
        for key in sorted(present & {"sampling.seed", "sampling.temperature"}):
            _refuse(given[key], "sampling.mode=greedy draws nothing")


def _idle_fitted(command: Command, given: Given, present: set[str]) -> None:
    """A file of fitted values, beside a new fit of them."""
    if "fitted" in present and given.get("refit") == "refit=true":
        _refuse(given["fitted"], "refit=true fits the values anew")


def _idle_traces(command: Command, given: Given, present: set[str]) -> None:
    """Traces for the sweeps of a demo without sweeps."""
    if "sweep_traces" in present and all(
        given.get(key) == f"{key}=[]" for key in ("sweep_ratios", "sweep_gammas")
    ):
        _refuse(given["sweep_traces"], "there are no sweeps with sweep_ratios=[] sweep_gammas=[]")


IDLE = (
    _idle_context, _idle_kind, _idle_on_device, _idle_requests, _idle_draft, _idle_data,
    _idle_sampling, _idle_fitted, _idle_traces,
)  # fmt: skip


def _first_of(key: str, given: Given) -> str | None:
    """The word that gives `key`, or an entry of it, as hardware.vram_bytes= does."""
    return next((word for name, word in given.items() if name.partition(".")[0] == key), None)


def served_kinds(command: Command, meaning: str) -> list[str]:
    """Kinds of the command that the help of a key begins its parts with: `theory, cells: folder
    ...; formats: workloads`. None named: all are served."""
    found: list[str] = []
    for part in meaning.split("; "):
        names = part.partition(": ")[0].split(", ")
        if set(names) <= set(command.kinds):
            found += names
    return found
