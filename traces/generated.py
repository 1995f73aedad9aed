"""Write generated routing as an ordinary trace of kind text, marked synthetic in its manifest."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traces.manifest import SCHEMA_VERSION, Manifest, ModelInfo, SamplingInfo
from traces.reader import Trace, open_trace
from traces.rows import DECODE, UNKNOWN_TOKEN, build_rows
from traces.writer import TraceWriter

SYNTHETIC = "synthetic"  # the note that every generated or shuffled trace carries


def write_generated(
    destination: str | Path,
    experts: NDArray[np.uint16],
    request: NDArray[np.int64],
    model: ModelInfo,
    generator: str,
    parameters: Mapping[str, object],
    seed: int,
    weights: NDArray[np.float16] | None = None,
) -> Trace:
    """experts uint16 [n, L, K], request int64 [n], weights like experts.

    Equal arguments give equal bytes. Tokens do not exist: input_token is 0 in every row.
    """
    notes = {SYNTHETIC: generator, "seed": str(seed)}
    notes |= {name: str(value) for name, value in parameters.items()}
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        kind="text",
        workload=f"{SYNTHETIC} {generator}",
        model=model,
        draft=None,
        sampling=SamplingInfo("none", 0.0, seed),
        gamma_max=0,
        recorder="generated",
        columns=() if weights is None else ("router_weights",),
        notes=notes,
    )
    begins = np.searchsorted(request, request)
    rows = build_rows(
        request=request,
        phase=DECODE,
        start=np.arange(len(request)) - begins,
        row=0,
        input_token=0,
        target_choice=UNKNOWN_TOKEN,
        match=False,
        experts=experts,
        router_weights=weights,
    )
    with TraceWriter(destination, manifest) as writer:
        writer.append(rows)
    return open_trace(destination)
