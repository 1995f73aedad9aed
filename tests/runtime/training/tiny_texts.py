"""A miniature unpacked package tree and a recipe that trains on it in seconds."""

from __future__ import annotations

import gzip
from pathlib import Path

from runtime.training.recipe import (
    CorpusRecipe,
    DraftRecipe,
    EvaluationRecipe,
    NetworkShape,
    Recipe,
    SamplingRecipe,
    Schedule,
    TargetRecipe,
)

TINY_TARGET = NetworkShape(
    vocabulary=320,
    hidden=32,
    layers=2,
    heads=2,
    key_value_heads=1,
    head_width=16,
    experts=8,
    experts_per_token=2,
    expert_width=16,
    dense_width=48,
    positions=256,
)
TINY_DRAFT = NetworkShape(**{**vars(TINY_TARGET), "layers": 1, "experts": 0})
TINY_RECIPE = Recipe(
    corpus=CorpusRecipe(
        bytes_per_workload=30_000, vocabulary=320, prompts_per_workload=3, prompt_tokens=12
    ),
    target_shape=TINY_TARGET,
    target=TargetRecipe(
        schedule=Schedule(6, 3e-3, 1, 0.5),
        sequences_per_rank=2,
        sequence_tokens=32,
        locality_first_step=1,
        locality_full_step=3,
    ),
    sampling=SamplingRecipe(batches=2, batch=4, prompt_tokens=8, sequence_tokens=32),
    draft=DraftRecipe(
        shape=TINY_DRAFT,
        source_layers=(1,),
        schedule=Schedule(4, 3e-3, 1, 0.5),
        sequences_per_rank=3,
        sampled_per_rank=2,
        sequence_tokens=32,
    ),
    evaluation=EvaluationRecipe(prompts_per_workload=2, new_tokens=16, draft_length=4),
    checkpoint_steps=2,
)


def write_package_tree(root: Path) -> Path:
    """Files where the Debian packages put them, a few kilobytes each; returns ``root``."""
    sentences = [f"The {n}th sheep went over hill {n * 7 % 31} and slept.\n" for n in range(220)]
    body = "".join(sentences)
    statement = "$( Contributed text. (Contributed by NM, 1-Jan-1999.) $)\n"
    proofs = "".join(
        f"{statement}th{n} $p |- ( ph -> ps{n} ) $= ( SECRET{n} ) AB $.\n" for n in range(200)
    )
    entries = "".join(f"word{n}\n    n 1: a thing of kind {n}\n" for n in range(300))
    entries += "synonym\n    n 1: a thing of kind 299\n"
    page = (
        "<html><head><title>no</title></head><body><h1>Use &lt;it&gt;</h1><p>{}</p></body></html>"
    )
    files = {
        "usr/share/metamath/databases/set.mm": proofs.encode(),
        "usr/share/dictd/wn.dict.dz": gzip.compress(entries.encode()),
        "usr/share/doc/sqlite3/page.html": page.format(body).encode(),
        "usr/share/doc/sqlite3/changes.html": page.format("SKIPPED " + body).encode(),
        "usr/share/doc/postgresql-doc-15/html/page.html": page.format(body[::-1]).encode(),
        "usr/share/doc/jargon-text/jargon.txt.gz": gzip.compress(body.encode()),
        "usr/share/doc/dict-wn/copyright": b"Permission to use is granted.\n",
        "usr/lib/bible.data": bible_data([f"Gen1:{n} In the beginning {n}.\n" for n in range(60)]),
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def bible_data(verses: list[str]) -> bytes:
    """The compressed layout: header, offsets from byte 0x5c, magic number, LZW windows."""
    text = "".join(verses).encode()
    windows = [literal_codes(text[start : start + 200]) for start in range(0, len(text), 200)]
    first = 0x5C + 4 * len(windows)
    offsets = [first + 3 + sum(map(len, windows[:number])) for number in range(len(windows))]
    table = b"".join(offset.to_bytes(4, "big") for offset in offsets)
    return b"EC02Compressed".ljust(0x5C, b"\0") + table + b"\x1f\x9d\x90" + b"".join(windows)


def literal_codes(text: bytes) -> bytes:
    """At most 255 bytes as 9-bit LZW literals, lowest bits first."""
    bits = sum(byte << (9 * place) for place, byte in enumerate(text))
    return bits.to_bytes((9 * len(text) + 7) // 8, "little")
