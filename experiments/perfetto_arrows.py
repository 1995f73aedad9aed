"""Arrows of a Perfetto trace: from a copy to the GPU work that uses the expert it brought."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments.perfetto_span import Span
from simulator.timeline import Interval
from traces.copy_uses import uses_of_copies
from traces.runlog_schema import CPU

Event = dict[str, Any]
Place = tuple[int, int]  # pass, layer


def arrows(span: Span, slices: Sequence[Event]) -> Iterator[Event]:
    """Pairs of flow events in ns of the run, each inside the slice that it binds to.

    No arrow where the expert was computed on the CPU after all, or was never used.
    """
    tracks = {event["args"]["copy"]: event["tid"] for event in slices if "copy" in event["args"]}
    gpu_tracks = {
        (event["args"]["pass"], event["ts"]): event["tid"]
        for event in slices
        if event["cat"] == "experts"
    }
    uses = uses_of_copies(span.log).loc[span.copies.index]
    blocks, on_cpu = gpu_blocks(span), cpu_experts(span)
    for copy, used_in, layer in zip(
        span.copies.itertuples(index=False), uses["pass_index"], uses["layer"], strict=True
    ):
        place = (int(used_in), int(layer))
        if (*place, int(copy.expert)) in on_cpu or not blocks.get(place):
            continue
        block = first_after(blocks[place], int(copy.landing_ns))
        at_ns = max(block.begin_ns, min(int(copy.landing_ns), block.end_ns - 1))
        if at_ns < copy.begin_ns:
            continue
        number = int(copy.copy_id)
        flow = {"name": "used by", "cat": "copy", "id": number}
        yield flow | {"ph": "s", "tid": tracks[number], "ts": int(copy.begin_ns)}
        end_track = gpu_tracks[place[0], block.begin_ns]
        yield flow | {"ph": "f", "bp": "e", "tid": end_track, "ts": at_ns}


def gpu_blocks(span: Span) -> dict[Place, list[Interval]]:
    """(pass, layer) -> stretches in which the GPU computes experts of that layer, by time."""
    blocks: dict[Place, list[Interval]] = {}
    for index, intervals in span.work.items():
        for one in intervals:
            if one.lane == "gpu" and one.kind == "experts":
                layer = int(one.label.removeprefix("layer "))
                blocks.setdefault((index, layer), []).append(one)
    return blocks


def cpu_experts(span: Span) -> set[tuple[int, int, int]]:
    """(pass, layer, flat expert) of what the CPU computed."""
    layers = span.log.layers
    layers = layers[layers["pass_index"].isin(span.passes["pass_index"])]
    experts = span.log.info.model.experts
    return {
        (int(row.pass_index), int(row.layer), int(row.layer) * experts + int(expert))
        for row in layers.itertuples(index=False)
        for expert in np.asarray(row.experts)[np.asarray(row.placement) == CPU]
    }


def first_after(blocks: Sequence[Interval], landing_ns: int) -> Interval:
    """The stretch that can hold an expert which landed then: the first that ends later."""
    return next((one for one in blocks if one.end_ns > landing_ns), blocks[-1])
