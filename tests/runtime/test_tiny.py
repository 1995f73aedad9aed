import hashlib
from pathlib import Path

import torch

from runtime.checkpoints import open_target
from runtime.expert_layout import layout_of
from runtime.tiny import TinyShape, make_tiny_pair


def digest(folder: Path) -> str:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def test_equal_seeds_give_equal_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        make_tiny_pair(tmp_path / name, seed)
    digests = [digest(tmp_path / name) for name in "abc"]
    assert digests[0] == digests[1] != digests[2]


def test_shape_is_what_was_asked_for(tmp_path: Path) -> None:
    shape = TinyShape(layers=5, experts=16, top_k=4, expert_width=12, dense_layers=(0, 3))
    target, _ = make_tiny_pair(tmp_path, shape=shape)
    facts = open_target(target)
    assert (facts.moe_layers, facts.experts, facts.top_k) == ((1, 2, 4), 16, 4)
    assert layout_of(facts, torch.float32).expert_bytes == 3 * 12 * 32 * 4
