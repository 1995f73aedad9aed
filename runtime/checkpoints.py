"""Local Hugging Face checkpoint directories: facts from config.json, and loading.

Reading facts never imports a transformers model class (that costs seconds and 400 MB); only the two
loaders do. Nothing is downloaded, nothing but safetensors is opened, no code from a checkpoint is
run.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from policies.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TARGET_ARCHITECTURE = "Qwen3MoeForCausalLM"
DRAFT_ARCHITECTURE = "Qwen3ForCausalLM"
SHIPPED_PAIR = Path(__file__).parent / "pretrained" / "pair"  # holds target/ and draft/
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class CheckpointFacts:
    """What config.json says. For a dense model the expert fields are zero and `moe_layers` is
    empty.
    """

    path: Path
    name: str
    architecture: str
    layers: int
    hidden: int
    vocabulary: int
    max_positions: int
    end_tokens: frozenset[int]
    moe_layers: tuple[int, ...]
    experts: int
    top_k: int
    expert_width: int

    def expert_bytes(self, dtype: str) -> int:
        """Bytes of one expert (gate, up and down projections) in `dtype`, a key of DTYPES."""
        return 3 * self.hidden * self.expert_width * torch_dtype(dtype).itemsize


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype called `name`; UserError listing the known ones."""
    if name not in DTYPES:
        raise UserError(f"dtype={name} is not supported; use one of {', '.join(DTYPES)}")
    return DTYPES[name]


def torch_device(name: str) -> torch.device:
    """`cpu`, `cuda` or `cuda:<n>` as a device that exists here, else UserError."""
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "cuda") or (index and not index.isdigit()):
        raise UserError(f"device={name} is not supported; use cpu, cuda or cuda:<number>")
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"device={name} is not there: torch sees {torch.cuda.device_count()} CUDA devices; "
            "use device=cpu"
        )
    return torch.device(name)


def open_target(path: str | Path) -> CheckpointFacts:
    """Facts of a Qwen3-MoE checkpoint; UserError for anything else."""
    return _open(Path(path), "target", TARGET_ARCHITECTURE)


def open_draft(path: str | Path) -> CheckpointFacts:
    """Facts of a dense Qwen3 checkpoint; UserError for anything else."""
    return _open(Path(path), "draft", DRAFT_ARCHITECTURE)


def load_target(path: str | Path, device: str = "cpu", dtype: str = "float32") -> "PreTrainedModel":
    """The transformers module of a Qwen3-MoE checkpoint, in evaluation mode."""
    return _load(open_target(path), device, dtype)


def load_draft(path: str | Path, device: str = "cpu", dtype: str = "float32") -> "PreTrainedModel":
    """The transformers module of a dense Qwen3 checkpoint, in evaluation mode."""
    return _load(open_draft(path), device, dtype)


def weight_files(path: Path) -> list[Path]:
    """The safetensors files of a checkpoint, single or sharded; UserError if one is missing."""
    index = path / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        names = sorted(set(_read_json(index).get("weight_map", {}).values()))
    missing = [name for name in names if not (path / name).is_file()]
    if missing or not names:
        raise UserError(
            f"{path}: {len(missing)} of {len(names)} weight files missing, "
            f"first {next(iter(missing), index.name)}; "
            "only safetensors checkpoints are read, so convert or download it again"
        )
    return [path / name for name in names]


