"""What is compiled ahead is what both worlds call: another type of one argument would compile the
decision at a layer a second time."""

from typing import Any

import numba
import numpy as np
from numba.core import types

from policies.ahead import layer_signature
from policies.api import Shape
from policies.by_reference import ReferenceType
from policies.kernels import enter_layer
from policies.observation import sliced
from policies.session import Session
from policies.zoo import ZOO
from simulator.compiled_run import NoCopies
from simulator.compiled_state import new_scratch
from tests.simulator.scenes import round_costs


def test_records_of_a_session_have_the_types_that_are_compiled_ahead() -> None:
    for name in ("spac", "ours", "hybrimoe"):
        session = Session(ZOO[name](), Shape(2, 8, 2, 5, 1, 4, False), round_costs(), NoCopies())
        state: Any = session.policy.state_
        records = (state, session.costs, session.ledger, session.observation, session.plan)
        program, *references = layer_signature()[:6]
        assert program == numba.typeof(session.policy.program_)
        assert references == [ReferenceType(numba.typeof(record)) for record in records]


def test_arrays_of_the_compiled_engine_have_them_too() -> None:
    scratch = new_scratch(8, 2, 5, 5)
    experts, weights, predicted, slots, generations, _ = layer_signature()[9:]
    assert experts == numba.typeof(scratch.row_experts[:3])
    assert weights == numba.typeof(scratch.row_weights[:3])
    assert slots == numba.typeof(scratch.landed_slots)
    assert generations == numba.typeof(scratch.landed_generations)
    slice_type = numba.typeof(scratch.row_predicted[:2, :3])
    assert predicted == slice_type


def test_a_session_hands_over_predictions_as_the_engine_does() -> None:
    whole = np.arange(24, dtype=np.int32).reshape(2, 3, 4)

    @numba.njit
    def layout(predicted):  # type: ignore[no-untyped-def]
        return sliced(predicted)

    assert (layout(whole) == whole).all()
    (signature,) = layout.nopython_signatures
    assert signature.return_type == types.Array(types.int32, 3, "A")


def test_it_compiles_the_kernel_that_is_called() -> None:
    assert len(layer_signature()) == enter_layer.py_func.__code__.co_argcount
