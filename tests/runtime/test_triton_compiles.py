"""The Triton kernels compile for the GPUs that they are meant for, without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

SHARED_BYTES = {89: 99 * 1024, 90: 227 * 1024}  # of one block: RTX 4090, H200
PROGRAM = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from runtime import triton_experts as kernels

arch, kind, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
blocks = {"ROWS": kernels.ROWS, "COLUMNS": kernels.COLUMNS, "INNER": kernels.INNER_BYTES // size,
          "PLACES": 8, "WIDEN": False}
pointers = {"hidden": kind, "middle": kind, "pool": kind, "contributions": kind,
            "experts": "i64", "slot_of": "i32"}
for kernel in (kernels.gate_up_silu, kernels.down):
    types = {name: "constexpr" if name in blocks else
             "*" + pointers[name] if name in pointers else "i32" for name in kernel.arg_names}
    source = ASTSource(fn=kernel, signature=types, constexprs=blocks)
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32))
    print(compiled.metadata.shared, len(compiled.asm["cubin"]))
"""


@pytest.mark.parametrize(("kind", "size"), [("bf16", 2), ("fp32", 4)])
@pytest.mark.parametrize("arch", SHARED_BYTES)
def test_both_kernels_become_machine_code_that_fits(
    arch: int, kind: str, size: int, tmp_path: Path
) -> None:
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(arch), kind, str(size)],
        cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(lines) == 2
    assert all(shared <= SHARED_BYTES[arch] and code > 1000 for shared, code in lines)
