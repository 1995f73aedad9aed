"""The sections in the order in which they run, with the seconds that each may take."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Section:
    """`function`: module and name, loaded only where it runs; `beside`: runs while the others do,
    and those marked `after` wait for it.
    """

    name: str
    module: str
    function: str
    seconds: float
    beside: bool = False
    after: bool = False

    def load(self) -> Callable[[Any], dict[str, Any]]:
        """The function, which takes a Setup."""
        module = import_module(f"experiments.gpu_check.{self.module}")
        function: Callable[[Any], dict[str, Any]] = getattr(module, self.function)
        return function


SECTIONS = (
    Section("machine", "engine_sections", "machine", 60),
    Section("compile", "engine_sections", "compile_kernels", 180, beside=True),
    Section("device", "device_sections", "promises", 60),
    Section("link", "device_sections", "link", 60),
    Section("slots", "device_sections", "slots_under_reuse", 90),
    Section("sanitizer", "device_sections", "sanitizer", 60),
    Section("texts", "engine_sections", "texts", 120, after=True),
    Section("layers", "engine_sections", "layers", 120, after=True),
    Section("overhead", "overhead_section", "overhead", 60, after=True),
    Section("validation", "engine_sections", "validation", 240, after=True),
)
