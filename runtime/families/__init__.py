"""The families of MoE models that can be a target, by the `model_type` of their config.json."""

from runtime.families.deepseek_v2 import DEEPSEEK_V2
from runtime.families.gpt_oss import GPT_OSS
from runtime.families.mixtral import MIXTRAL
from runtime.families.olmoe import OLMOE
from runtime.families.qwen3_moe import QWEN3_MOE
from runtime.family import Family

FAMILIES: dict[str, Family] = {
    family.model_type: family for family in (QWEN3_MOE, MIXTRAL, OLMOE, DEEPSEEK_V2, GPT_OSS)
}
