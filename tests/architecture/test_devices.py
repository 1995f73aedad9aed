"""Nothing but the device itself knows what kind of accelerator there is."""

import ast
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[2] / "runtime"
# devices.py opens a device by its name; checkpoints.py takes torch's names of devices, for
# recording with a model that fits one whole.
MAY_NAME_IT = {"devices.py", "checkpoints.py"}
SOURCES = [
    path
    for path in sorted(RUNTIME.rglob("*.py"))
    if not path.name.startswith("cuda") and path.name not in MAY_NAME_IT
]
SYNCHRONISING = {"item", "tolist", "nonzero", "cpu", "record_stream", "pin_memory"}
# What may run while a layer is queued on a device whose memory the host cannot read.
LAYER_PATH = (
    "layer_executor.py", "layer_inputs.py", "lane_times.py", "triton_experts.py", "message_ring.py",
    "router_message.py", "transfers.py", "slots.py",
)  # fmt: skip


def named(tree: ast.AST) -> list[str]:
    """Code that says cuda; words in comments and docstrings do no harm."""
    names = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    names += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names += [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            names.append(node.value)
    return [name for name in names if "cuda" in name.lower()]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_nothing_else_says_cuda(path: Path) -> None:
    assert named(ast.parse(path.read_text(encoding="utf-8"))) == []


def test_the_search_finds_it() -> None:
    for code in ("x.cuda()", "torch.cuda.synchronize()", "f('cuda:0')", "import runtime.cuda"):
        assert named(ast.parse(code))


@pytest.mark.parametrize("name", LAYER_PATH)
def test_nothing_in_the_layer_path_waits_without_saying_so(name: str) -> None:
    """The host waits by `synchronize` and `wait` of an event alone. Arrays of the host may be
    lists.
    """
    tree = ast.parse((RUNTIME / name).read_text(encoding="utf-8"))
    called = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not called & SYNCHRONISING
