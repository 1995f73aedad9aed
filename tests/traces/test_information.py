"""Entropy and mutual information against values by hand."""

import numpy as np
import pytest

from traces.information import entropy_bits, histograms, mutual_information, null_information


def test_entropy_by_hand() -> None:
    # Fair coin 1 bit; certain 0; (1/2, 1/4, 1/4) 1.5 bits; nothing seen 0.
    counts = np.array([[4, 4, 0], [7, 0, 0], [2, 1, 1], [0, 0, 0]])
    assert entropy_bits(counts) == pytest.approx([1.0, 0.0, 1.5, 0.0])


def test_entropy_of_a_binomial_count_and_its_bit() -> None:
    # p = 1/2, two rows: counts 1, 2, 1 of 4, so 1.5 bits; the bit is 3/4, so 0.811 bits.
    signal = np.array([[0], [1], [1], [2]])
    assert entropy_bits(histograms(signal, 3)) == pytest.approx([1.5])
    bit = (signal > 0).astype(np.int64)
    assert entropy_bits(histograms(bit, 2)) == pytest.approx([0.8112781])


def test_histograms_per_cell() -> None:
    signal = np.array([[0, 2], [1, 2], [1, 0]])
    assert histograms(signal, 3).tolist() == [[1, 2, 0], [1, 0, 2]]


def test_mutual_information_by_hand() -> None:
    # Cell 0: equal, 1 bit. Cell 1: independent, 0. Cell 2: joint (1/2, 0; 1/4, 1/4):
    # H(x) 1 + H(y) 0.8113 - 1.5 = 0.3113.
    one = np.array([[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1]])
    other = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1]])
    assert mutual_information(one, other, 2, 2) == pytest.approx([1.0, 0.0, 0.3112781])


def test_information_never_falls_when_a_signal_is_finer() -> None:
    generator = np.random.default_rng(0)
    count = generator.integers(0, 4, (200, 5))
    later = np.clip(count + generator.integers(-1, 2, count.shape), 0, 3)
    bit = (count > 0).astype(np.int64)
    assert (
        mutual_information(count, later, 4, 4) >= mutual_information(bit, later, 2, 4) - 1e-12
    ).all()


def test_null_is_the_bias_of_independent_signals() -> None:
    generator = np.random.default_rng(1)
    one, other = generator.integers(0, 4, (400, 50)), generator.integers(0, 3, (400, 50))
    raw = mutual_information(one, other, 4, 3)
    null = null_information(one, other, 4, 3, 20, seed=0)
    assert (raw - null).mean() == pytest.approx(0.0, abs=0.003)
    assert null.mean() == pytest.approx(3 * 2 / (2 * 400 * np.log(2)), rel=0.15)


def test_null_of_equal_signals_is_small() -> None:
    one = np.random.default_rng(2).integers(0, 2, (500, 1))
    assert null_information(one, one, 2, 2, 10, seed=0)[0] < 0.02
    assert mutual_information(one, one, 2, 2)[0] > 0.99
