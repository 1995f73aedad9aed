"""`spac trace import` and `spac trace export`: routing from other projects, and for libCacheSim."""

import importlib.util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from omegaconf import DictConfig
from rich.console import Console

from experiments.benchmarks.caches import OURS, libcachesim
from experiments.fitted_table import FittedTable
from experiments.policy_choice import named_function
from experiments.text_table import TextRow, TextTable
from experiments.trace_choice import find_trace, ratios_from
from experiments.trace_model import named_model
from experiments.trace_tables import info_table
from policies.errors import UserError
from traces.caches import capacity_of
from traces.importers import IMPORTERS, Importer, import_trace
from traces.oracle_general import export_oracle_general, layer_requests
from traces.reader import open_trace


def import_file(config: DictConfig, console: Console) -> int:
    """Write a new trace from a routing file."""
    if config.out is None:
        raise UserError("spac trace import needs out=<new trace directory>")
    format = "auto" if config.format is None else str(config.format)
    known = {**IMPORTERS, format: own_importer(format)} if "." in format else IMPORTERS
    trace = import_trace(str(config.path), str(config.out), format, named_model(config), known)
    console.print(info_table(trace))
    return 0


def own_importer(name: str) -> Importer:
    """The importer whose function has the import path `name`."""
    return Importer(named_function(name, f"format={name}"))


def export_layers(config: DictConfig, console: Console) -> int:
    """Write a file in libCacheSim's format for each layer, and show what to expect of them."""
    if config.out is None:
        raise UserError("spac trace export needs out=<new folder>")
    trace = open_trace(find_trace(config.path))
    experts = trace.manifest.model.experts
    ratios = list(ratios_from(config, experts))
    files = export_oracle_general(trace, str(config.out))
    table = hits_table(layer_requests(trace), experts, ratios, files)
    size = trace.manifest.model.expert_bytes
    console.print(table)
    console.print(
        f"{len(files)} files in {config.out}, one for each layer; requests of {size:,} bytes in "
        "the order of tokens and of experts within a token",
        soft_wrap=True,
    )
    return 0


def hits_table(
    layers: NDArray[np.int64], experts: int, ratios: list[float], files: list[Path]
) -> FittedTable:
    """Hit rates of the requests, int64 [L, n], mean over layers; libCacheSim's own beside them
    where it is installed. Its Belady, like ours here, keeps every miss."""
    installed = importlib.util.find_spec("libcachesim") is not None
    columns = ["cache ratio", "slots a layer", *OURS]
    columns += [f"{name}, libCacheSim" for name in OURS] if installed else []
    rows = []
    for ratio in ratios:
        capacity = capacity_of(ratio, experts)
        tokens = [np.ascontiguousarray(one[:, None]) for one in layers]
        rates = [
            sum(hits(one, experts, capacity) for one in tokens) / layers.size
            for hits in OURS.values()
        ]
        if installed:
            rates += [
                libcachesim(name, files, capacity, layers.shape[1], 1)[1] / layers.size
                for name in OURS
            ]
        cells = (f"{rate:.2%}" for rate in rates)
        rows.append(TextRow([f"{ratio:.0%}", str(capacity), *cells]))
    title = "hit rates of single requests, one cache per layer"
    return FittedTable(TextTable(title, columns, rows))
