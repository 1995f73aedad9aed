import hashlib

import numpy as np
import pytest
import torch

from runtime.keyed_noise import NoiseRows, keyed_noise, keyed_uniforms, logarithm


def test_the_same_bits_everywhere() -> None:
    """Recorded once; a change here makes every keyed trace unrepeatable."""
    data = b"".join(keyed_noise(7, request, 40, 512).tobytes() for request in range(4))
    assert hashlib.sha256(data).hexdigest()[:16] == "bc134f3bfe4f82f7"


def test_dtype_and_keys() -> None:
    base = keyed_noise(1, 2, 3, 100)
    assert base.dtype == np.float32
    assert np.array_equal(base, keyed_noise(1, 2, 3, 100))
    for other in ((2, 2, 3), (1, 3, 3), (1, 2, 4), (-1, 2, 3)):
        assert np.abs(base - keyed_noise(*other, 100)).min() > 0
    assert np.array_equal(base[:50], keyed_noise(1, 2, 3, 50))


def test_gumbel_moments() -> None:
    values = np.concatenate([keyed_noise(5, 0, position, 1000) for position in range(200)])
    assert values.mean() == pytest.approx(np.euler_gamma, abs=0.013)
    assert values.var() == pytest.approx(np.pi**2 / 6, abs=0.035)
    # P(g <= 0) = exp(-1)
    assert (values <= 0).mean() == pytest.approx(np.exp(-1), abs=0.004)


def test_positions_are_independent() -> None:
    rows = np.stack([keyed_noise(5, 1, position, 4000) for position in range(12)])
    correlation = np.corrcoef(rows) - np.eye(12)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_best_of_log_p_plus_noise_is_distributed_as_p() -> None:
    p = np.array([0.5, 0.25, 0.15, 0.07, 0.03])
    draws = 8000
    chosen = [np.argmax(np.log(p) + keyed_noise(11, 0, at, 5)) for at in range(draws)]
    found = np.bincount(chosen, minlength=5) / draws
    assert np.all(np.abs(found - p) < 4 * np.sqrt(p * (1 - p) / draws))


def test_logarithm() -> None:
    values = np.concatenate(
        [np.geomspace(1e-300, 1e300, 20001), 1 - np.geomspace(2.0**-53, 0.5, 2001), [0.5, 1.0, 2.0]]
    )
    exact = np.log(values)
    error = np.abs(logarithm(values) - exact)
    assert np.all(error <= 1e-15 * np.maximum(np.abs(exact), 1e-300))
    assert logarithm(np.array([1.0]))[0] == 0.0


def test_noise_is_finite_at_the_ends_of_the_range() -> None:
    ends = np.array([0.5 * 2.0**-52, 1 - 0.5 * 2.0**-52])
    assert np.isfinite(-logarithm(-logarithm(ends))).all()


def test_uniforms_are_a_stream_of_their_own() -> None:
    values = np.concatenate([keyed_uniforms(3, 0, position, 4) for position in range(5000)])
    assert 0 < values.min() < values.max() < 1
    assert values.mean() == pytest.approx(0.5, abs=0.01)
    same_key = np.exp(-np.exp(-keyed_noise(3, 0, 0, 4).astype(np.float64)))
    assert np.abs(same_key - keyed_uniforms(3, 0, 0, 4)).min() > 1e-3


def test_rows_are_kept_and_forgotten_without_changing() -> None:
    rows = NoiseRows(9, 50, torch.device("cpu"), kept=3)
    for first in (0, 1, 2, 5, 0):
        expected = np.stack([keyed_noise(9, 4, first + offset, 50) for offset in range(4)])
        assert np.array_equal(rows.rows(4, first, 4).numpy(), expected)
