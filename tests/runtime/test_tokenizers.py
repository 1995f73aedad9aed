import json
import shutil
from pathlib import Path

import pytest

from policies.errors import UserError
from runtime.checkpoints import open_draft, open_target
from runtime.draft_model import open_draft_model
from runtime.tiny import TinyShape, make_tiny_pair
from runtime.tokenizers import Tokenizer, check_same_tokenizer, tokenizer_hash


def edit_tokenizer(folder: Path, **changes: object) -> None:
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_encoding_and_decoding(tiny_path: Path) -> None:
    tokenizer = Tokenizer(tiny_path / "target")
    assert tokenizer.encode("w3 w63  w5") == [3, 63, 5]
    assert tokenizer.decode([3, 63, 5]) == "w3 w63 w5"


def test_pair_with_one_tokenizer(tmp_path: Path) -> None:
    target, draft = make_tiny_pair(tmp_path)
    before = tokenizer_hash(target)
    edit_tokenizer(draft, padding={"strategy": "BatchLongest"}, truncation={"max_length": 8})
    assert check_same_tokenizer(open_target(target), open_draft(draft)) == before


def test_other_tokenizers_are_refused(tmp_path: Path) -> None:
    target, draft = make_tiny_pair(tmp_path)
    edit_tokenizer(draft, normalizer={"type": "Lowercase"})
    with pytest.raises(UserError, match="must share the target's tokenizer"):
        open_draft_model(draft, open_target(target))


def test_other_vocabulary_is_refused(tmp_path: Path) -> None:
    target, _ = make_tiny_pair(tmp_path / "a")
    _, draft = make_tiny_pair(tmp_path / "b", shape=TinyShape(vocabulary=60))
    with pytest.raises(UserError, match="vocabulary of 60, the target has 64"):
        check_same_tokenizer(open_target(target), open_draft(draft))


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    target, draft = make_tiny_pair(tmp_path)
    (target / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"no tokenizer.json"):
        Tokenizer(target)
    (draft / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        tokenizer_hash(draft)


def test_no_draft_needs_no_tokenizer(tmp_path: Path) -> None:
    target, _ = make_tiny_pair(tmp_path)
    facts = open_target(target)
    shutil.rmtree(tmp_path / "draft")
    assert open_draft_model(None, facts) is None
