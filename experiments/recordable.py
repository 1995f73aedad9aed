"""What `spac record` can know as impossible before it loads a model or makes a folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from policies.errors import UserError
from runtime.checkpoints import SHIPPED_PAIR, CheckpointFacts
from runtime.prompts import Prompt, check_prompts
from runtime.recorder import RecordingSettings, check_dense
from runtime.run_memory import positions_of
from runtime.verify_rules import make_rule

NONE = "none"


def target_of(config: Mapping[str, Any]) -> str | Path:
    """Directory of the target: the given one, else the shipped one."""
    path: str | Path = config["target"] or SHIPPED_PAIR / "target"
    return path


def draft_of(config: Mapping[str, Any]) -> str | Path | None:
    """Directory of the draft, None for none: a target of one's own has the draft that is named."""
    if config["draft_path"] is None:
        return SHIPPED_PAIR / "draft" if config["target"] is None else None
    path: str | Path = config["draft_path"]
    return None if path == NONE else path


def refuse_unrecordable(
    config: Mapping[str, Any],
    settings: RecordingSettings,
    facts: CheckpointFacts,
    prompts: Sequence[Prompt],
) -> None:
    """UserError for what the recorder would refuse as well, later."""
    draft = draft_of(config)
    settings.check_length()
    if config["kind"] == "dense":
        check_dense(settings)
        if draft is None:
            raise UserError(
                "kind=dense needs a draft; give draft_path=<checkpoint> or kind=windowed gamma=0"
            )
    elif settings.gamma < 0 or (settings.gamma > 0 and draft is None):
        raise UserError(
            f"gamma={settings.gamma} needs a draft and must not be negative; gamma=0 needs none"
        )
    make_rule(settings.sampling, facts.vocabulary, torch.device("cpu"), settings.truncation)
    room = settings.max_new_tokens + settings.gamma
    check_prompts(prompts, facts.vocabulary, room, positions_of(facts, draft))
