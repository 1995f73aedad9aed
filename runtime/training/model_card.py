"""Renders MODEL_CARD.md from evaluation.json and the recipe; it measures nothing itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.training.markdown import table, wrapped
from runtime.training.recipe import WORKLOADS, NetworkShape, Recipe

SOURCES = {
    "code": "Python standard library without its tests (PSF licence)",
    "maths": "Metamath set.mm statements without proofs (CC0) and generated word problems",
    "dictionary": "WordNet 3.0 entries, repeated bodies once (WordNet licence)",
    "manuals": "SQLite (public domain) and PostgreSQL documentation (PostgreSQL licence)",
    "prose": "King James Bible and Jargon File (public domain)",
}

STAGES = ("text", "target", "sampling", "draft", "ablation")


def render_card(recipe: Recipe, measured: dict[str, Any]) -> str:
    """The whole card as Markdown."""
    blocks = [
        introduction(recipe, measured),
        data_section(recipe, measured),
        loss_section(measured),
        acceptance_section(recipe, measured),
        routing_section(recipe, measured),
        locality_section(recipe, measured),
        recipe_section(recipe, measured),
        limits_section(recipe),
    ]
    return "\n\n".join(wrapped(block) for block in blocks) + "\n"


def write_card(path: Path, recipe: Recipe, measured: dict[str, Any]) -> None:
    """Write the card to ``path``."""
    path.write_text(render_card(recipe, measured), encoding="utf-8")


def introduction(recipe: Recipe, measured: dict[str, Any]) -> str:
    title = "the shipped pair" if recipe == Recipe() else "a pair of a changed recipe"
    return f"""# Model card: {title}

A small mixture-of-experts target and a small dense draft for speculative decoding on a CPU. The
pair exists to give this laboratory real routing and real acceptance decisions; it is no useful
language model.

- target: {describe(recipe.target_shape)}, {measured["target_parameters"]:,} parameters
- draft: {describe(recipe.draft.shape)}, {measured["draft_parameters"]:,} parameters
- both: tied embeddings, fp16 safetensors, {measured["pair_bytes"] / 1e6:.1f} MB of weights"""


def describe(shape: NetworkShape) -> str:
    kind = "Qwen3-MoE" if shape.experts else "Qwen3"
    inner = (
        f"{shape.experts} experts of width {shape.expert_width}, top-{shape.experts_per_token}"
        if shape.experts
        else f"feed-forward width {shape.dense_width}"
    )
    return f"{kind}, {shape.layers} layers, hidden {shape.hidden}, {inner}"


def data_section(recipe: Recipe, measured: dict[str, Any]) -> str:
    tokens = measured["training_tokens"]
    rows = [[name, SOURCES[name], f"{tokens[name] / 1e6:.2f} M"] for name in WORKLOADS]
    corpus = recipe.corpus
    return f"""## Data and licences

{table(["workload", "text", "training tokens"], rows)}

At most {corpus.bytes_per_workload / 1e6:.0f} MB per workload. Documents (files, or pieces of about
6 to 8 kB of a larger work) are shuffled with a fixed seed and the first
{corpus.validation_share:.0%} are held out. The tokenizer is a byte-level BPE of
{corpus.vocabulary} tokens; token 0 separates documents and is the end token. Digest of the
tokenised text: `{measured["text_digest"]}`; another release of Python or of a package gives
another digest and another pair. Full notices: `NOTICE`. `prompts/` holds
{corpus.prompts_per_workload} held-out prompts of {corpus.prompt_tokens} tokens per workload; none
occurs in the training text."""


def loss_section(measured: dict[str, Any]) -> str:
    rows = [
        [name, f"{part['target_loss']:.3f}", f"{part['draft_loss']:.3f}"]
        for name, part in per_workload(measured)
    ]
    return f"""## Validation loss (nats per token)

{table(["workload", "target", "draft"], rows)}

The draft is trained to imitate the target at the temperature below, not to predict text, so its
own loss says little."""


def acceptance_section(recipe: Recipe, measured: dict[str, Any]) -> str:
    plan = recipe.evaluation
    rows = []
    for name, part in per_workload(measured):
        row = [name]
        for kind in ("keyed", "greedy"):
            rates = part[kind]
            row += [
                f"{rates['acceptance']:.3f}",
                f"{rates['accepted_per_proposed']:.3f}",
                f"{rates['tokens_per_pass']:.2f}",
            ]
        rows.append(row)
    names = ("acceptance", "accepted / proposed", "tokens per pass")
    heading = ["workload", *(f"{name}, T = {plan.temperature}" for name in names)]
    heading += [f"{name}, greedy" for name in names]
    return f"""## Acceptance at draft length {plan.draft_length}

{table(heading, rows)}

