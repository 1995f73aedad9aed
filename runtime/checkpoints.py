"""Local Hugging Face checkpoint directories: facts from config.json, and loading.

Reading facts never imports a transformers model class (that costs seconds and 400 MB); only the two
loaders do. Nothing is downloaded, nothing but safetensors is opened, no code from a checkpoint is
run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from policies.errors import UserError
from runtime.families import FAMILIES
from runtime.family import Family, attention_cache
from runtime.routing_rule import TOP_K, RoutingRule
from runtime.weight_files import stored_tensors, weight_files
from traces.strict_json import read_object

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Dense models of transformers that can draft; all keep plain keys and values per layer.
DRAFT_ARCHITECTURES = (
    "Qwen3ForCausalLM",
    "Qwen2ForCausalLM",
    "LlamaForCausalLM",
    "MistralForCausalLM",
)
SHIPPED_PAIR = Path(__file__).parent / "pretrained" / "pair"  # holds target/ and draft/
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# Sizes of config.json with what they can be at least and at most.
COUNTED = ("num_hidden_layers", "decoder_sparse_step")
MEASURED = (
    "hidden_size", "vocab_size", "max_position_embeddings", "num_attention_heads",
    "num_key_value_heads", "head_dim", "intermediate_size", "moe_intermediate_size",
)  # fmt: skip
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "num_experts_per_tok")
SIZES = (
    *((key, 1, 10_000) for key in COUNTED),
    *((key, 1, 2**31 - 1) for key in MEASURED),
    *((key, 0, 10_000) for key in EXPERTS),
)


@dataclass(frozen=True)
class CheckpointFacts:
    """What config.json says. For a dense model the expert fields are zero, `moe_layers` is empty
    and `family` None. kv_elements: of keys and values per token, over all layers.
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
    kv_elements: int = 0
    family: Family | None = None
    routing: RoutingRule = TOP_K

    @property
    def target_family(self) -> Family:
        """The family of a target; ValueError for a dense model, which has no experts."""
        if self.family is None:
            raise ValueError(f"{self.name} is a dense model")
        return self.family


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
    """Facts of a checkpoint of a known MoE family; UserError for anything else."""
    folder = Path(path)
    config = _config(folder, "target")
    family = FAMILIES.get(str(config.get("model_type")))
    if family is None or config.get("architectures") != [family.architecture]:
        known = ", ".join(f"{name} ({one.architecture})" for name, one in FAMILIES.items())
        raise UserError(
            f"target={folder}: model_type {config.get('model_type')} with architecture "
            f"{_architecture(config)} is not supported as a target; known are {known}"
        )
    refusal = family.refusal(config)
    if refusal is not None:
        raise UserError(f"target={folder}: {refusal}; use another checkpoint")
    return _checked(folder, "target", config, lambda: _target_facts(folder, config, family))


def open_draft(path: str | Path) -> CheckpointFacts:
    """Facts of a dense checkpoint of a known architecture; UserError for anything else."""
    folder = Path(path)
    config = _config(folder, "draft_path")
    if _architecture(config) not in DRAFT_ARCHITECTURES:
        raise UserError(
            f"draft_path={folder}: architecture {_architecture(config)} is not supported as a "
            f"draft; known are {', '.join(DRAFT_ARCHITECTURES)}"
        )
    return _checked(folder, "draft_path", config, lambda: _common_facts(folder, config))


def load_target(path: str | Path, device: str = "cpu", dtype: str = "float32") -> "PreTrainedModel":
    """The transformers module of a MoE checkpoint, in evaluation mode."""
    return _load(open_target(path), device, dtype)


def load_draft(path: str | Path, device: str = "cpu", dtype: str = "float32") -> "PreTrainedModel":
    """The transformers module of a dense checkpoint, in evaluation mode."""
    return _load(open_draft(path), device, dtype)


def _config(path: Path, role: str) -> dict[str, Any]:
    if not (path / "config.json").is_file():
        raise UserError(
            f"{role}={path}: no config.json there; give a Hugging Face checkpoint directory"
        )
    config = _read_json(path / "config.json")
    if quantised := config.get("quantization_config"):
        method = quantised.get("quant_method") if isinstance(quantised, dict) else quantised
        raise UserError(
            f"{role}={path}: quantised weights ({method}) are not supported; "
            "use the bf16 checkpoint"
        )
    return config


def _architecture(config: dict[str, Any]) -> str:
    named = config.get("architectures") or ["none named"]
    return ", ".join(map(str, named)) if isinstance(named, list) else str(named)


def _check_sizes(path: Path, role: str, config: dict[str, Any]) -> None:
    """UserError for a size that no model has: code below counts layers one by one and divides."""
    for key, least, most in SIZES:
        value = config.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise UserError(
                f"{role}={path}: config.json has {key}={value!r:.40}, must be a whole number of "
                f"{least} to {most}; the checkpoint is damaged"
            )


def _checked(
    path: Path, role: str, config: dict[str, Any], facts: Callable[[], CheckpointFacts]
) -> CheckpointFacts:
    weight_files(path)
    _check_sizes(path, role, config)
    try:
        return facts()
    except KeyError as missing:
        raise UserError(
            f"{role}={path}: config.json has no {missing}; the checkpoint is damaged"
        ) from None
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise UserError(
            f"{role}={path}: config.json holds a value that is no number ({error}); "
            "the checkpoint is damaged"
        ) from None


def _common_facts(path: Path, config: dict[str, Any]) -> CheckpointFacts:
    return CheckpointFacts(
        path=path,
        name=_name(path.resolve()),
        architecture=_architecture(config),
        layers=int(config["num_hidden_layers"]),
        hidden=int(config["hidden_size"]),
        vocabulary=int(config["vocab_size"]),
        max_positions=int(config["max_position_embeddings"]),
        end_tokens=_end_tokens(path, config),
        moe_layers=(),
        experts=0,
        top_k=0,
        expert_width=0,
        kv_elements=attention_cache(config),
    )


def _target_facts(path: Path, config: dict[str, Any], family: Family) -> CheckpointFacts:
    layers, experts = family.moe_layers(config), family.expert_count(config)
    top_k = int(config["num_experts_per_tok"])
    if not (layers and 0 < top_k <= experts):
        raise UserError(
            f"target={path}: {len(layers)} MoE layers, {experts} experts, top {top_k}: "
            "nothing to offload"
        )
    return replace(
        _common_facts(path, config),
        moe_layers=layers,
        experts=experts,
        top_k=top_k,
        expert_width=int(config[family.width]),
        kv_elements=family.kv_elements(config),
        family=family,
        routing=family.routing(config),
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
    return read_object(path, "download or write the checkpoint again")


def _load(facts: CheckpointFacts, device: str, dtype: str) -> "PreTrainedModel":
    place, number_format = torch_device(device), torch_dtype(dtype)
    stored_tensors(facts.path)  # reports damaged files in plain words
    import transformers  # here, not above: seconds and 400 MB
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # its report of unfit weights takes a screen; ours takes a line
    try:
        module, report = getattr(transformers, facts.architecture).from_pretrained(
            str(facts.path),
            dtype=number_format,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported by us below
        )
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
