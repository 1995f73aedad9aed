"""What each figure of a run is called on the terminal, and what it means in a few words."""

# Figure -> (name, meaning), in groups as they are printed. The exact definitions: traces/metrics.
GROUPS: tuple[dict[str, tuple[str, str]], ...] = (
    {
        "tokens_per_second": ("tokens per second", "committed tokens by time of decoding"),
        "seconds_per_token": ("time per token", "its inverse"),
        "time_to_first_token_seconds": ("time to first token", "prompt and first pass, mean"),
        "end_to_end_tokens_per_second": ("end to end", "tokens per second, prompts included"),
        "decode_seconds": ("decoding", "time of all passes counted"),
        "requests": ("requests", "counted; the warm-up is not"),
        "passes": ("passes", "forwards of the target"),
        "committed_tokens": ("committed tokens", "that stay in the text"),
    },
    {
        "mean_gamma": ("drafted tokens", "proposed per pass, mean (gamma)"),
        "tokens_per_pass": ("tokens per pass", "committed, the target's own included"),
        "acceptance_reached": ("acceptance, reached", "of drafted tokens that were judged"),
        "acceptance_proposed": ("acceptance, proposed", "of all drafted tokens"),
        "draft_seconds": ("drafting", "time of the draft"),
    },
    {
        "active_experts_per_layer": ("experts per layer", "needed at once by a pass (active)"),
        "hit_rate_per_expert": ("hit rate", "of active experts: in VRAM when asked for"),
        "hit_rate_per_token": ("hit rate by tokens", "the same, each counted by its tokens"),
        "share_gpu": ("on GPU, resident", "share of active experts"),
        "share_fetch": ("on GPU, fetched", "copied when needed, kept"),
        "share_stream": ("on GPU, streamed", "copied when needed, used once"),
        "share_cpu": ("on CPU", "computed where they lie, no copy"),
    },
    {
        "bytes_copied": ("copied to VRAM", "all experts that crossed the link"),
        "bytes_demand": ("  by fetches", "copies that a layer waited for"),
        "bytes_stream": ("  by streams", "the same through a staging buffer"),
        "bytes_prefetch": ("  by prefetches", "copies ahead of need"),
        "prefetches": ("prefetches", "started"),
        "prefetches_useful": ("  useful", "used in time"),
        "prefetches_late": ("  late", "needed while still on the way"),
        "prefetches_wasted": ("  wasted", "dropped before any use"),
        "link_busy_share": ("link busy", "share of the time with a copy under way"),
    },
    {
        "gpu_stall_seconds": ("GPU stalls", "waits for a copy or for the CPU's experts"),
        "cpu_stall_seconds": ("CPU stalls", "waits for the GPU's experts"),
        "gpu_idle_seconds": ("GPU idle", "stalls and waits for decisions"),
        "cpu_idle_seconds": ("CPU idle", "stalls, decisions, attention and router"),
        "decision_seconds": ("decisions", "time that the policy took"),
        "mean_layer_decision_seconds": ("  per layer", "mean"),
        "mean_draft_decision_seconds": ("  per drafted token", "mean"),
    },
)
