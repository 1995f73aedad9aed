"""A first result and the end: what a process pays for its start. The section `start` runs it as a
program, with names of policies."""

import sys
from collections.abc import Sequence

from rich.console import Console

from experiments.commands import COMMANDS
from experiments.compare import jobs_from
from experiments.comparison import play
from experiments.compile_notice import compile_notice
from experiments.configuration import compose_config


def main(policies: Sequence[str]) -> int:
    """The first counted request of a bundled trace under each of `policies`; runs played."""
    words = ["trace=[code]", f"policy=[{','.join(policies)}]", "no_speculation=null", "requests=2"]
    jobs = jobs_from(compose_config(COMMANDS["compare"], words), Console(quiet=True))
    with compile_notice():
        return len([play(job) for job in jobs])


if __name__ == "__main__":
    main(sys.argv[1:])
