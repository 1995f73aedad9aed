"""How the prediction moves with what the paper does not say, one thing at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from experiments.studies.paper_predictions import GAMMA, LLAMA_SD, SPAC
from experiments.studies.paper_world import Play, World, play, with_cpu_rate, with_link_rate

BASE = Play("spac", GAMMA)
RIVAL = Play("all_cpu", GAMMA)


@dataclass(frozen=True)
class Variation:
    """One unknown set to one value. `spac`, `rival`: what is then played."""

    unknown: str
    value: str
    world: World
    spac: Play = BASE
    rival: Play = RIVAL


def variations(world: World) -> list[Variation]:
    """The base first."""
    machine = world.machine
    cpu = machine.hardware.cpu.bytes_per_second
    listed = [Variation("(as fitted)", "", world)]
    for factor in (0.7, 1.5, 2.5):
        faster = replace(world, machine=with_cpu_rate(machine, factor * cpu))
        listed.append(Variation("CPU GB/s", f"{factor * cpu / 1e9:.0f}", faster))
    for acceptance in (0.6, 0.75, 0.95):
        listed.append(
            Variation("acceptance", f"{acceptance:g}", replace(world, acceptance=acceptance))
        )
    for gamma in (2, 4):
        listed.append(
            Variation("gamma", str(gamma), world, Play("spac", gamma), Play("all_cpu", gamma))
        )
    for rate, name in ((8e9, "8 (pageable)"), (32e9, "32 (nominal)")):
        other = replace(world, machine=with_link_rate(machine, rate))
        listed.append(Variation("PCIe GB/s", name, other))
    serial = Play("spac", GAMMA, lanes="serial")
    listed.append(Variation("lanes", "serial", world, serial))
    listed.append(
        Variation("threshold up", "5 (released code)", world, Play("spac", GAMMA, {"up": 5}))
    )
    rival = Play("n_cpu_moe", GAMMA)
    listed.append(Variation("llama.cpp's slots", "whole layers in VRAM", world, rival=rival))
    return listed


def sensitivity_rows(listed: list[Variation]) -> Iterator[dict[str, Any]]:
    """TPS of both and their ratio; a run that the base has already made is not made again."""
    known: dict[tuple[int, str], float] = {}
    for one in listed:
        spac = play(one.world, one.spac).tokens_per_second
        key = (id(one.world), repr(one.rival))
        if key not in known:
            known[key] = play(one.world, one.rival).tokens_per_second
        yield {
            "unknown": one.unknown,
            "value": one.value,
            SPAC: spac,
            LLAMA_SD: known[key],
            "ratio": spac / known[key],
        }
