"""What breaks while a run is under way, in one line that says what to do."""

import torch

from runtime.device import DeviceError

NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
REMEDY = "lower slots, cache_ratio, staging or max_new_tokens, or close other programs"


def is_out_of_memory(error: BaseException) -> bool:
    """True for Python's, torch's and the allocators' way of saying it, also from another thread."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    words = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "memoryerror" in words or any(phrase in words for phrase in NO_MEMORY)
    )


def as_device_error(error: BaseException) -> DeviceError | None:
    """The error to report in place of `error`; None if that is a bug or says enough itself."""
    if is_out_of_memory(error):
        return DeviceError(f"out of memory in mid-run ({first_line(error)}); {REMEDY}")
    return None


def first_line(error: BaseException) -> str:
    """Name and first line: torch's messages go on with the stack of its C++ code."""
    lines = str(error).strip().splitlines()
    said = lines[0][:200] if lines else "no message"
    return said if isinstance(error, DeviceError) else f"{type(error).__name__}: {said}"
