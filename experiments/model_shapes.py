"""The random model that has as many parameters, part by part, as a model profile says."""

from runtime.model_shape import ModelShape, model_shape
from simulator.draft_profile import DraftProfile
from simulator.model_profile import ModelProfile

HALF = 2  # bytes of a parameter of the profiles of drafts


def shape_of(
    model: ModelProfile,
    draft: DraftProfile,
    distinct: int | None = None,
    draft_parameter_bytes: int = HALF,
) -> ModelShape:
    """distinct: layers with weights of their own, None for all."""
    size = model.dense_parameter_bytes
    return model_shape(
        model.name,
        model.moe_layers,
        model.experts,
        model.top_k,
        model.hidden,
        model.expert_width,
        layer_parameters=model.layer_bytes // size,
        pass_parameters=model.pass_bytes // size,
        key_width=max(1, model.kv_bytes_per_token // (2 * model.layers * size)),
        distinct=distinct,
        draft_layers=draft.layers,
        draft_parameters=draft.step_bytes // draft_parameter_bytes,
    )
