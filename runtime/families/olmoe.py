"""OLMoE (1B-7B)."""

from runtime.family import Family

OLMOE = Family("olmoe", "OlmoeForCausalLM", width="intermediate_size")
