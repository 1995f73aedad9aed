"""The safetensors files of a checkpoint: what is in them, checked before any of it is read."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from policies.errors import UserError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
READABLE = {"F32": 4, "BF16": 2, "F16": 2}  # bytes of an element
MAPPED_AT_ONCE = 64 * 2**20


@dataclass(frozen=True)
class StoredTensor:
    """What the header of a file says of one tensor. dtype: safetensors' name."""

    name: str
    file: Path
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * READABLE[self.dtype]


def weight_files(path: Path) -> list[Path]:
    """The files of a checkpoint directory, single or sharded; UserError if one is missing."""
    return [path / name for name in sorted(set(_file_names(path)))]


def stored_tensors(path: Path) -> dict[str, StoredTensor]:
    """All tensors of a checkpoint directory by name, from the headers alone.

    UserError for an unreadable or truncated file, a tensor in two files, one that the index puts
    elsewhere, and a dtype that is not float32, bfloat16 or float16.
    """
    found: dict[str, StoredTensor] = {}
    for file in weight_files(path):
        for tensor in _header(file):
            if tensor.name in found:
                other = found[tensor.name].file.name
                raise UserError(
                    f"{path}: tensor {tensor.name} comes twice, in {other} and {file.name}; "
                    "download the checkpoint again"
                )
            found[tensor.name] = tensor
    _check_index(path, found)
    return found


def read_tensors(
    path: Path, wanted: Callable[[str], bool]
) -> Iterator[tuple[StoredTensor, torch.Tensor]]:
    """The tensors whose name is `wanted`, file by file. A tensor is a mapping of its file: use it
    before asking for the next one.
    """
    # A mapped file keeps what was read of it in memory as long as it is open.
    for tensors in _batches([one for one in stored_tensors(path).values() if wanted(one.name)]):
        with _opened(tensors[0].file) as shard:
            for tensor in tensors:
                yield tensor, shard.get_tensor(tensor.name)


def _batches(tensors: list[StoredTensor]) -> Iterator[list[StoredTensor]]:
    """Neighbours of one file, of at most MAPPED_AT_ONCE bytes or one tensor."""
    batch: list[StoredTensor] = []
    for tensor in tensors:
        size = sum(one.size for one in batch) + tensor.size
        if batch and (tensor.file != batch[0].file or size > MAPPED_AT_ONCE):
            yield batch
            batch = []
        batch.append(tensor)
    if batch:
        yield batch


def _file_names(path: Path) -> list[str]:
    names = [SINGLE]
    if (path / INDEX).is_file():
        names = sorted(set(_index(path).values()))
    foreign = [name for name in names if Path(name).name != name]
    if foreign:
        raise UserError(
            f"{path / INDEX}: names the file {foreign[0]} outside the checkpoint; "
            "download it from its publisher again"
        )
    missing = [name for name in names if not (path / name).is_file()]
    if missing or not names:
        raise UserError(
            f"{path}: {len(missing)} of {len(names)} weight files missing, "
            f"first {next(iter(missing), INDEX)}; "
            "only safetensors checkpoints are read, so convert or download it again"
        )
    return names


def _index(path: Path) -> dict[str, str]:
    try:
        content = json.loads((path / INDEX).read_text(encoding="utf-8"))
        table = content["weight_map"]
        if all(isinstance(name, str) for name in table.values()):
            return dict(table)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise UserError(f"{path / INDEX}: no readable weight_map in it; download it again")


def _header(file: Path) -> Iterator[StoredTensor]:
    with _opened(file) as shard:
        for name in shard.keys():  # noqa: SIM118 (a shard is not a dict)
            part = shard.get_slice(name)
            dtype = str(part.get_dtype())
            if dtype not in READABLE:
                raise UserError(
                    f"{file}: tensor {name} is {dtype}, only {', '.join(READABLE)} are read; "
                    "use the bf16 checkpoint"
                )
            yield StoredTensor(name, file, tuple(part.get_shape()), dtype)


def _opened(file: Path) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        return safe_open(str(file), framework="pt")
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{file}: unreadable weights ({error}); download or write them again"
        ) from None


def _check_index(path: Path, found: dict[str, StoredTensor]) -> None:
    if not (path / INDEX).is_file():
        return
    index = _index(path)
    named = {name: tensor.file.name for name, tensor in found.items()}
    different = sorted(
        name for name in index.keys() | named.keys() if index.get(name) != named.get(name)
    )
    if different:
        name = different[0]
        raise UserError(
            f"{path}: {len(different)} tensors are not where {INDEX} says, first {name}: "
            f"index {index.get(name, 'does not name it')}, files {named.get(name, 'lack it')}; "
            "the files do not belong together, download them again"
        )
