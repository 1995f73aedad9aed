"""Sentences of `study paper` about agreement and disagreement, chosen by the numbers."""

import pandas as pd

from experiments.studies import paper_targets as published
from experiments.studies.paper_fit import Fitted
from experiments.studies.paper_memory import Memory
from experiments.studies.paper_predictions import GAMMA, LLAMA, LLAMA_SD, SPAC

CLOSE = 0.10
TPS = "tokens_per_second"


def fit_words(fitted: Fitted, speeds: pd.DataFrame) -> str:
    """The two fitted values, and whether they are believable."""
    row = speeds.loc[LLAMA_SD]
    return (
        f"CPU experts read {fitted.cpu_bytes_per_second / 1e9:.1f} GB/s, from llama.cpp's "
        f"{published.LLAMA} tokens/s alone: inside the 47-77 GB/s that others measured. "
        f"Acceptance {fitted.acceptance:.3f} a draft, from {published.LLAMA_SPECULATION} tokens/s "
        f"with speculation alone: {row['tokens_per_pass']:.1f} tokens a pass. The window needs "
        f"{row['active_experts_per_layer']:.0f} experts a layer instead of 8, so drafts must be "
        "accepted that often to gain anything where all experts are on the CPU. No public figure "
        "for this pair exists; EAGLE-3 drafts on a sibling model reach 3.5 to 5.3 tokens a pass. "
        "If the real acceptance was lower, the paper's CPU handles a window more cheaply than one "
        "reading of every distinct expert."
    )


def spac_words(speeds: pd.DataFrame) -> str:
    """The main prediction."""
    row, code = speeds.loc[SPAC], speeds.loc["MoE-SpAc as its code runs"]
    error = row["error"]
    verdict = (
        "agrees" if abs(error) <= CLOSE else "is slower than" if error < 0 else "is faster than"
    )
    words = (
        f"**MoE-SpAc**: predicted {row[TPS]:.2f}, published {published.SPAC} ({error:+.1%}): the "
        f"reconstruction {verdict} {'with ' if verdict == 'agrees' else ''}the paper. It finds "
        f"{row['hit_rate_per_token']:.0%} of activations resident and leaves "
        f"{row['share_cpu']:.0%} of the active experts to the CPU. Played as the released code "
        f"runs (thresholds 5 and 1, CPU lane before GPU lane) it makes {code[TPS]:.2f} "
        f"({code[TPS] / published.SPAC - 1:+.1%}) with {code['hit_rate_per_token']:.0%} hits."
    )
    if abs(code[TPS] / published.SPAC - 1) <= CLOSE < abs(error):
        words += (
            " So the published number fits the released code (no calibration, no integer program, "
            "lanes that do not overlap) better than the method as described, which would be faster "
            "under these costs."
        )
    return words


def rival_words(speeds: pd.DataFrame) -> str:
    """HybriMoE, and the rival without a draft that the paper leaves out."""
    hybrid = speeds.loc["HybriMoE"]
    plain = speeds.loc["LRU cache, no draft"]
    whole = speeds.loc["LRU cache, no draft, its VRAM as slots"]
    words = (
        f"**HybriMoE**: predicted {hybrid[TPS]:.2f}, published {published.HYBRIMOE} "
        f"({hybrid['error']:+.1%}). "
    )
    if hybrid["error"] > CLOSE:
        words += (
            "The published value is below that of llama.cpp with every expert on the CPU "
            f"({published.LLAMA}), which no cache of {hybrid['hit_rate_per_token']:.0%} hits can "
            "explain: it must hold costs of that implementation (its Python layer loop, its CPU "
            "kernels) that a simulator of the policy does not have. "
        )
    verdict = "faster" if whole[TPS] > speeds.loc[SPAC][TPS] else "slower"
    return (
        f"{words}**No speculation**: an LRU cache whose misses run on the CPU makes "
        f"{plain[TPS]:.2f} with the same slots and {whole[TPS]:.2f} with the draft's VRAM as "
        f"{whole['slots'] - plain['slots']:.0f} more: {verdict} than MoE-SpAc under the costs and "
        "the acceptance fitted here. Such a row is missing from the paper's table."
    )


