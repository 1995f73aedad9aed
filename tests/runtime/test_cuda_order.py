"""In which order `runtime.cuda` calls torch.cuda, seen in a record of the calls without a GPU."""

from collections import Counter

import pytest
import torch
from conftest import LoadedPair
from offload_setup import ForcedPolicy, tiny_engine
from recorded_cuda import CudaRecord, RecordedCuda

from policies.errors import UserError
from runtime.cuda import Cuda
from runtime.device import COMPUTE, COPY, DeviceError
from runtime.device_checks import DEVICE_CHECKS, Check
from runtime.lossless import prove_lossless
from runtime.slots import SlotPool

PROMPT = [10, 20, 30, 40, 50]
TOKENS = 16


@pytest.fixture
def no_record_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("record_stream")

    monkeypatch.setattr(torch.Tensor, "record_stream", refuse)


def play(tiny: LoadedPair, record: CudaRecord, early: bool) -> tuple[list[int], int, int]:
    """Text, number of the copy stream, bytes of an expert."""
    policy = ForcedPolicy("STREAM" if early else "MIXED")
    device = RecordedCuda(record)
    with tiny_engine(
        tiny.path,
        policy,
        device,
        slots=6,
        staging=1,
        launch_early=early,  # type: ignore[arg-type]
    ) as engine:
        number = device.stream(COPY).number
        text = [token for block in engine.generate(PROMPT, TOKENS) for token in block]
    assert prove_lossless(tiny.target, [PROMPT], [text], engine.settings, TOKENS).identical
    return text, number, engine.layout.expert_bytes


@pytest.mark.usefixtures("no_record_stream")
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("reads_host_memory", [False, True])
def test_an_engine_runs_and_keeps_the_rules(
    early: bool,
    reads_host_memory: bool,
    tiny: LoadedPair,
    cuda_record: CudaRecord,
    request: pytest.FixtureRequest,
) -> None:
    if reads_host_memory:
        request.getfixturevalue("mapped")
    _, copies, expert_bytes = play(tiny, cuda_record, early)
    calls = cuda_record.calls
    on_copy_stream = {size for what, stream, size in calls if what == "copy" and stream == copies}
    assert on_copy_stream == {expert_bytes}  # experts and nothing else
    # Only the end of a run waits for everything, and nothing waits for a whole stream.
    assert [what for what, _, _ in calls].count("device waits") == 1
    assert calls[-1][0] == "device waits"
    assert "wait stream" not in {what for what, _, _ in calls}
    recorded = set()
    for what, _, event in calls:
        if what == "record":
            recorded.add(id(event))
        elif what in ("wait", "host waits"):
            assert id(event) in recorded
    counts = Counter(name for name, _, _ in cuda_record.runtime.calls)
    assert counts["register"] == counts["unregister"] > 0


def test_small_messages_leave_the_copy_engine_alone_where_kernels_read_host_memory(
    tiny: LoadedPair,
    cuda_record: CudaRecord,
    request: pytest.FixtureRequest,
) -> None:
    _, _, _ = play(tiny, cuda_record, early=False)
    with_copies = sum(what == "copy" and stream == 0 for what, stream, _ in cuda_record.calls)
    assert with_copies > 0
    cuda_record.calls.clear()
    request.getfixturevalue("mapped")
    play(tiny, cuda_record, early=False)
    assert not any(what == "copy" and stream == 0 for what, stream, _ in cuda_record.calls)


def test_a_slot_is_overwritten_only_after_a_wait_for_its_last_reader(
    tiny: LoadedPair,
    cuda_record: CudaRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readers: list[object] = []
    plain = SlotPool.last_reader

    def remember(pool: SlotPool, slot: int) -> object:
        event = plain(pool, slot)
        if event is not None:
            readers.append(event.end)
        return event

    monkeypatch.setattr(SlotPool, "last_reader", remember)
    _, copies, _ = play(tiny, cuda_record, early=False)
    waits = [
        event for what, stream, event in cuda_record.calls if (what, stream) == ("wait", copies)
    ]
    assert len(readers) > 20
    assert waits == readers
    assert {event.stream for event in waits} == {0}


@pytest.mark.parametrize("check", DEVICE_CHECKS, ids=lambda check: check.__name__)
def test_the_checks_of_a_device_pass(check: Check, cuda_record: CudaRecord) -> None:
    check(RecordedCuda(cuda_record))  # type: ignore[arg-type]


def test_host_memory_that_is_not_page_locked_is_not_copied(
    cuda_record: CudaRecord,
) -> None:
    device = RecordedCuda(cuda_record, all_on_host=True)
    with pytest.raises(DeviceError, match="not page-locked"):
        device.copy(torch.zeros(8), device.alloc_host(32), device.stream(COPY))
    device.close()


def test_an_error_in_queued_work_is_a_device_error(cuda_record: CudaRecord) -> None:
    device = RecordedCuda(cuda_record)
    with pytest.raises(DeviceError, match="RuntimeError: out of memory"):
        device.run(
            device.stream(COPY),
            lambda: (_ for _ in ()).throw(RuntimeError("out of memory")).send(None),
        )
    device.close()


def test_a_gpu_that_is_not_there_is_refused_with_those_that_are(
    cuda_record: CudaRecord,
) -> None:
    with pytest.raises(UserError, match="cuda:3 is not there; found 0: Recorded"):
        Cuda(3)


def test_only_timed_work_has_an_event_at_its_begin(cuda_record: CudaRecord) -> None:
    """Each event is a call of the driver, several in every layer."""
    device, value = RecordedCuda(cuda_record), torch.zeros(1)
    compute, counts = device.stream(COMPUTE), []

    def work() -> None:
        value.add_(1)
        counts.append([what for what, _, _ in cuda_record.calls].count("record"))

    before = [what for what, _, _ in cuda_record.calls].count("record")
    timed = device.run(compute, work)
    plain = device.run(compute, work, timed=False)
    assert value.item() == 2
    assert [count - before for count in counts] == [1, 2]  # begin; then its end and no begin
    assert device.begin_ns(timed) <= device.end_ns(timed)
    assert device.begin_ns(plain) == device.end_ns(plain)
    device.close()
