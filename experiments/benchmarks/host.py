"""The machine that a benchmark ran on, for its files: CPU, cores, versions, and how busy it was."""

import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

from experiments.provenance import installed_version
from policies.sources import source_hash

PACKAGES = ("numpy", "numba", "simpy", "pulp", "libcachesim")


def host_facts() -> dict[str, Any]:
    """Plain data for JSON."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(pages * page / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "keeps_bytecode": not sys.dont_write_bytecode,  # without it each start compiles all modules
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "versions": versions(),
        "source_hash": source_hash(),
    }


def versions() -> dict[str, str]:
    """Of Python and of the packages that are timed."""
    return {"python": platform.python_version()} | {
        name: installed_version(name) for name in PACKAGES
    }


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """As the system reports it; the architecture where it does not say."""
    if cpuinfo.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def host_slug() -> str:
    """A name for files: CPU and number of cores."""
    words = re.sub(r"[^a-z0-9]+", "-", cpu_name().lower()).strip("-")
    return f"{words}-{os.cpu_count() or 1}-cores"