def gain_words(checks: pd.DataFrame, deepseek: pd.DataFrame, draft_kv_ms: float) -> str:
    """Mean gain, DeepSeek, long texts."""
    mean = checks.loc["mean gain over standard baselines"]
    gain = checks.loc["gain on DeepSeek-V2-Lite over the strongest"]
    llama = checks.loc["gain on DeepSeek-V2-Lite over the better llama.cpp"]
    long = checks.loc["passes per second near 4,096 tokens over at the start"]
    strongest = deepseek.drop(index=[name for name in deepseek.index if name == SPAC or
                                     "LRU" in name])[TPS].idxmax()  # fmt: skip
    return (
        f"**Mean gain**: {mean['predicted']:.2f} against 4.04; it hangs on how slowly the slowest "
        "baselines are taken to run, which are on-demand copies here and may be unpinned copies "
        f"or whole layers there. **DeepSeek-V2-Lite**: {gain['predicted']:.2f} times its strongest "
        f"rival ({strongest}, {deepseek.loc[strongest, TPS]:.1f} tokens/s) against 1.53, and "
        f"{llama['predicted']:.2f} times the better llama.cpp; draft and "
        "acceptance of that pair are unknown, those of Qwen3 and a 7-billion draft stand in: with "
        f"them speculation alone makes {deepseek.loc[LLAMA_SD, TPS]:.1f} on the CPU, plain "
        f"decoding {deepseek.loc[LLAMA, TPS]:.1f}, since a window needs "
        f"{deepseek.loc[LLAMA_SD, 'active_experts_per_layer']:.0f} of 64 experts, and "
        f"without a draft an LRU cache makes "
        f"{deepseek.loc['LRU cache, no draft', TPS]:.1f}. **Long texts**: "
        f"{long['predicted']:.3f} of the passes per second at 4,096 tokens "
        f"{'(flat, as published)' if abs(long['predicted'] - 1) < 0.05 else '(not flat)'}. TPS "
        "itself would compare other draws of acceptance. The cost table "
        f"leaves out that the draft reads its own KV, {draft_kv_ms:.2f} ms a step there, "
        f"{GAMMA * draft_kv_ms:.0f} ms a pass."
    )


def ablation_words(checks: pd.DataFrame) -> str:
    """Which parts help, by the numbers."""
    words = []
    for part in ("inertia", "balancer", "asynchronous engine"):
        ratio = checks.loc[f"TPS without the {part} over with it (below 1: it helps)", "predicted"]
        verdict = "helps" if ratio < 0.99 else "hurts" if ratio > 1.01 else "makes no difference"
        words.append(f"the {part} {verdict} ({ratio:.3f} without it)")
    return (
        f"**Ablations**: {'; '.join(words)}. The paper says that each part helps and gives no "
        "numbers that could be read. Where it does not here, note that balancer and boundaries "
        "are reconstructions."
    )


def memory_words(memory: Memory) -> str:
    """The out-of-memory point."""
    return (
        f"**Memory**: beside draft and KV the capacity model has room for "
        f"{memory.largest_ratio:.1%} of the fp16 experts, the paper ran out near "
        f"{published.LARGEST_RATIO:.0%}; the difference is {memory.missing_at_paper_ratio:.1f} GB "
        "of buffers that the model does not know (llama.cpp's compute buffers for two models, a "
        "longer context). The draft takes "
        f"{memory.draft / memory.whole_fp16:.1%} of the model's {memory.whole_fp16:.0f} GB; "
        f"published: about 8 %. Without a draft {memory.largest_ratio_no_draft:.1%} fit."
    )


def offload_words(memory: Memory, speeds: pd.DataFrame) -> str:
    """The question before all others."""
    row = speeds.loc["all experts in VRAM at 4.5 bits, no draft"]
    fits = "fits" if memory.q4_fits else "does not fit"
    verdict = (
        f"Nothing should be offloaded then: simulated {row[TPS]:.0f} tokens/s with every expert "
        f"in VRAM ({row['hit_rate_per_token']:.0%} hits) and no draft, "
        f"{row[TPS] / speeds.loc[SPAC][TPS]:.1f} times MoE-SpAc and "
        f"{row[TPS] / speeds.loc[LLAMA][TPS]:.1f} times llama.cpp on the CPU; real engines publish "
        "198 to 271. Offloading answers a question about fp16 experts, larger models or smaller "
        "cards."
        if memory.q4_fits
        else "So offloading is needed even there."
    )
    return (
        f"At Q4_K_M the whole model {fits} the card: {memory.q4_model:.1f} GB with 4,096 tokens of "
        f"KV and an fp16 dense part, of {memory.card:.1f} GB. {verdict}"
    )
