"""Streamed text equals the decoded text, for bytes in any order and stop strings in any place."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.checkpoints import SHIPPED_PAIR
from runtime.stopping import StopRule
from runtime.text_stream import TextStream
from runtime.tokenizers import Tokenizer

MULTIBYTE = "naïve Straße 😀👩‍👩‍👧 你好，世界 \ufffd الله 𝔘𝔫𝔦"


@pytest.fixture(scope="module")
def byte_level() -> Tokenizer:
    """The shipped tokenizer: byte-level BPE that spells rare characters byte by byte."""
    return Tokenizer(SHIPPED_PAIR / "target")


def blocks_of(tokens: list[int], seed: int) -> list[list[int]]:
    choose, blocks = random.Random(seed), []
    while tokens:
        size = choose.randint(1, 5)
        blocks.append(tokens[:size])
        tokens = tokens[size:]
    return blocks


def streamed(stream: TextStream, blocks: list[list[int]]) -> list[str]:
    return [*(stream.push(block) for block in blocks), stream.finish()]


@pytest.mark.parametrize("seed", range(5))
def test_characters_of_several_tokens_come_whole(byte_level: Tokenizer, seed: int) -> None:
    tokens = byte_level.encode(MULTIBYTE)
    assert len(tokens) > 1.5 * len(MULTIBYTE), "no character is cut: this test proves nothing"
    pieces = streamed(TextStream(byte_level), blocks_of(tokens, seed))
    assert "".join(pieces) == MULTIBYTE
    assert sum("\ufffd" in piece for piece in pieces) == 1, "only the one that is in the text"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 1023), max_size=60), st.integers(0, 9))
def test_any_tokens_give_the_text_of_the_whole(tokens: list[int], seed: int) -> None:
    tokenizer = Tokenizer(SHIPPED_PAIR / "target")
    assert "".join(streamed(TextStream(tokenizer), blocks_of(tokens, seed))) == tokenizer.decode(
        tokens
    )


def test_a_text_that_ends_inside_a_character_says_so(byte_level: Tokenizer) -> None:
    tokens = byte_level.encode("ab😀")[:-1]
    assert streamed(TextStream(byte_level), [tokens]) == ["ab", "\ufffd"]


def test_words_without_a_decoder(tiny_path: Path) -> None:
    tokenizer = Tokenizer(tiny_path / "target")
    assert "".join(streamed(TextStream(tokenizer), [[7, 8], [9], [10]])) == "w7 w8 w9 w10"


def test_end_tokens_are_not_shown(byte_level: Tokenizer) -> None:
    tokens = byte_level.encode("done")
    assert (
        "".join(streamed(TextStream(byte_level, silent=frozenset({0})), [[*tokens, 0]])) == "done"
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_stop_string_over_tokens_and_blocks_is_never_shown(
    byte_level: Tokenizer, seed: int
) -> None:
    stops = ("\nUser:", "😀!", "END")
    text = ["one\nUse two", "\nUser", "EN 😀", "x😀"][seed % 4] + stops[seed % 3] + " later text"
    tokens = byte_level.encode(text)
    rule = StopRule(500, stop_strings=stops, decode=byte_level.decode)
    stream, committed, shown = TextStream(byte_level, stops), [], []
    for block in blocks_of(tokens, seed):
        kept, reason = rule.cut(committed, block)
        committed += block[:kept]
        shown.append(stream.push(block[:kept]))
        if reason is not None:
            break
    else:
        pytest.fail("the stop string was not noticed")
    shown.append(stream.finish())
    assert "".join(shown) == text[: min(text.find(stop) for stop in stops if stop in text)]
    assert stream.text == "".join(shown)


def test_a_begun_stop_string_is_shown_once_it_is_none(byte_level: Tokenizer) -> None:
    stream = TextStream(byte_level, ("abcdef",))
    assert stream.push(byte_level.encode("xabc")) == "x"
    assert stream.push(byte_level.encode("abc")) == "abc"
    assert stream.push(byte_level.encode("!")) == "abc!"
    assert stream.finish() == ""


def test_a_begun_stop_string_at_the_end_is_text(byte_level: Tokenizer) -> None:
    stream = TextStream(byte_level, ("abcdef",))
    assert stream.push(byte_level.encode("xabc")) == "x"
    assert stream.finish() == "abc"
