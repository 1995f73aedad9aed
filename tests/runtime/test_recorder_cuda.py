"""The recorder on a CUDA device: keyed noise makes the text that of the CPU, up to near ties."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from runtime.dense_verification import verify_dense_replay
from runtime.draft_model import open_draft_model
from runtime.margins import NEAR_TIE, MarginLog
from runtime.prompts import Prompt
from runtime.recorder import RecordingSettings, record_dense
from runtime.target_model import open_target_model
from traces.manifest import SamplingInfo
from traces.reader import open_trace

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
SETTINGS = RecordingSettings("cuda", 8, SamplingInfo("keyed", 0.8, 3), 48, next_layer=True)


def on_cuda(pair: Any) -> tuple[Any, Any]:
    target = open_target_model(pair.path / "target", "cuda")
    return target, open_draft_model(pair.path / "draft", target.facts, "cuda")


def test_cuda_and_cpu_record_the_same(
    tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path
) -> None:
    log = MarginLog(keep_windows=True)
    cpu = record_dense(
        tmp_path / "cpu", tiny.target, tiny.draft, tiny_prompts, SETTINGS, margins=log
    )
    cuda = record_dense(tmp_path / "cuda", *on_cuda(tiny), tiny_prompts, SETTINGS)
    closest = min(min(window.score[0] for window in log.windows.values()), *log.first.values())
    assert cpu.texts == cuda.texts or closest < NEAR_TIE
    rows = [open_trace(tmp_path / name, verify=True).load() for name in ("cpu", "cuda")]
    if cpu.texts == cuda.texts and np.array_equal(rows[0].input_token, rows[1].input_token):
        different = (np.sort(rows[0].experts, -1) != np.sort(rows[1].experts, -1)).any(-1)
        assert different.mean() < 0.001


def test_dense_replay_on_cuda(trained: Any, tmp_path: Path) -> None:
    prompts = [Prompt(str(start), (0, *range(start, start + 12))) for start in (300, 700, 1100)]
    report = verify_dense_replay(*on_cuda(trained), prompts, SETTINGS, tmp_path)
    print(report)
    assert not report.unexplained, str(report)


def test_bfloat16_on_cuda(tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path) -> None:
    target = open_target_model(tiny.path / "target", "cuda", "bfloat16")
    draft = open_draft_model(tiny.path / "draft", target.facts, "cuda", "bfloat16")
    assert draft is not None
    record_dense(tmp_path / "t", target, draft, tiny_prompts, SETTINGS)
    manifest = open_trace(tmp_path / "t", verify=True).manifest
    assert manifest.notes["dtype"] == "bfloat16"
    assert manifest.model.expert_bytes == 3 * 32 * 24 * 2
