"""Prove that a dense recording replays what real decoding does, at several gammas.

Records the same prompts densely and, for every gamma, by real speculative decoding, then compares
text, windows and routing. Rounding differs between windows of different sizes, so a near tie may
flip; every difference is listed with its margin.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from policies.errors import UserError
from runtime.checkpoints import SHIPPED_PAIR
from runtime.draft_model import DraftModel, open_draft_model
from runtime.margins import MarginLog
from runtime.prompts import Prompt, read_prompts, shipped_prompts, shipped_workloads
from runtime.recorder import RecordingSettings, record_dense, record_windowed
from runtime.target_model import TargetModel, open_target_model
from runtime.tokenizers import Tokenizer
from runtime.window_comparison import Difference, Recording, compare_request
from traces.manifest import SamplingInfo

GAMMAS = (1, 2, 4, 8)


@dataclass(frozen=True)
class GammaResult:
    """Comparison at one gamma. cells: (row, layer) pairs whose routing was compared."""

    gamma: int
    passes: int
    cells: int
    equal_texts: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class VerificationReport:
    """`unexplained` must be empty; `str` gives the summary with every difference on a line."""

    requests: int
    tokens: int
    results: tuple[GammaResult, ...]

    @property
    def unexplained(self) -> tuple[Difference, ...]:
        """Differences that are no near tie and follow none."""
        return tuple(
            difference
            for result in self.results
            for difference in result.differences
            if not difference.explained
        )

    def __str__(self) -> str:
        lines = [f"dense against real recordings: {self.requests} requests, {self.tokens} tokens"]
        for result in self.results:
            lines.append(
                f"gamma {result.gamma}: {result.equal_texts} of {self.requests} texts equal, "
                f"{result.passes} passes, {result.cells} routings, "
                f"{len(result.differences)} differences"
            )
            lines += [f"  {difference}" for difference in result.differences]
        lines.append(f"unexplained differences: {len(self.unexplained)}")
        return "\n".join(lines)


def verify_dense_replay(
    target: TargetModel,
    draft: DraftModel,
    prompts: Sequence[Prompt],
    settings: RecordingSettings,
    folder: str | Path,
    gammas: Sequence[int] = GAMMAS,
    report: Callable[[str], None] | None = None,
) -> VerificationReport:
    """Record into the new or empty `folder` and compare; `settings.gamma` must reach max(gammas).

    report: called with a line after each recording.
    """
    log = MarginLog(keep_windows=True)
    dense_path = Path(folder) / "dense"
    dense_summary = record_dense(dense_path, target, draft, prompts, settings, margins=log)
    dense = Recording.open(dense_path, log)
    _say(report, f"dense, gamma {settings.gamma}: {dense_summary.committed} tokens")
    results = []
    for gamma in gammas:
        log = MarginLog(keep_windows=True)
        path = Path(folder) / f"gamma-{gamma}"
        own = replace(settings, gamma=gamma)
        summary = record_windowed(path, target, draft, prompts, own, margins=log)
        texts = [summary.texts[key] == text for key, text in dense_summary.texts.items()]
        results.append(_compare(dense, Recording.open(path, log), gamma, sum(texts)))
        _say(report, f"real, gamma {gamma}: {len(results[-1].differences)} differences")
    return VerificationReport(len(prompts), dense_summary.committed, tuple(results))


def verify_pair(
    pair: str | Path = SHIPPED_PAIR,
    prompts_per_workload: int = 8,
    max_new_tokens: int = 96,
    sampling: SamplingInfo | None = None,
    say: Callable[[str], None] = print,
) -> VerificationReport:
    """Verify `pair`/target and `pair`/draft on the shipped prompts and print the report.

    Takes about ten minutes on one core with the defaults; keyed noise at T = 0.8 unless told else.
    """
    torch.set_num_threads(1)  # models this small lose time with more
    sampling = sampling or SamplingInfo("keyed", 0.8, 11)
    target = open_target_model(Path(pair) / "target")
    draft = open_draft_model(Path(pair) / "draft", target.facts)
    assert draft is not None  # a path was given
    encode = Tokenizer(target.facts.path).encode
    prompts = [
        prompt
        for workload in shipped_workloads()
        for prompt in read_prompts(shipped_prompts(workload), encode)[:prompts_per_workload]
    ]
    if not prompts:
        raise UserError("no shipped prompts in runtime/pretrained/prompts; train the pair first")
    settings = RecordingSettings("verification", max(GAMMAS), sampling, max_new_tokens)
    with TemporaryDirectory() as folder:
        report = verify_dense_replay(target, draft, prompts, settings, folder, report=say)
    say(str(report))
    return report


def _compare(dense: Recording, real: Recording, gamma: int, equal_texts: int) -> GammaResult:
    passes, differences = 0, []
    # A request that one side skipped (it ended at once) has another text: counted there.
    for request in sorted(set(dense.replay.request_ids) & set(real.replay.request_ids)):
        passes += len(dense.windows(request, gamma))
        differences += compare_request(dense, real, request, gamma)
    cells = passes * (gamma + 1) * dense.replay.model.layers
    return GammaResult(gamma, passes, cells, equal_texts, tuple(differences))


def _say(report: Callable[[str], None] | None, line: str) -> None:
    if report is not None:
        report(line)


if __name__ == "__main__":
    raise SystemExit(bool(verify_pair().unexplained))
