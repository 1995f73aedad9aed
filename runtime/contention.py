"""How long CPU work takes while the link takes part of the host's memory bandwidth."""

from collections.abc import Iterable

WHOLE = 1024


def contended_end(
    begin_ns: int, work_ns: int, contention: int, busy: Iterable[tuple[int, int]]
) -> int:
    """First ns at which 1024 * idle + contention * busy >= 1024 * work, counted from `begin_ns`.

    busy: (begin, end) in ns of times in which the link moves bytes, in order, apart.
    """
    left, now = WHOLE * work_ns, begin_ns
    for start, stop in busy:
        if stop <= now:
            continue
        idle = max(0, start - now)
        if left <= WHOLE * idle:
            break
        left -= WHOLE * idle
        now += idle
        if left <= contention * (stop - now):
            return now - (-left // contention)
        left -= contention * (stop - now)
        now = stop
    return now - (-left // WHOLE)
