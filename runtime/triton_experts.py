"""Experts in slots with Triton: one launch for all of a layer, through the slot table in device
memory.

Two kernels: gate, up and SiLU of every chosen pair of row and expert, then the down projection.
A program computes some columns of one expert for all rows at once and stores what the router chose;
with the few rows of a verify window reading the weights is all the cost. Experts without a slot or
without rows end at once.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from runtime.slots import SlotPool

ROWS = 16  # the least that tl.dot takes
COLUMNS = 32
INNER_BYTES = 256  # of a row of weights at a time
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


@triton.jit
def _chosen_rows(experts, number, rows, top_k, ROWS: tl.constexpr, PLACES: tl.constexpr):
    """Rows of this block, whether each chose expert `number`, and as which of its choices."""
    row = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    place = tl.arange(0, PLACES)
    inside = (row[:, None] < rows) & (place[None, :] < top_k)
    ids = tl.load(experts + row[:, None] * top_k + place[None, :], mask=inside, other=-1)
    hit = ids == number
    chosen = tl.sum(hit.to(tl.int32), axis=1) > 0
    return row, chosen, tl.sum(tl.where(hit, place[None, :], 0), axis=1)


# Otherwise a pass with another number of rows could wait for a compiler.
@triton.jit(do_not_specialize=["rows"])
def gate_up_silu(
    hidden, experts, slot_of, pool, middle, rows, top_k, hidden_size, width, row_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr, PLACES: tl.constexpr,
    WIDEN: tl.constexpr,
):  # fmt: skip
    """middle[row, place] = silu(hidden gate^T) * (hidden up^T), rounded as torch rounds it."""
    number = tl.program_id(0)
    slot = tl.load(slot_of + number)
    if slot < 0:
        return
    row, chosen, place = _chosen_rows(experts, number, rows, top_k, ROWS, PLACES)
    if tl.sum(chosen.to(tl.int32), axis=0) == 0:
        return
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    weights = pool + slot.to(tl.int64) * row_stride
    gate = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    up = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, hidden_size, INNER):
        inner = begin + tl.arange(0, INNER)
        x = tl.load(
            hidden + row[:, None] * hidden_size + inner[None, :],
            mask=chosen[:, None] & (inner[None, :] < hidden_size), other=0.0,
        )  # fmt: skip
        inside = (column[None, :] < width) & (inner[:, None] < hidden_size)
        at = column[None, :] * hidden_size + inner[:, None]
        gate_part = tl.load(weights + at, mask=inside, other=0.0)
        up_part = tl.load(weights + width * hidden_size + at, mask=inside, other=0.0)
        if WIDEN:
            x, gate_part = x.to(tl.float32), gate_part.to(tl.float32)
            up_part = up_part.to(tl.float32)
        gate = tl.dot(x, gate_part, gate, input_precision="ieee")
        up = tl.dot(x, up_part, up, input_precision="ieee")
    kind = middle.dtype.element_ty
    gate = gate.to(kind).to(tl.float32)
    active = (gate / (1.0 + tl.exp(-gate))).to(kind).to(tl.float32)
    value = active * up.to(kind).to(tl.float32)
    tl.store(
        middle + (row[:, None] * top_k + place[:, None]) * width + column[None, :],
        value.to(kind), mask=chosen[:, None] & (column[None, :] < width),
    )  # fmt: skip


@triton.jit(do_not_specialize=["rows"])
def down(
    middle, experts, slot_of, pool, contributions, rows, top_k, hidden_size, width, row_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr, PLACES: tl.constexpr,
    WIDEN: tl.constexpr,
):  # fmt: skip
    """contributions[row, place] = middle[row, place] down^T."""
    number = tl.program_id(0)
    slot = tl.load(slot_of + number)
    if slot < 0:
        return
    row, chosen, place = _chosen_rows(experts, number, rows, top_k, ROWS, PLACES)
    if tl.sum(chosen.to(tl.int32), axis=0) == 0:
        return
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    weights = pool + slot.to(tl.int64) * row_stride + 2 * width * hidden_size
    pair = row * top_k + place
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, width, INNER):
        inner = begin + tl.arange(0, INNER)
        x = tl.load(
            middle + pair[:, None] * width + inner[None, :],
            mask=chosen[:, None] & (inner[None, :] < width), other=0.0,
        )  # fmt: skip
        inside = (column[None, :] < hidden_size) & (inner[:, None] < width)
        part = tl.load(weights + column[None, :] * width + inner[:, None], mask=inside, other=0.0)
        if WIDEN:
            x, part = x.to(tl.float32), part.to(tl.float32)
        sums = tl.dot(x, part, sums, input_precision="ieee")
    tl.store(
        contributions + pair[:, None] * hidden_size + column[None, :],
        sums.to(contributions.dtype.element_ty),
        mask=chosen[:, None] & (column[None, :] < hidden_size),
    )


class TritonExperts:
    """For experts with SiLU and neither biases nor scales, in one of DTYPES."""

    def __init__(self, pool: SlotPool) -> None:
        layout = pool.layout
        self._hidden, self._width, self._dtype = layout.hidden, layout.width, layout.dtype
        self._pool = pool
        # Triton's interpreter multiplies bfloat16 as if it were integers.
        self._widen = not isinstance(down, triton.JITFunction)
        self._inner = INNER_BYTES // layout.dtype.itemsize

    def compute(
        self,
        hidden: torch.Tensor,
        experts: torch.Tensor,
        slot_of: torch.Tensor,
        contributions: torch.Tensor,
        numbers: Sequence[int] | None = None,
    ) -> None:
        """See `runtime.slot_kernels.SlotKernel`."""
        rows, top_k = experts.shape
        hidden, experts = hidden.contiguous(), experts.contiguous()
        slots = self._pool.rows.view(self._dtype)
        middle = hidden.new_empty(rows, top_k, self._width)
        sizes = (rows, top_k, self._hidden, self._width, slots.stride(0))
        blocks = {
            "ROWS": ROWS, "COLUMNS": COLUMNS, "INNER": self._inner,
            "PLACES": triton.next_power_of_2(top_k), "WIDEN": self._widen,
        }  # fmt: skip
        high = triton.cdiv(rows, ROWS)
        gate_grid = (len(slot_of), triton.cdiv(self._width, COLUMNS), high)
        down_grid = (len(slot_of), triton.cdiv(self._hidden, COLUMNS), high)
        gate_up_silu[gate_grid](hidden, experts, slot_of, slots, middle, *sizes, **blocks)
        down[down_grid](middle, experts, slot_of, slots, contributions, *sizes, **blocks)
