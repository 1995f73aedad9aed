"""Which cores compute, and which are left to the driver, the link and the system."""

import os

import torch

RESERVED = 3  # the driver, which waits for events in a loop; the copies' interrupts; the system


def reserve_cores() -> int:
    """Let torch compute on all cores of this process but the reserved ones; returns how many.

    A team of threads that has every core waits at its barrier for whatever else runs there.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = max(1, (cores or 1) - RESERVED)
    torch.set_num_threads(threads)
    return threads
