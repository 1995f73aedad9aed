"""What a run needs of host and device memory, checked before any of it is taken."""

from collections.abc import Callable
from dataclasses import dataclass

from policies.errors import UserError
from runtime.device import Memory
from runtime.expert_layout import ExpertLayout

GIB = 2**30
WASTE_ALLOWED = 1.01  # of the bytes asked for


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes: all experts on the host in one block; on the device slots, staging buffers and the
    target's other weights.
    """

    host: int
    slots: int
    others: int

    @property
    def device(self) -> int:
        """Bytes of device memory."""
        return self.slots + self.others


def plan_memory(layout: ExpertLayout, slots: int, staging: int, others: int = 0) -> MemoryPlan:
    """The bytes of one host arena and one pool of slots, beside `others` on the device."""
    pool = (slots + staging) * layout.row_bytes
    return MemoryPlan(layout.total * layout.row_bytes, pool, others)


def check_memory(plan: MemoryPlan, available: Memory) -> None:
    """UserError with both numbers if the plan does not fit."""
    if plan.host > available.host_available:
        raise UserError(
            f"the experts need {plan.host / GIB:.2f} GiB of host memory, "
            f"{available.host_available / GIB:.2f} GiB are available; use a smaller model, "
            "dtype=bfloat16, or close other programs"
        )
    if plan.device > available.device_available:
        raise UserError(
            f"slots and other weights need {plan.slots / GIB:.2f} + {plan.others / GIB:.2f} GiB of "
            f"device memory, {available.device_available / GIB:.2f} GiB are available; lower "
            "cache_ratio, slots or staging"
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
