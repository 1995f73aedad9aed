"""`python -m experiments.gpu_check`: all sections, one line each, one JSON file."""

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.gpu_check import children
from experiments.gpu_check.sections import SECTIONS, Section
from experiments.script import Options, new_file, run_script, seconds
from policies.errors import UserError
from traces.report_json import write_json

STANDIN_NOTE = "measured on the CPU stand-in: order and bytes are real, times are not a GPU's"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if a section failed, 2 if the check could not begin."""
    given = _parsed(arguments)
    if given.section is not None:
        return _one(given)
    wanted = [section for section in SECTIONS if not given.only or section.name in given.only]
    begin, results = time.monotonic(), {}
    for name, ended in _run(wanted, given):
        results[name] = ended
        seconds = f"{ended.get('seconds', 0):7.1f} s"
        print(f"{name:12}{ended['status']:14}{seconds}  {ended.get('error', '')}", flush=True)
        if name == SECTIONS[0].name and ended.get("refused"):
            print(f"error: {ended['error']}", file=sys.stderr)
            return 2
        _write(given, results, begin)
    print(given.out)
    return int(any(ended["status"] != children.PASSED for ended in results.values()))


def _run(wanted: Sequence[Section], given: argparse.Namespace) -> Any:
    """(name, how it ended), one after the other."""
    deadline = time.monotonic() + given.seconds
    words = ["--device", given.device, *(["--small"] if given.small else [])]
    with tempfile.TemporaryDirectory() as folder:
        running: list[children.Child] = []

        def begin(section: Section) -> children.Child | None:
            left = deadline - time.monotonic()
            if left < 1:
                return None
            child = children.start(section.name, words, min(section.seconds, left), Path(folder))
            running.append(child)
            return child

        try:
            aside: list[tuple[str, children.Child | None]] = []
            for section in wanted:
                if section.after:
                    yield from ((name, _finished(child)) for name, child in aside)
                    aside = []
                child = begin(section)
                if section.beside:
                    aside.append((section.name, child))
                else:
                    yield section.name, _finished(child)
            yield from ((name, _finished(child)) for name, child in aside)
        finally:
            for child in running:
                child.stop()


def _finished(child: children.Child | None) -> dict[str, Any]:
    if child is None:
        return {"status": children.NO_TIME, "error": "the sections before it took all the time"}
    return child.finish()


def _one(given: argparse.Namespace) -> int:
    """A section, in the child."""
    import torch

    from experiments.gpu_check.failure import SectionFailed
    from experiments.gpu_check.setup import Setup
    from runtime.host_cores import reserve_cores

    if given.small:
        torch.set_num_threads(1)
    else:
        reserve_cores()
    (section,) = (one for one in SECTIONS if one.name == given.section)
    told: dict[str, Any]
    try:
        told = {"result": section.load()(Setup(given.device, given.small))}
    except SectionFailed as error:
        told = {"error": str(error), "result": error.found}
    except UserError as error:
        told = {"error": str(error), "refused": True}
    except Exception as error:
        traceback.print_exc()
        told = {"error": f"{type(error).__name__}: {error}"}
    write_json(given.out, told)
    return int("error" in told)


def _write(given: argparse.Namespace, results: dict[str, Any], begin: float) -> None:
    """After each section, so that nothing is lost if the rest hangs."""
    machine = results.get("machine", {}).get("result", {})
    data = {
        "device": machine.get("accelerator", machine.get("device", given.device)),
        "small": given.small,
        "note": STANDIN_NOTE if given.device == "standin" else "measured on this GPU",
        "seconds": round(time.monotonic() - begin, 1),
        "failed": [name for name, one in results.items() if one["status"] != children.PASSED],
        "sections": results,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(given.out, data, indent=1)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Options(prog="python -m experiments.gpu_check", description=__doc__)
    names = [section.name for section in SECTIONS]
    parser.add_argument("--device", default="cuda", help="cuda, cuda:<number> or standin")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to test the check itself")
    parser.add_argument("--only", nargs="+", choices=names, help="these sections alone")
    parser.add_argument("--seconds", type=seconds, default=460, help="for all sections together")
    parser.add_argument("--section", choices=names, help=argparse.SUPPRESS)
    default = Path("experiments/results/gpu/check.json")
    parser.add_argument("--out", type=new_file, default=default, help="the JSON file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(run_script(main))
