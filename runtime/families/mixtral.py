"""Mixtral (8x7B, 8x22B): its checkpoints call gate, up and down w1, w3 and w2."""

from runtime.expert_names import W1_W3_W2, ExpertNames
from runtime.family import Family

MIXTRAL = Family(
    "mixtral",
    "MixtralForCausalLM",
    width="intermediate_size",
    names=ExpertNames(block="(?:block_sparse_moe|mlp)", split=W1_W3_W2),
    renamed=((".block_sparse_moe.", ".mlp."),),
)
