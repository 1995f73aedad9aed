"""Generated routing has the statistics asked for, within 0.02, and the same seed gives the same."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies.errors import UserError
from traces.caches import belady_hits, lru_hits
from traces.check import check_trace
from traces.generated import SYNTHETIC, write_generated
from traces.generators import GENERATORS
from traces.generators.adversary import Adversary, adversary_experts
from traces.generators.markov import Markov
from traces.generators.phases import Phases
from traces.generators.shape import Drawn, TextShape
from traces.generators.zipf import Zipf, inclusion, ranked_shares, systematic_sample, zipf_experts
from traces.manifest import ModelInfo
from traces.replay import open_replay

SHAPE = TextShape(layers=3, experts=32, top_k=4, requests=3, tokens=400)
TOLERANCE = 0.02  # absolute, of shares and hit rates at 1,200 rows

LAWS: list[tuple[str, Any]] = [
    ("zipf", Zipf(0.0)),
    ("zipf", Zipf(0.8)),
    ("zipf", Zipf(2.5)),  # so steep that some experts are in every row
    ("markov", Markov(0.0)),
    ("markov", Markov(0.43)),
    ("markov", Markov(0.9, zipf=1.2)),
    ("phases", Phases(100, 8, 0.25)),
    ("phases", Phases(3, 12, 0.0)),  # too short to use all of its set
    ("phases", Phases(50, 16, 1.0)),
    ("lru-adversary", Adversary(5)),
    ("lru-adversary", Adversary(28)),
]


@pytest.mark.parametrize(("name", "law"), LAWS, ids=str)
def test_what_comes_out_is_what_was_asked_for(name: str, law: Any) -> None:
    drawn = Drawn(SHAPE, GENERATORS[name].draw(law, SHAPE, 1))
    assert drawn.experts.shape == (1200, 3, 4) and drawn.experts.dtype == np.uint16
    statistics = GENERATORS[name].measure(law, drawn)
    assert statistics
    for one in statistics:
        if "at least" in one.name:
            assert one.measured >= one.asked > 0
        elif "distinct" in one.name:
            assert one.measured == pytest.approx(one.asked, rel=TOLERANCE)
        elif name == "phases" and law.phase_tokens < 10:
            continue  # of a phase that did not show its set nothing can be said
        else:
            assert one.measured == pytest.approx(one.asked, abs=TOLERANCE)


@pytest.mark.parametrize(("name", "law"), LAWS, ids=str)
def test_traces_are_ordinary_marked_and_repeatable(name: str, law: Any, tmp_path: Path) -> None:
    shape = replace(SHAPE, tokens=40)
    model = ModelInfo("m", shape.layers, shape.experts, shape.top_k, 1 << 20)

    def write(folder: str, seed: int) -> Any:
        experts = GENERATORS[name].draw(law, shape, seed)
        return write_generated(
            tmp_path / folder, experts, shape.request, model, name, asdict(law), seed
        )

    one, same, other = write("one", 3), write("same", 3), write("other", 4)
    assert one.digest == same.digest and other.digest != one.digest
    for part in one.manifest.parts:
        assert (one.path / part.file).read_bytes() == (same.path / part.file).read_bytes()
    notes = one.manifest.notes
    assert notes[SYNTHETIC] == name and notes["seed"] == "3"
    assert {key: notes[key] for key in asdict(law)} == {k: str(v) for k, v in asdict(law).items()}
    report = check_trace(one.path)
    assert report.ok and (report.requests, report.rows) == (3, 120)
    assert open_replay(one, acceptance=0.6).request_ids == (0, 1, 2)


def test_other_seeds_give_other_experts() -> None:
    for name, law in LAWS:
        first, second = (GENERATORS[name].draw(law, SHAPE, seed) for seed in (1, 2))
        assert (first != second).any()


def test_every_expert_has_its_share() -> None:
    """Not the first alone: Zipf's law rank by rank."""
    shape = replace(SHAPE, layers=2, tokens=4000)
    drawn = Drawn(shape, zipf_experts(Zipf(1.0), shape, 0))
    expected = inclusion(1.0, 32, 4) / 4
    assert expected[0] / expected[9] == pytest.approx(10)
    for layer in range(2):
        np.testing.assert_allclose(ranked_shares(drawn, layer), expected, atol=0.004)


