"""Which draft an engine gets: a dense model, lookup in the text, or none."""

from pathlib import Path

from runtime.checkpoints import CheckpointFacts
from runtime.draft_model import DraftModel, open_draft_model
from runtime.ngram_draft import NGRAM, NgramDraft

Drafter = DraftModel | NgramDraft


def open_drafter(
    choice: str | Path | None, target: CheckpointFacts, device: str, dtype: str
) -> Drafter | None:
    """choice: a checkpoint directory, "ngram", or None for none. A directory of that name is
    ./ngram.
    """
    if choice == NGRAM:
        return NgramDraft(target.vocabulary, device)
    return open_draft_model(choice, target, device, dtype)
