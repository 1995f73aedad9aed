"""A command that is refused or stopped before it wrote a result leaves no output folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.errors import UserError
from tests.experiments.conftest import Spac

CASES = {
    "demo": (
        "experiments.demo.record_fresh",
        "demo",
        ("policy=lru_cpu", "sweep_gammas=[2]", "gamma=2", "requests=2"),
    ),
    "compare": ("experiments.compare.play_all", "compare", ("policy=lru_cpu", "pictures=false")),
    "bench": ("experiments.bench.measure", "bench", ("size=small", "policy=lru_cpu")),
    "record": ("experiments.record.record", "record", ("requests=1", "max_new_tokens=2")),
    "tune": ("experiments.tune.open_study", "tune", ("policy=lfu_cpu", "requests=5", "trace=code")),
    "study theory": (
        "experiments.studies.theory.measure_information",
        "study",
        ("data=null", "trace=code", "requests=2"),
    ),
    "study paper": ("experiments.studies.paper.write_fitted", "study", ()),
    "study formats": ("experiments.studies.formats.format_errors", "study", ()),
}


def refusing(outputs: Path, seen: list[str]) -> Callable[..., None]:
    def step(*_: object, **__: object) -> None:
        (folder,) = (path for path in outputs.iterdir() if path.name.isdecimal())
        seen.append(folder.name)
        raise UserError("no more room on the disk")

    return step


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_after_the_folder_was_made_takes_it_away(
    case: str, spac: Spac, dense_trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, place, words = CASES[case]
    outputs, seen = tmp_path / "outputs" / place, list[str]()
    monkeypatch.setattr(step, refusing(outputs, seen))
    small = [f"trace={dense_trace}"] if case in ("demo", "compare") else []
    assert spac(*case.split(), *small, *words).error == "no more room on the disk"
    assert seen == ["1"], "the folder was there when the step was refused"
    assert list(outputs.iterdir()) == []


def test_what_was_finished_before_a_refusal_is_kept(
    spac: Spac, dense_trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise UserError("no more room on the disk")

    monkeypatch.setattr("experiments.compare.with_bounds", refuse)
    words = ("model=trace", "draft=pair", "policy=lru_cpu", "no_speculation=null", "workers=1")
    assert "no more room" in spac("compare", f"trace={dense_trace}", *words).error
    folder = Path("outputs/compare/latest")
    assert (folder / "table.csv").is_file()
    assert json.loads((folder / "run.json").read_text())["command"] == "compare"