def test_inclusion_adds_up_and_never_exceeds_one() -> None:
    for zipf in (0.0, 0.5, 1.0, 3.0, 10.0):
        for top_k in (1, 2, 8, 16):
            chance = inclusion(zipf, 16, top_k)
            assert chance.sum() == pytest.approx(top_k) and chance.max() <= 1 + 1e-12
            assert (np.diff(chance) <= 1e-12).all()


def test_a_systematic_sample_never_repeats_an_item() -> None:
    generator = np.random.default_rng(0)
    chance = np.array([1.0, 1.0, 0.5, 0.25, 0.25])
    rows = systematic_sample(chance, 4000, generator)
    assert rows.shape == (4000, 3)
    assert (np.diff(np.sort(rows, axis=1), axis=1) > 0).all()
    found = np.bincount(rows.ravel(), minlength=5) / 4000
    np.testing.assert_allclose(found, chance, atol=0.03)


@pytest.mark.parametrize("capacity", [1, 4, 5, 11, 28])
@pytest.mark.parametrize("top_k", [1, 3, 4])
def test_lru_never_hits_at_its_capacity_while_belady_does(capacity: int, top_k: int) -> None:
    shape = replace(SHAPE, top_k=top_k)
    experts = adversary_experts(Adversary(capacity), shape, 0).astype(np.int64)
    layer = np.ascontiguousarray(experts[:, 1])
    for smaller in range(1, capacity + 1):
        assert lru_hits(layer, 32, smaller) == 0
    assert belady_hits(layer, 32, capacity) > 0
    if capacity + top_k <= 32:
        assert lru_hits(layer, 32, capacity + top_k) > 0.9 * layer.size


def test_phases_change_all_at_once() -> None:
    experts = GENERATORS["phases"].draw(Phases(100, 6, 0.0), SHAPE, 0)
    before, after = set(experts[:100, 0].ravel()), set(experts[100:200, 0].ravel())
    assert len(before) == len(after) == 6 and not before & after


@pytest.mark.parametrize(
    ("name", "law", "shape", "message"),
    [
        ("markov", Markov(0.5), replace(SHAPE, experts=7), "at least 8 experts"),
        ("phases", Phases(10, 3), SHAPE, "working_set=3, a row needs top_k=4"),
        ("phases", Phases(10, 20, 0.1), SHAPE, "working_set=20 and 18 new ones need 38"),
        ("lru-adversary", Adversary(29), SHAPE, "need 33 experts, there are 32"),
    ],
)
def test_shapes_that_cannot_hold_the_law(
    name: str, law: Any, shape: TextShape, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        GENERATORS[name].draw(law, shape, 0)


@pytest.mark.parametrize(
    ("law", "parameters", "message"),
    [
        (Zipf, {"zipf": -1}, "zipf=-1, must be between 0 and 10"),
        (Markov, {"reuse": 1.1}, "reuse=1.1, must be between 0 and 1"),
        (Markov, {"zipf": 11}, "zipf=11"),
        (Phases, {"carried": -0.1}, "carried=-0.1"),
        (Phases, {"phase_tokens": 0}, "phase_tokens=0, must be at least 1"),
        (Adversary, {"capacity": 0}, "capacity=0"),
        (TextShape, {"tokens": 0}, "tokens=0, must be at least 1"),
        (TextShape, {"top_k": 65}, "top_k=65 of experts=64"),
        (TextShape, {"experts": 65536}, "at most 65535"),
    ],
)
def test_impossible_parameters(law: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        law(**parameters)


def test_a_text_with_one_phase_has_no_change_to_measure() -> None:
    law = Phases(phase_tokens=700)
    drawn = Drawn(SHAPE, GENERATORS["phases"].draw(law, SHAPE, 0))
    with pytest.raises(UserError, match="fewer than two phases"):
        GENERATORS["phases"].measure(law, drawn)