def _open(path: Path, role: str, architecture: str) -> CheckpointFacts:
    if not (path / "config.json").is_file():
        raise UserError(
            f"{role}={path}: no config.json there; give a Hugging Face checkpoint directory"
        )
    config = _read_json(path / "config.json")
    found = ", ".join(config.get("architectures") or ["none named"])
    if found != architecture:
        raise UserError(
            f"{role}={path}: architecture {found} is not supported; "
            f"a target must be {TARGET_ARCHITECTURE}, a draft {DRAFT_ARCHITECTURE}"
        )
    if config.get("quantization_config"):
        method = config["quantization_config"].get("quant_method", "unknown")
        raise UserError(
            f"{role}={path}: quantised weights ({method}) are not supported; "
            "use the bf16 checkpoint"
        )
    if config.get("use_sliding_window"):
        raise UserError(
            f"{role}={path}: sliding-window attention is on, and its cache cannot be cut back "
            "after a rejected draft; use a checkpoint with use_sliding_window=false"
        )
    weight_files(path)
    try:
        return _facts(path, architecture, config)
    except KeyError as missing:
        raise UserError(
            f"{role}={path}: config.json has no {missing}; the checkpoint is damaged"
        ) from None


def _facts(path: Path, architecture: str, config: dict[str, Any]) -> CheckpointFacts:
    layers = int(config["num_hidden_layers"])
    moe = architecture == TARGET_ARCHITECTURE
    # Published checkpoints say num_experts, files written by transformers 5 say num_local_experts.
    experts = (
        int(config["num_experts" if "num_experts" in config else "num_local_experts"]) if moe else 0
    )
    step = int(config.get("decoder_sparse_step", 1))
    dense = set(config.get("mlp_only_layers") or [])
    moe_layers = tuple(n for n in range(layers) if moe and n not in dense and (n + 1) % step == 0)
    if moe and not (moe_layers and 0 < int(config["num_experts_per_tok"]) <= experts):
        raise UserError(
            f"target={path}: {len(moe_layers)} MoE layers, {experts} experts: nothing to offload"
        )
    return CheckpointFacts(
        path=path,
        name=_name(path.resolve()),
        architecture=architecture,
        layers=layers,
        hidden=int(config["hidden_size"]),
        vocabulary=int(config["vocab_size"]),
        max_positions=int(config["max_position_embeddings"]),
        end_tokens=_end_tokens(path, config),
        moe_layers=moe_layers,
        experts=experts,
        top_k=int(config["num_experts_per_tok"]) if moe else 0,
        expert_width=int(config["moe_intermediate_size"]) if moe else 0,
    )


def _name(path: Path) -> str:
    """A name for manifests: of the repository in a download cache, else of the folder."""
    for part in path.parts:
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    # "target" alone would name every pair that is kept as <pair>/target and <pair>/draft.
    return f"{path.parent.name}/{path.name}" if path.name in ("target", "draft") else path.name


def _end_tokens(path: Path, config: dict[str, Any]) -> frozenset[int]:
    generation = path / "generation_config.json"
    value = _read_json(generation).get("eos_token_id") if generation.is_file() else None
    value = config.get("eos_token_id") if value is None else value
    return frozenset([] if value is None else value if isinstance(value, list) else [value])


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: not valid JSON ({error}); download or write the checkpoint again"
        ) from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def _load(facts: CheckpointFacts, device: str, dtype: str) -> "PreTrainedModel":
    place, number_format = torch_device(device), torch_dtype(dtype)
    from safetensors import SafetensorError  # imports here, not above: seconds and 400 MB
    from transformers import Qwen3ForCausalLM, Qwen3MoeForCausalLM
    from transformers.utils import logging

    classes = {TARGET_ARCHITECTURE: Qwen3MoeForCausalLM, DRAFT_ARCHITECTURE: Qwen3ForCausalLM}
    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # its report of unfit weights takes a screen; ours takes a line
    try:
        module, report = classes[facts.architecture].from_pretrained(
            str(facts.path),
            dtype=number_format,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported by us below
        )
    except SafetensorError as error:
        raise UserError(
            f"{facts.path}: unreadable weights ({error}); download or write them again"
        ) from None
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
    # transformers fills a missing tensor with random numbers and goes on; a recording of that is
    # worthless.
    missing = sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"])
    if missing:
        raise UserError(
            f"{facts.path}: {len(missing)} weights missing or misshapen, first {missing[0]}; "
            "the files do not belong to this config.json"
        )
    return module.to(place).eval().requires_grad_(False)
