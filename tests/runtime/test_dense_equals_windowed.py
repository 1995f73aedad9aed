"""Dense replay against decoding really run at each gamma: the proof behind the shipped traces."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runtime.dense_verification import VerificationReport, verify_dense_replay
from runtime.prompts import SHIPPED_PROMPTS, Prompt, read_prompts, shipped_workloads
from runtime.recorder import RecordingSettings
from runtime.tokenizers import Tokenizer
from traces.manifest import SamplingInfo


def verify(
    pair: Any, prompts: Sequence[Prompt], mode: Any, tokens: int, folder: Path
) -> VerificationReport:
    sampling = SamplingInfo(mode, 0.8, 11)
    settings = RecordingSettings("verification", 8, sampling, tokens)
    return verify_dense_replay(pair.target, pair.draft, prompts, settings, folder)


@pytest.mark.parametrize("mode", ["keyed", "greedy"])
def test_tiny_pair(tiny: Any, tiny_prompts: list[Prompt], tmp_path: Path, mode: str) -> None:
    report = verify(tiny, tiny_prompts, mode, 32, tmp_path)
    assert not report.unexplained, str(report)
    assert [result.gamma for result in report.results] == [1, 2, 4, 8]
    passes = [result.passes for result in report.results]
    assert passes[0] > passes[2] > len(tiny_prompts), "drafts are accepted, so larger windows help"
    assert all(result.equal_texts == len(tiny_prompts) for result in report.results)


def test_trained_pair_on_few_prompts(trained: Any, tmp_path: Path) -> None:
    prompts = trained_prompts(trained, 1)[:3]
    report = verify(trained, prompts, "keyed", 40, tmp_path)
    assert not report.unexplained, str(report)
    assert all(result.equal_texts == 3 for result in report.results)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["keyed", "greedy"])
def test_trained_pair_on_forty_prompts(trained: Any, tmp_path: Path, mode: str) -> None:
    prompts = trained_prompts(trained, 8)
    assert len(prompts) >= 40
    report = verify(trained, prompts, mode, 96, tmp_path)
    print(report)
    assert not report.unexplained, str(report)


def trained_prompts(pair: Any, each: int) -> list[Prompt]:
    """The first prompts of every shipped workload, else numbered beginnings of our own."""
    if shipped_workloads():
        tokenizer = Tokenizer(pair.target.facts.path)
        files = [SHIPPED_PROMPTS / f"{name}.jsonl" for name in shipped_workloads()]
        return [prompt for file in files for prompt in read_prompts(file, tokenizer.encode)[:each]]
    texts = [
        "import os\n\ndef run",
        "And the LORD said",
        "The SELECT statement",
        "( ph -> ps )",
        "n 1:",
    ]
    tokenizer = Tokenizer(pair.target.facts.path)
    return [
        Prompt(f"{text} {number}", (0, *tokenizer.encode(f"{number} {text}")))
        for number in range(each)
        for text in texts
    ]
