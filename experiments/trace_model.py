"""The model that a user names for a trace that is imported or generated."""

from omegaconf import DictConfig, OmegaConf

from experiments.commands import CONF, options
from experiments.unknown import suggestion
from experiments.values import whole_number
from policies.errors import UserError
from simulator.model_profile import ModelProfile, model_profile
from traces.importers.routing import Given

AS_THE_TRACE = "trace"  # the profile that copies the shape of a trace


def named_model(config: DictConfig) -> Given:
    """What model=, experts= and expert_bytes= say; the two numbers win over the named model."""
    experts = _positive("experts", config.experts)
    size = _positive("expert_bytes", config.expert_bytes)
    if config.model is None:
        return Given(None, experts, size)
    profile = profile_of(str(config.model))
    if profile is not None:
        return Given(
            profile.name,
            experts or profile.experts,
            size or profile.bytes_of_expert(),
            profile.moe_layers,
            profile.top_k,
        )
    if experts is None or size is None:
        known = sorted(set(options("model")) - {AS_THE_TRACE})
        hint = suggestion(str(config.model), known) or "."
        raise UserError(
            f"unknown model '{config.model}'{hint} There are: {', '.join(known)}; another name "
            "needs experts= and expert_bytes="
        )
    return Given(str(config.model), experts, size)


def profile_of(name: str) -> ModelProfile | None:
    """The profile of conf/model, None if there is no such file."""
    if name == AS_THE_TRACE or name not in options("model"):
        return None
    values = OmegaConf.to_container(OmegaConf.load(CONF / "model" / f"{name}.yaml"))
    if not isinstance(values, dict):
        raise UserError(f"conf/model/{name}.yaml holds no keys")
    return model_profile({str(key): value for key, value in values.items()})


def _positive(key: str, value: object) -> int | None:
    if value is None:
        return None
    if whole_number(key, value) < 1:
        raise UserError(f"{key}={value}, must be at least 1")
    return whole_number(key, value)
