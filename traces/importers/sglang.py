"""Import a dump of SGLang's expert-distribution recorder in mode per_token, converted to JSON.

The recorder writes torch.save files, which are pickle and are never opened here; CONVERT makes JSON
of one, on the machine that wrote it. Each record is one forward pass of one rank: forward_pass_id,
forward_mode (1 extend, 2 decode), input_ids, positions, extend_seq_lens, topk_ids_of_layer [layers,
tokens, k], -1 where nothing was routed. `last_physical_to_logical_map` [layers, physical experts]
turns replicas back into experts. The modes per_pass, stat and stat_approx hold counts and are
refused. Requests are not named; `SequenceChain` finds them by their positions. Keys, types and the
numbers of modes are those that SGLang 0.5.23 writes (srt/eplb/expert_distribution.py); older
versions lack `global_physical_count`, which is not read.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.importers.json_arrays import integer_array, key_of
from traces.importers.json_files import mentions, read_json
from traces.importers.routing import Routing, without_split_prompts
from traces.importers.sequence_chain import SequenceChain

CONVERT = (
    "python -c 'import json,sys,torch; "
    'json.dump(torch.load(sys.argv[1], "cpu", weights_only=True), open(sys.argv[1]+".json", "w"), '
    "default=lambda tensor: tensor.tolist())' FILE.pt"
)
_EXTEND, _DECODE, _IDLE = 1, 2, 4
_AGAIN = "record again with --expert-distribution-recorder-mode per_token"
SUFFIXES = (".pt", ".pth")


def recognises_sglang(source: Path) -> bool:
    """A torch file, or JSON with the recorder's keys."""
    return source.suffix in SUFFIXES or any(
        mentions(source, *keys)
        for keys in (("records", "forward_pass_id"), ("logical_count",), ("physical_count",))
    )


def read_sglang(source: Path) -> Routing:
    """The requests of one rank's dump."""
    if source.suffix in SUFFIXES:
        raise UserError(
            f"{source}: a torch file is pickle, which could run code, and is not opened; convert "
            f"it where it was written: {CONVERT}"
        )
    dump = read_json(source)
    if not isinstance(dump, dict) or not isinstance(dump.get("records"), list):
        keys = ", ".join(dump) if isinstance(dump, dict) else type(dump).__name__
        raise UserError(
            f"{source}: counts of experts ({keys}) do not tell which token chose which; {_AGAIN}"
        )
    chain = SequenceChain()
    passes = [
        _read_pass(record, chain, f"{source}, record {number}")
        for number, record in enumerate(dump["records"])
    ]
    shares = [one for one in passes if one is not None]
    if not shares:
        raise UserError(f"{source}: no forward pass with tokens")
    if len({one.shape[1:] for one in shares}) > 1:
        raise UserError(f"{source}: passes differ in layers or top-k")
    raw: NDArray[np.int64] = np.concatenate(shares)
    layers = np.flatnonzero((raw >= 0).any(axis=(0, 2)))
    columns = np.flatnonzero((raw >= 0).any(axis=(0, 1)))
    if len(layers) == 0:
        raise UserError(f"{source}: every entry of topk_ids_of_layer is -1: nothing was routed")
    experts, number, replicas = _logical(
        raw[:, layers][:, :, columns], dump, layers, raw.shape[1], source
    )
    order = chain.order()
    notes = {"passes": "requests were told apart by positions"}
    if len(layers) < raw.shape[1]:
        notes["layers"] = f"{raw.shape[1] - len(layers)} layers without routed experts left out"
    if replicas:
        notes["replicas"] = "of experts were mapped back by the last map of the recording"
    return without_split_prompts(
        Routing(
            request=chain.request[order],
            position=chain.position[order],
            prompt=chain.prompt[order],
            token=chain.token[order],
            experts=experts[order],
            number=number,
            notes=notes,
        )
    )


def _read_pass(record: dict[str, Any], chain: SequenceChain, where: str) -> NDArray[Any] | None:
    """experts [tokens, layers, k] of a pass, whose tokens go to `chain`; None for an idle one."""
    if "topk_ids_of_layer" not in record:
        raise UserError(
            f"{where}: key 'topk_ids_of_layer' is missing: the mode per_pass stores counts of "
            f"experts, not which token chose which; {_AGAIN}"
        )
    mode = key_of(record, "forward_mode", where)
    if mode == _IDLE or not record.get("input_ids"):
        return None
    token = integer_array(record["input_ids"], 1, f"{where}: input_ids")
    position = integer_array(key_of(record, "positions", where), 1, f"{where}: positions")
    experts = integer_array(record["topk_ids_of_layer"], 3, f"{where}: topk_ids_of_layer")
    if not len(token) == len(position) == experts.shape[1]:
        raise UserError(
            f"{where}: {len(token)} input_ids, {len(position)} positions and "
            f"{experts.shape[1]} tokens in topk_ids_of_layer"
        )
    if mode == _EXTEND:
        lengths = integer_array(
            key_of(record, "extend_seq_lens", where), 1, f"{where}: extend_seq_lens"
        )
        if lengths.sum() != len(token):
            raise UserError(f"{where}: extend_seq_lens add up to {lengths.sum()}, not {len(token)}")
        chain.extend(token, position, lengths, where)
    elif mode == _DECODE:
        chain.decode(token, position, where)
    else:
        raise UserError(
            f"{where}: forward_mode {mode}; only extend (1) and decode (2) tell which token goes "
            "where: record without --enable-mixed-chunk and without speculative decoding"
        )
    return experts.transpose(1, 0, 2)


def _logical(
    experts: NDArray[Any],
    dump: dict[str, Any],
    layers: NDArray[np.int64],
    count: int,
    source: Path,
) -> tuple[NDArray[Any], int | None, bool]:
    """(experts by their own numbers, experts of a layer or None, whether there were replicas)."""
    table = dump.get("last_physical_to_logical_map")
    if table is None:
        return experts, None, False
    mapping = integer_array(table, 2, f"{source}: last_physical_to_logical_map")
    if len(mapping) != count:
        raise UserError(
            f"{source}: last_physical_to_logical_map is {list(mapping.shape)}, the passes have "
            f"{count} layers"
        )
    if experts.max() >= mapping.shape[1]:
        raise UserError(
            f"{source}: expert {experts.max()} of {mapping.shape[1]} in "
            "last_physical_to_logical_map: the server counts shared experts among the routed ones; "
            "record with --disable-shared-experts-fusion"
        )
    mapping = mapping[layers]
    number = int(mapping.max()) + 1
    if (mapping == np.arange(mapping.shape[1])).all():
        return experts, number, False
    found = mapping[np.arange(len(mapping))[None, :, None], experts]
    return np.where(experts < 0, experts, found), number, True
