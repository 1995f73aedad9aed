"""What a run needs of host and device memory, checked before any of it is taken."""

from collections.abc import Callable
from dataclasses import dataclass

from policies.errors import UserError
from runtime.device import Memory
from runtime.expert_layout import ExpertLayout
from traces.size_text import size_text

GIB = 2**30
WASTE_ALLOWED = 1.01  # of the bytes asked for


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes. On the host: `host`, all experts in one block. On the device: the target's other
    weights (`dense`), the draft's, keys and values of both, staging buffers and slots.

    slot_bytes: of one slot; kv_token_bytes: of one token of context.
    """

    host: int
    dense: int
    draft: int
    kv: int
    staging: int
    slots: int
    slot_bytes: int
    kv_token_bytes: int = 0

    @property
    def device(self) -> int:
        """Bytes of device memory."""
        return self.dense + self.draft + self.kv + self.staging + self.slots

    def parts(self) -> dict[str, int]:
        """Device memory by part, in the order in which it is taken."""
        names = ("dense", "draft", "kv", "staging", "slots")
        return {name: getattr(self, name) for name in names}


def plan_memory(
    layout: ExpertLayout,
    slots: int,
    staging: int,
    dense: int = 0,
    draft: int = 0,
    kv_token_bytes: int = 0,
    context: int = 0,
) -> MemoryPlan:
    """The bytes of one host arena and one pool of slots, beside the weights of the models and keys
    and values of `context` tokens.
    """
    return MemoryPlan(
        host=layout.total * layout.row_bytes,
        dense=dense,
        draft=draft,
        kv=kv_token_bytes * context,
        staging=staging * layout.row_bytes,
        slots=slots * layout.row_bytes,
        slot_bytes=layout.row_bytes,
        kv_token_bytes=kv_token_bytes,
    )


def check_memory(plan: MemoryPlan, available: Memory) -> None:
    """UserError with the numbers and what would fit, if the plan does not."""
    if plan.host > available.host_available:
        raise UserError(
            f"the experts need {size_text(plan.host)} of host memory, "
            f"{size_text(available.host_available)} are available; use a smaller model, "
            "dtype=bfloat16, experts=int8, or close other programs"
        )
    room = available.device_available - (plan.host if available.shared else 0)
    if plan.device > room:
        parts = " + ".join(
            f"{name} {size_text(size)}" for name, size in plan.parts().items() if size
        )
        beside = " beside the experts" if available.shared else ""
        raise UserError(
            f"{parts} = {size_text(plan.device)} of device memory, "
            f"{size_text(room)} are available{beside}; {_remedy(plan, plan.device - room)}"
        )


def check_reservation(blocks: int, size: int, reserved_bytes: Callable[[int], int]) -> int:
    """What the host allocator takes for `blocks` blocks of `size` bytes each; UserError if it
    rounds that up by more than 1 %.
    """
    asked, taken = blocks * size, blocks * reserved_bytes(size)
    if taken > asked * WASTE_ALLOWED and taken - asked > GIB // 1024:
        raise UserError(
            f"{blocks} blocks of {size} bytes would reserve {taken / GIB:.2f} GiB for "
            f"{asked / GIB:.2f} GiB; allocate one block for all experts, with exact page-locking"
        )
    return taken


def _remedy(plan: MemoryPlan, excess: int) -> str:
    """The largest single change that makes the plan fit, for each change that can."""
    slots = (plan.slots - excess) // plan.slot_bytes
    remedies = [f"lower slots to {slots}"] if slots >= 1 else []
    if plan.kv_token_bytes:
        context = (plan.kv - excess) // plan.kv_token_bytes
        remedies += [f"lower context to {context} tokens"] if context >= 1 else []
    return " or ".join(remedies) or "use a smaller target or draft, dtype=bfloat16, or experts=int8"
