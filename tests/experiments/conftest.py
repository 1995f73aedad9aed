"""A small trace of each kind, and the command run in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from experiments.__main__ import main
from experiments.compile_notice import NOTICE
from traces.synthetic import SyntheticShape, markov_text, random_dense, synthetic_manifest
from traces.writer import TraceWriter

SHAPE = SyntheticShape(layers=3, experts=16, top_k=2, requests=3, tokens=12, lookahead=1)


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line of a refusal."""
        assert self.code == 2, (self.code, self.err)
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ") and "Traceback" not in self.err
        return lines[0].removeprefix("error: ")


Spac = Callable[..., Outcome]


@pytest.fixture
def spac(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Spac:
    """`spac("policies", "name=spac")` in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def call(*words: str) -> Outcome:
        capsys.readouterr()
        code = main(list(words))
        captured = capsys.readouterr()
        # Whether kernels were compiled before is no part of what a test is about.
        return Outcome(code, captured.out, captured.err.replace(f"{NOTICE}\n", ""))

    return call


@pytest.fixture(scope="session")
def dense_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dense trace, gamma up to 4."""
    path = tmp_path_factory.mktemp("traces") / "dense"
    with TraceWriter(path, synthetic_manifest(SHAPE, "dense", 4)) as writer:
        writer.append(random_dense(SHAPE, 4, seed=1))
    return path


@pytest.fixture(scope="session")
def text_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text trace: accepted text only."""
    path = tmp_path_factory.mktemp("traces") / "text"
    with TraceWriter(path, synthetic_manifest(SHAPE, "text")) as writer:
        writer.append(markov_text(SHAPE, seed=2))
    return path
