"""Eight failures of public systems, each with the input that showed it, as small as it can be."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from offload_setup import ForcedPolicy, flat_costs, random_arena
from test_host_arena import computed, load, named, random_parts, reference, written
from test_speculative import GREEDY, PROMPT, scripts

from policies.api import GPU, Routing, Shape
from policies.compile import python_kernel
from policies.errors import UserError
from policies.ledger import FILLING, OK, READY, begin_fill, new_ledger, publish, release_readers
from policies.session import Session
from runtime.acceptance import acceptance_probability, residual
from runtime.device import COMPUTE, DeviceError
from runtime.expert_layout import ExpertLayout
from runtime.expert_names import DOWN, GATE, UP
from runtime.memory_plan import GIB, check_reservation
from runtime.message_ring import HostRing, send_to_device, send_to_host
from runtime.slots import SlotPool
from runtime.speculative import SpeculativeDecoder
from runtime.standin import StandIn
from runtime.standin_link import Link
from runtime.stopping import StopRule
from runtime.transfers import Transfers

begin_fill = python_kernel(begin_fill)
publish = python_kernel(publish)
release_readers = python_kernel(release_readers)

END = 5


def test_pinned_blocks_are_rounded_up_pytorch_150517() -> None:
    """6,144 experts in blocks of their own reserve 96 GiB for 54; one arena takes what it needs."""
    with pytest.raises(UserError, match=r"96\.00 GiB for 54\.00 GiB"):
        check_reservation(6_144, 9_437_184, lambda size: 1 << (size - 1).bit_length())
    arena = check_reservation(1, 6_144 * 9_437_184, lambda size: -(-size // 4096) * 4096)
    assert arena <= 54 * GIB * 1.01


def test_results_are_read_before_they_arrive_fiddler_6() -> None:
    device = StandIn({"slow": Link(None, latency_ns=5_000_000)})
    ring, source = HostRing(device, 1, 64, "result"), torch.arange(16, dtype=torch.float32)
    message = send_to_host(device, ring, source, device.stream("slow"))
    with pytest.raises(DeviceError, match="before its copy had ended"):
        message.read()
    assert torch.equal(message.wait().view(torch.float32), source)
    device.close()


def test_a_slot_changes_hands_twice_moe_infinity_138() -> None:
    a, b, c = 0, 1, 2
    ledger = new_ledger(1, 4, 2, 0)
    outcomes = [
        begin_fill(ledger, a, 0),
        begin_fill(ledger, a, 1),
        begin_fill(ledger, b, 1),
        begin_fill(ledger, c, 0),
        publish(ledger, 0, int(ledger.slot_generation[0])),
    ]
    ledger.slot_readers[0] += 1
    outcomes.append(begin_fill(ledger, c, 0))
    assert [code == OK for code in outcomes] == [True, False, True, False, True, False]
    release_readers(ledger)
    assert begin_fill(ledger, c, 0) == OK


def test_ten_thousand_random_sequences_keep_one_slot_per_expert() -> None:
    random = np.random.default_rng(0)
    for _ in range(10_000):
        ledger = new_ledger(1, 3, 2, 0)
        for action, expert, slot in random.integers((0, 0, 0), (3, 3, 2), (12, 3)).tolist():
            if action == 0:
                begin_fill(ledger, expert, slot)
            elif action == 1:
                publish(ledger, slot, int(ledger.slot_generation[slot]))
            elif ledger.slot_state[slot] == READY:
                ledger.slot_readers[slot] ^= 1
        held = ledger.slot_expert[:2][ledger.slot_state[:2] != 0]
        assert len(set(held.tolist())) == len(held)
        assert sum(int((ledger.slot_state[:2] == s).sum()) for s in (0, FILLING, READY)) == 2


@pytest.mark.parametrize("scheme", ["gate_up_down", "w1_w3_w2", "fused"])
def test_projections_are_mixed_up_moe_infinity_123(scheme: str, tmp_path: Path) -> None:
    """Hidden and width differ, so that up for down fails by shape and gate for up by value."""
    parts = random_parts()
    (key, one), hidden = next(iter(parts.items())), torch.randn(5, 8)
    assert one[UP].shape != one[DOWN].shape
    arena = load(written(tmp_path / "right", named(parts, scheme), seed=1))
    assert key == (0, 0)
    assert torch.allclose(computed(hidden, arena, 0), reference(hidden, one), atol=1e-5)
    values = {k: {GATE: v[UP], UP: v[GATE], DOWN: v[DOWN]} for k, v in parts.items()}
    wrong = load(written(tmp_path / "values", named(values, scheme)))
    assert not torch.allclose(computed(hidden, wrong, 0), reference(hidden, one), atol=1e-3)
    if scheme != "fused":
        shapes = {k: {GATE: v[GATE], UP: v[DOWN], DOWN: v[UP]} for k, v in parts.items()}
        with pytest.raises(UserError):
            load(written(tmp_path / "shapes", named(shapes, scheme)))


def test_residency_outlives_the_buffer_llama_cpp_23170() -> None:
    layout = ExpertLayout(layers=1, experts=4, hidden=16, width=16, dtype=torch.float32)
    device = StandIn({})
    pool = SlotPool(layout, 2, 0, device)
    transfers = Transfers(device, random_arena(layout, device), pool)
    shape, routing = Shape(1, 4, 2, 2, 0, 0, False), Routing(0, np.array([[0, 1]]))

    def fresh() -> Session:
        return Session(ForcedPolicy("FETCH"), shape, flat_costs(), transfers)

    session = fresh()
    session.enter_layer(routing)
    transfers.drain()
    transfers.publish(device.clock_ns())
    session.leave_layer(0)
    assert set(session.enter_layer(routing).placement) == {GPU}
    pool.invalidate(device, device.stream(COMPUTE))
    device.join(device.stream(COMPUTE))
    assert pool.down(0).isnan().all() and pool.down(1).isnan().all()
    assert fresh().enter_layer(routing).hit.sum() == 0
    device.close()


def test_q_is_not_what_was_sampled_transformers_47932() -> None:
    p = np.array([0.40, 0.35, 0.25, 0.0, 0.0])
    raw = np.array([0.30, 0.25, 0.20, 0.15, 0.10])
    top_two = np.array([0.30, 0.25, 0.0, 0.0, 0.0]) / 0.55

    def off(drawn: np.ndarray, judged: np.ndarray) -> float:
        output, rejected = np.zeros(5), 0.0
        for token in np.flatnonzero(drawn):
            accepted = acceptance_probability(p, judged, int(token))
            output[token] += drawn[token] * accepted
            rejected += drawn[token] * (1 - accepted)
        return float(np.abs(output + rejected * residual(p, judged) - p).sum() / 2)

    assert off(top_two, top_two) < 1e-15
    assert off(top_two, raw) == pytest.approx(0.25, abs=1e-3)
    assert off(np.eye(5)[0], raw) == pytest.approx(0.60, abs=1e-9)


@pytest.mark.parametrize("place", range(5))
def test_text_goes_on_after_the_end_token_transformers_47912(place: int) -> None:
    """The target wants 5 tokens with the end token at `place`, the draft proposes the first 4."""
    block = [15, 16, 17, 18, 19]
    block[place] = END
    target, draft = scripts([14, *block], [14, *block[:4]])
    decoder = SpeculativeDecoder(target, draft, GREEDY, 4)
    stop = StopRule(50, frozenset({END}))
    streamed = list(chain.from_iterable(decoder.generate(0, PROMPT, stop)))
    assert streamed == [14, *block[: place + 1]]
    # With two tokens before it, the cache is that of the prompt and three tokens of this block.
    assert target.length == len(PROMPT) + 1 + min(place + 1, 4)


def test_a_pinned_source_is_overwritten_tensorrt_llm_15546() -> None:
    """1 MB/s and a ring of one: the second message waits until the first has left the buffer."""
    device = StandIn({"slow": Link(1e6)})
    ring, stream = HostRing(device, 1, 10_000, "staging"), device.stream("slow")
    payload = torch.full((10_000,), 1, dtype=torch.uint8)
    first, second = torch.zeros_like(payload), torch.zeros_like(payload)
    send_to_device(device, ring, payload, first, stream)
    payload.fill_(2)
    device.synchronize(send_to_device(device, ring, payload, second, stream))
    assert (first == 1).all() and (second == 2).all()
    device.close()
