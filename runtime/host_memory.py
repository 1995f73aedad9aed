"""How much memory of the host is left."""

import os
from pathlib import Path


def available_host_bytes() -> int:
    """Memory that can still be used without swapping, as the system says."""
    information = Path("/proc/meminfo")
    if information.is_file():
        for line in information.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