*Acceptance* is accepted / (accepted + rejected): per drafted position that the verification
reached. *Accepted / proposed* also counts the drafted tokens behind a rejection. *Tokens per pass*
includes the token the target adds. At T = {plan.temperature} both models add the same Gumbel noise,
fixed by seed, request and position, to their log-probabilities and a drafted token is accepted
exactly when both choices agree; this accepts less often than rejection sampling, whose rate is one
minus the total variation distance. {plan.prompts_per_workload} prompts per workload,
{plan.new_tokens} new tokens each."""


def routing_section(recipe: Recipe, measured: dict[str, Any]) -> str:
    plan = recipe.evaluation
    rows = []
    for name, part in per_workload(measured):
        routing = part["routing"]
        rows.append(
            [name]
            + [f"{routing[key]:.3f}" for key in ("reuse", "reuse_shuffled", "lru", "lru_shuffled")]
            + [f"{routing['distinct_per_window']:.1f}"]
        )
    mean = measured["mean"]
    entropy = ", ".join(f"{share:.3f}" for share in mean["entropy_per_layer"])
    heading = ["workload", "reuse", "reuse, shuffled", "LRU", "LRU, shuffled", "distinct experts"]
    return f"""## Routing at T = {plan.temperature}

{table(heading, rows)}

*Reuse*: share of the previous token's experts chosen again in the same layer (by chance
{mean["routing"]["reuse_by_chance"]:.4f}). *LRU*: hits per access with
{mean["routing"]["resident_experts"]:.0f} of {recipe.target_shape.experts} experts resident per
layer ({plan.resident_share:.0%}), empty at the start of each text. *Shuffled*: the same tokens of
the same texts in random order, which keeps the popularity of experts and removes the order.
*Distinct experts*: per layer over {plan.draft_length + 1} consecutive tokens. Only written tokens
are counted, not the prompts.

Entropy of expert use per layer over all workloads (1 is uniform): {entropy}."""


def locality_section(recipe: Recipe, measured: dict[str, Any]) -> str:
    target, ablation = recipe.target, measured["ablation"]
    rows = []
    for variant in ("without", "with"):
        part = ablation[variant]
        keys = ("reuse", "reuse_shuffled", "lru", "lru_shuffled")
        numbers = [part["loss"], *(part["routing"][key] for key in keys)]
        rows.append([f"{variant} locality loss", *(f"{number:.3f}" for number in numbers)])
    cost = ablation["with"]["loss"] - ablation["without"]["loss"]
    heading = ["target", "loss", "reuse", "reuse, shuffled", "LRU", "LRU, shuffled"]
    return f"""## Part of this locality is trained in

Besides a load-balance loss (weight {target.balance_weight}) the target was trained with a locality
loss (weight {target.locality_weight}, from step {target.locality_first_step}, full from step
{target.locality_full_step}): one minus the cosine of the centred router logits of adjacent tokens,
summed over layers. Two targets of {ablation["steps"]} steps on one rank with the same batches show
what it does:

{table(heading, rows)}

Mean validation loss, then the routing of {recipe.ablation.prompts_per_workload} prompts per
workload as above. Here the locality loss costs {cost:.3f} nats per token. The shipped target,
trained longer, ends at a reuse of {measured["mean"]["routing"]["reuse"]:.3f}. Results on the pair
show how a policy behaves where locality exists; they do not show how much of it other models
have."""


def recipe_section(recipe: Recipe, measured: dict[str, Any]) -> str:
    target, sampling, draft = recipe.target, recipe.sampling, recipe.draft
    layers = ", ".join(str(layer) for layer in draft.source_layers)
    timing = measured["timing"]
    rows = [
        [name, f"{timing[name]['wall_seconds']:.0f}", f"{timing[name]['cpu_seconds']:.0f}"]
        for name in STAGES
    ]
    sampled = sampling.batches * sampling.batch
    return f"""## Reproduction

```
spac train-pair
```

trains the shipped pair: `Recipe()` in `runtime/training/recipe.py` fixes every seed, size and step
count. This pair used {measured["ranks"]} ranks of one thread; the result depends on that number.

- target: {target.schedule.steps} steps of {measured["ranks"]} x {target.sequences_per_rank} x
  {target.sequence_tokens} tokens, AdamW, peak rate {target.schedule.peak}, seed {target.seed}
- sampling: {sampled} texts of {sampling.sequence_tokens} tokens at T = {sampling.temperature} from
  {sampling.prompt_tokens}-token training prompts, seed {sampling.seed}
- draft: starts from the target's embedding and the attention and norms of its layers {layers};
  {draft.schedule.steps} steps of {measured["ranks"]} x {draft.sequences_per_rank} x
  {draft.sequence_tokens} tokens, {draft.sampled_per_rank} of every {draft.sequences_per_rank}
  sequences sampled; Kullback-Leibler divergence plus {draft.distance_weight} x total variation
  distance to the target at T = {draft.temperature}; peak rate {draft.schedule.peak},
  seed {draft.seed}

{table(["stage", "wall seconds", "CPU seconds"], rows)}

No accelerator. An interrupted run continues from its last checkpoint and the times add up. The
shipped pair was trained on two cores shared with other work: its CPU times say more than its wall
times."""


def limits_section(recipe: Recipe) -> str:
    return f"""## Limits

- {recipe.corpus.vocabulary} tokens are short pieces of text (about 2.5 characters), which makes
  the next token easier to guess than with a large vocabulary.
- The arithmetic of the generated word problems is imitated, not computed.
- Greedy text fell into loops in an earlier trial; record traces at
  T = {recipe.evaluation.temperature}.
- The text is old, partly religious, and reflects its sources. Do not use the models for anything
  but experiments on scheduling."""


def per_workload(measured: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Workloads in order, then the mean."""
    named = [(name, measured["workloads"][name]) for name in WORKLOADS]
    return [*named, ("all", measured["mean"])]
