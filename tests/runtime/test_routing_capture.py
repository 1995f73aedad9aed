from typing import Any

import numpy as np
import pytest
import torch

from runtime.routing_capture import Routing, RoutingCapture
from traces.rows import FILLER

TOKENS = [9, 14, 33, 6, 21, 60]


def router_inputs(target: Any, tokens: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Reference: inputs [L, n, H] and logits [L, n, E] of all routers, from the hidden states."""
    module = target.module
    inputs = []
    hooks = [
        module.model.layers[number].post_attention_layernorm.register_forward_hook(
            lambda _module, _inputs, output: inputs.append(output[0])
        )
        for number in target.facts.moe_layers
    ]
    with torch.inference_mode():
        output = module(
            input_ids=torch.tensor([tokens]), use_cache=False, output_router_logits=True
        )
    for hook in hooks:
        hook.remove()
    return torch.stack(inputs), torch.stack(output.router_logits)


def capture(target: Any, lookahead: int = 0) -> Routing:
    with RoutingCapture(target.routers, lookahead) as hooks:
        target.prefill(TOKENS)
        return hooks.take()


def test_experts_are_those_of_the_model(tiny: Any) -> None:
    _, logits = router_inputs(tiny.target, TOKENS)
    probabilities = torch.softmax(logits, -1)
    best = torch.topk(probabilities, 2, dim=-1)
    routing = capture(tiny.target)
    assert routing.experts.shape == (6, 3, 2)
    assert routing.experts.dtype == np.uint16
    assert np.array_equal(routing.experts, best.indices.transpose(0, 1).numpy())
    weights = best.values / best.values.sum(-1, keepdim=True)
    assert routing.weights.dtype == np.float16
    assert routing.weights == pytest.approx(weights.transpose(0, 1).numpy(), abs=1e-3)
    assert np.all(np.diff(routing.weights.astype(np.float32), axis=-1) <= 0), "descending"


def test_margins_between_chosen_and_left_out(tiny: Any) -> None:
    _, logits = router_inputs(tiny.target, TOKENS)
    ordered = logits.sort(-1, descending=True).values.transpose(0, 1)
    margins = capture(tiny.target).margins
    assert margins.shape == (6, 3)
    assert margins == pytest.approx((ordered[..., 1] - ordered[..., 2]).numpy(), abs=1e-4)


def test_next_layer_applies_a_later_router_to_this_layers_input(tiny: Any) -> None:
    inputs, _ = router_inputs(tiny.target, TOKENS)
    predicted = capture(tiny.target, lookahead=3).next_layer
    assert predicted is not None
    assert predicted.shape == (3, 6, 3, 2)
    for distance in (1, 2, 3):
        for layer in range(3):
            found = predicted[distance - 1, :, layer]
            if layer + distance >= 3:
                assert np.all(found == FILLER)
                continue
            _, _, expected = tiny.target.routers[layer + distance](inputs[layer])
            assert np.array_equal(found, expected.numpy())


def test_without_lookahead_nothing_is_predicted(tiny: Any) -> None:
    assert capture(tiny.target).next_layer is None


def test_the_model_is_left_as_it_was(tiny: Any) -> None:
    before = tiny.target.prefill(TOKENS)
    hooks_before = [len(router._forward_hooks) for router in tiny.target.routers]
    with RoutingCapture(tiny.target.routers, 2) as hooks:
        during = tiny.target.prefill(TOKENS)
        hooks.take()
    assert torch.equal(before, during)
    assert [len(router._forward_hooks) for router in tiny.target.routers] == hooks_before
    tiny.target.prefill(TOKENS)
    with pytest.raises(RuntimeError, match="0 router calls captured, expected 3"):
        hooks.take()


def test_exactly_one_forward_may_have_run(tiny: Any) -> None:
    with RoutingCapture(tiny.target.routers) as hooks:
        tiny.target.prefill(TOKENS)
        tiny.target.forward([3])
        with pytest.raises(RuntimeError, match="6 router calls"):
            hooks.take()
        tiny.target.forward([4, 5])
        hooks.clear()
        tiny.target.forward([3])
        assert len(hooks.take().experts) == 1


def test_all_experts_active_has_no_margin() -> None:
    class Router(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.eye(2))

        def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            best = torch.topk(rows @ self.weight.T, 2, dim=-1)
            return rows @ self.weight.T, best.values, best.indices

    router = Router()
    with RoutingCapture([router], lookahead=3) as hooks:
        router(torch.tensor([[1.0, 2.0]]))
        routing = hooks.take()
    assert routing.experts.tolist() == [[[1, 0]]]
    assert np.isinf(routing.margins).all()
    assert routing.next_layer is not None
    assert np.all(routing.next_layer == FILLER)
