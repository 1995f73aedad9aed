"""All stages of the shipped pair in order; finished stages and checkpoints are kept and reused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from runtime.training.checkpoint import load_checkpoint
from runtime.training.corpora import build_corpora
from runtime.training.distil_draft import distil_draft
from runtime.training.evaluate import evaluate_pair
from runtime.training.export import export_network, write_json
from runtime.training.locality_ablation import measure_variants, train_variants
from runtime.training.model_card import write_card
from runtime.training.network import Network
from runtime.training.notice import write_notice
from runtime.training.packages import unpacked_packages
from runtime.training.prompts import choose_prompts, write_prompts
from runtime.training.ranks import run_ranks
from runtime.training.recipe import WORKLOADS, Recipe
from runtime.training.sample_target import sample_target
from runtime.training.stages import read_timing, run_stage
from runtime.training.token_store import read_splits, write_splits
from runtime.training.tokenizer import train_tokenizer
from runtime.training.train_target import train_target


def quiet(message: str) -> None:
    """Default progress report: nothing."""


def train_pair(
    recipe: Recipe,
    out_dir: Path,
    corpus_dir: Path | None = None,
    ranks: int = 2,
    progress: Callable[[str], None] = quiet,
) -> Path:
    """Train, export and measure a pair; returns ``out_dir / "pair"``.

    Writes ``pair/`` (target, draft, card, notice, evaluation.json) and ``prompts/``; ``work/``
    keeps texts, checkpoints and samples. A killed run continues where it stopped when called again
    with the same recipe and folder. ``progress`` is called with one line at a time, also from the
    worker processes, so it must be a module-level function.

    Raises CorpusError if a text is missing and RecipeMismatch if the folder holds another recipe.
    """
    work, pair = out_dir / "work", out_dir / "pair"
    tokens_dir, samples_dir = work / "tokens", work / "samples"
    target_file, draft_file = work / "target.safetensors", work / "draft.safetensors"

    packages = unpacked_packages(work / "texts", corpus_dir)

    def prepare() -> None:
        prepare_text(recipe, packages, tokens_dir, out_dir / "prompts", progress)

    def train() -> None:
        run_ranks(train_target, ranks, recipe, tokens_dir, target_file, progress)

    def sample() -> None:
        run_ranks(sample_target, ranks, recipe, tokens_dir, target_file, samples_dir, progress)

    def distil() -> None:
        run_ranks(
            distil_draft, ranks, recipe, tokens_dir, samples_dir, target_file, draft_file, progress
        )

    def compare_locality() -> None:
        run_ranks(train_variants, min(ranks, 2), recipe, tokens_dir, work / "ablation", progress)

    run_stage(work, "text", (recipe.corpus,), prepare)
    run_stage(work, "target", (recipe.target_shape, recipe.target, ranks), train)
    run_stage(work, "sampling", (recipe.sampling,), sample)
    run_stage(work, "draft", (recipe.draft, ranks), distil)
    run_stage(work, "ablation", (recipe.target, recipe.ablation), compare_locality)

    # One rank, so that the measurement runs with one thread and does not depend on the machine.
    run_ranks(finish_pair, 1, recipe, out_dir, ranks, progress)
    write_notice(packages, pair / "NOTICE")
    return pair


def prepare_text(
    recipe: Recipe,
    packages: Path,
    tokens_dir: Path,
    prompts_dir: Path,
    progress: Callable[[str], None],
) -> None:
    """Corpora, tokenizer, splits and prompts."""
    progress("building the corpora")
    corpora = build_corpora(packages, recipe.corpus)
    tokenizer = train_tokenizer(corpora, recipe.corpus.vocabulary)
    tokens_dir.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(tokens_dir / "tokenizer.json"))
    write_splits(tokens_dir, corpora, tokenizer, recipe.corpus.validation_share)
    progress("choosing the prompts")
    write_prompts(prompts_dir, choose_prompts(read_splits(tokens_dir), tokenizer, recipe.corpus))


def finish_pair(
    rank: int,
    ranks: int,
    recipe: Recipe,
    out_dir: Path,
    trained_ranks: int,
    progress: Callable[[str], None],
) -> None:
    """Export both networks, measure the exported files and write the card."""
    work, pair = out_dir / "work", out_dir / "pair"
    tokenizer = Tokenizer.from_file(str(work / "tokens" / "tokenizer.json"))
    for name, shape in (("target", recipe.target_shape), ("draft", recipe.draft.shape)):
        network = Network(shape)
        load_checkpoint(work / f"{name}.safetensors", network)
        export_network(network, tokenizer, pair / name)
    progress("measuring the exported pair")
    measured = evaluate_pair(pair, out_dir / "prompts", work / "tokens", recipe.evaluation)
    measured |= {"ranks": trained_ranks, "timing": read_timing(work)}
    measured |= text_facts(work / "tokens")
    progress("measuring the locality ablation")
    measured["ablation"] = measure_variants(
        recipe, work / "tokens", out_dir / "prompts", work / "ablation"
    )
    write_json(pair / "evaluation.json", measured)
    write_card(pair / "MODEL_CARD.md", recipe, measured)


def text_facts(tokens_dir: Path) -> dict[str, Any]:
    """Token counts and a digest of tokenizer and splits."""
    digest = hashlib.sha256()
    for path in sorted(tokens_dir.glob("*.*")):
        digest.update(path.read_bytes())
    training = read_splits(tokens_dir).training
    return {
        "training_tokens": {workload: len(training[workload]) for workload in WORKLOADS},
        "text_digest": digest.hexdigest()[:16],
    }
