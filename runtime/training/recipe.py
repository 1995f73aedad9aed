"""Every seed, size and step count of the shipped pair, as frozen records.

Step counts are fixed (never time budgets), so the same recipe on the same text gives the same pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

WORKLOADS = ("code", "maths", "dictionary", "manuals", "prose")


@dataclass(frozen=True)
class CorpusRecipe:
    """How much text per workload is read and how it is split."""

    seed: int = 11
    bytes_per_workload: int = 6_000_000
    validation_share: float = 0.03
    vocabulary: int = 1024
    prompts_per_workload: int = 32
    prompt_tokens: int = 56


@dataclass(frozen=True)
class NetworkShape:
    """Sizes of a Qwen3 (``experts == 0``) or Qwen3-MoE decoder with tied embeddings."""

    vocabulary: int = 1024
    hidden: int = 128
    layers: int = 8
    heads: int = 4
    key_value_heads: int = 2
    head_width: int = 32
    experts: int = 64
    experts_per_token: int = 4
    expert_width: int = 32
    dense_width: int = 384
    rope_theta: float = 10_000.0
    norm_epsilon: float = 1e-6
    positions: int = 2048


@dataclass(frozen=True)
class Schedule:
    """Constant learning rate after a linear warm-up, then a linear decay to zero."""

    steps: int
    peak: float
    warmup_steps: int
    decay_share: float

    def rate(self, step: int) -> float:
        """Learning rate of 0-based ``step``."""
        rising = min(1.0, (step + 1) / max(1, self.warmup_steps))
        decay_steps = max(1.0, self.steps * self.decay_share)
        falling = min(1.0, (self.steps - step) / decay_steps)
        return self.peak * rising * falling


@dataclass(frozen=True)
class TargetRecipe:
    """Training of the mixture-of-experts target on real text."""

    seed: int = 1
    schedule: Schedule = field(default_factory=lambda: Schedule(3000, 3e-3, 80, 0.4))
    sequences_per_rank: int = 8
    sequence_tokens: int = 256
    weight_decay: float = 0.05
    balance_weight: float = 0.002
    locality_weight: float = 0.04
    # The locality loss starts after the experts have begun to differ.
    locality_first_step: int = 300
    locality_full_step: int = 1000


@dataclass(frozen=True)
class SamplingRecipe:
    """Text written by the target itself, used to distil the draft on its own distribution."""

    seed: int = 7
    batches: int = 16
    batch: int = 192
    prompt_tokens: int = 48
    sequence_tokens: int = 256
    temperature: float = 0.8


@dataclass(frozen=True)
class DraftRecipe:
    """Distillation of the dense draft on the target's full distributions."""

    seed: int = 3
    shape: NetworkShape = field(
        default_factory=lambda: NetworkShape(
            layers=4, experts=0, experts_per_token=0, expert_width=0, dense_width=512
        )
    )
    # Layers of the target whose attention and norm weights the draft starts from.
    source_layers: tuple[int, ...] = (0, 2, 5, 7)
    schedule: Schedule = field(default_factory=lambda: Schedule(1000, 3e-3, 60, 0.6))
    sequences_per_rank: int = 8
    # How many of them the target wrote; the others are training text.
    sampled_per_rank: int = 6
    sequence_tokens: int = 256
    weight_decay: float = 0.02
    temperature: float = 0.8
    distance_weight: float = 1.0


@dataclass(frozen=True)
class EvaluationRecipe:
    """Fixed held-out measurements behind the model card."""

    seed: int = 5
    prompts_per_workload: int = 32
    new_tokens: int = 160
    draft_length: int = 8
    temperature: float = 0.8
    resident_share: float = 0.17


@dataclass(frozen=True)
class AblationRecipe:
    """Two short targets that show what the locality loss changes."""

    scale: float = 0.2
    prompts_per_workload: int = 8


@dataclass(frozen=True)
class Recipe:
    """The whole run; ``Recipe()`` is the shipped pair."""

    corpus: CorpusRecipe = CorpusRecipe()
    target_shape: NetworkShape = NetworkShape()
    target: TargetRecipe = TargetRecipe()
    sampling: SamplingRecipe = SamplingRecipe()
    draft: DraftRecipe = DraftRecipe()
    evaluation: EvaluationRecipe = EvaluationRecipe()
    ablation: AblationRecipe = AblationRecipe()
    checkpoint_steps: int = 200


def scaled(recipe: Recipe, scale: float) -> Recipe:
    """The recipe with all step counts and the amount of sampled text multiplied by ``scale``."""
    if scale <= 0:
        raise ValueError(f"scale must be positive, got {scale}")
    if scale == 1:
        return recipe
    target, draft, sampling = recipe.target, recipe.draft, recipe.sampling
    return replace(
        recipe,
        target=replace(
            target,
            schedule=scaled_schedule(target.schedule, scale),
            locality_first_step=round(target.locality_first_step * scale),
            locality_full_step=round(target.locality_full_step * scale),
        ),
        sampling=replace(sampling, batches=max(1, round(sampling.batches * scale))),
        draft=replace(draft, schedule=scaled_schedule(draft.schedule, scale)),
    )


def scaled_schedule(schedule: Schedule, scale: float) -> Schedule:
    """At least one step, the warm-up in proportion."""
    steps = max(1, round(schedule.steps * scale))
    return replace(schedule, steps=steps, warmup_steps=round(schedule.warmup_steps * scale))
