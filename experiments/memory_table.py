"""The memory plan of a run: one line before loading, or a table and a verdict instead of it."""

from rich.console import Console

from experiments.fitted_table import FittedTable
from experiments.run_choice import RunChoice
from experiments.text_table import TextRow, TextTable
from runtime.expert_layout import INT8
from runtime.memory_plan import MemoryPlan, check_memory
from runtime.run_memory import plan_run
from traces.size_text import size_text

ONLY = "only"


def plan_of(choice: RunChoice) -> MemoryPlan:
    """From the headers of the checkpoints."""
    return plan_run(choice.facts, choice.draft, choice.settings)


def plan_line(choice: RunChoice, plan: MemoryPlan) -> str:
    """Host and device, the latter by part."""
    parts = ", ".join(f"{name} {size_text(size)}" for name, size in named_parts(choice, plan))
    return (
        f"memory: {size_text(plan.host)} for the experts on the {_host(choice)}; "
        f"{size_text(plan.device)} on the device: {parts}"
    )


def show_plan_only(choice: RunChoice, plan: MemoryPlan, console: Console) -> None:
    """The table; UserError if the plan does not fit this machine."""
    device = choice.device()
    try:
        available, name = device.memory(), device.name
    finally:
        device.close()
    settings, experts = choice.settings, len(choice.facts.moe_layers) * choice.facts.experts
    stored = settings.experts if settings.experts == INT8 else settings.dtype
    free = size_text(available.host_available)
    room = size_text(available.device_available) + (", the host's" if available.shared else "")
    rows = [
        (_host(choice), f"{experts} experts, {stored}", size_text(plan.host), free),
        *((name, part, size_text(size), "") for part, size in named_parts(choice, plan)),
        (name, "all of it", size_text(plan.device), room),
    ]
    table = TextTable("", ["memory", "of", "planned", "free now"], [TextRow(row) for row in rows])
    console.print(FittedTable(table, texts=["of"]))
    check_memory(plan, available)
    console.print("it fits; nothing was loaded", highlight=False)


def named_parts(choice: RunChoice, plan: MemoryPlan) -> list[tuple[str, int]]:
    """The parts of device memory in words, without empty ones."""
    settings, sizes = choice.settings, plan.parts()
    context = settings.planned_context(choice.facts.max_positions)
    words = {
        "dense": "target without experts",
        "draft": "draft",
        "kv": f"keys and values of {context} tokens",
        "staging": f"{settings.staging} staging buffers",
        "slots": f"{settings.slots} slots",
    }
    return [(words[name], size) for name, size in sizes.items() if size]


def _host(choice: RunChoice) -> str:
    """A GPU copies at full speed from page-locked memory alone, so all of it is."""
    return "host" if choice.on_standin else "host, page-locked"
