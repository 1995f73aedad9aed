"""Page-locking, against a record of the runtime's calls: sizes, pieces, status, order."""

import pytest
import torch
from recorded_cuda import RecordedRuntime

from policies.errors import UserError
from runtime import cuda_pinned
from runtime.cuda_pinned import PAGE, PinnedMemory
from runtime.device import DeviceError

SIZE = 10 * PAGE


def test_as_many_bytes_are_locked_as_were_asked_for_in_whole_pages() -> None:
    runtime = RecordedRuntime()
    memory = PinnedMemory(runtime)
    block = memory.alloc(9 * PAGE + 1)
    assert block.memory.numel() == 9 * PAGE + 1
    assert not block.memory.any()
    assert runtime.calls == [("register", block.begin, SIZE)]
    assert block.begin % PAGE == 0
    memory.close()
    memory.close()
    assert runtime.calls[1:] == [("unregister", block.begin, 0)]


@pytest.mark.parametrize(
    ("unit", "pieces"), [(1, [4, 4, 2]), (3 * PAGE, [3, 3, 3, 1]), (64, [4, 4, 2])]
)
def test_pieces_end_at_pages_and_between_units(
    unit: int, pieces: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_pinned, "CHUNK", 4 * PAGE)
    runtime = RecordedRuntime()
    block = PinnedMemory(runtime).alloc(SIZE, unit)
    assert [size // PAGE for _, _, size in runtime.calls] == pieces
    begins = [address - block.begin for _, address, _ in runtime.calls]
    assert begins == [sum(pieces[:n]) * PAGE for n in range(len(pieces))]


def test_a_copy_is_cut_where_pieces_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_pinned, "CHUNK", 4 * PAGE)
    memory = PinnedMemory(RecordedRuntime())
    blocks = [memory.alloc(SIZE) for _ in range(3)]
    for block in blocks:
        whole = block.memory
        for part, sizes in (
            (whole[:PAGE], [PAGE]),
            (whole[4 * PAGE : 8 * PAGE].view(torch.int64), [4 * PAGE]),
            (whole[-1:], [1]),
            (whole[4 * PAGE - 1 : 4 * PAGE + 2], [1, 2]),
            (whole, [4 * PAGE, 4 * PAGE, 2 * PAGE]),
        ):
            assert memory.block_of(part) is block
            assert block.cuts(part) == sizes
    assert memory.block_of(torch.zeros(8)) is None


def test_a_refusal_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_pinned, "CHUNK", 4 * PAGE)
    runtime = RecordedRuntime(bad=1)
    memory = PinnedMemory(runtime)
    with pytest.raises(UserError, match=r"after 0\.00 of 0\.00 GiB \(CUDA error 2: out of memory"):
        memory.alloc(SIZE)
    assert len(runtime.calls) == 2
    memory.close()  # what was locked is unlocked
    assert [name for name, _, _ in runtime.calls[2:]] == ["unregister"]


def test_a_failed_unlock_is_reported_after_all_were_tried() -> None:
    runtime = RecordedRuntime(bad=2)
    memory = PinnedMemory(runtime)
    memory.alloc(PAGE)
    memory.alloc(PAGE)
    with pytest.raises(DeviceError, match="CUDA error 2"):
        memory.close()
    assert [name for name, _, _ in runtime.calls] == ["register"] * 2 + ["unregister"] * 2


def test_memory_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="cannot be had"):
        PinnedMemory(RecordedRuntime()).alloc(2**60)
