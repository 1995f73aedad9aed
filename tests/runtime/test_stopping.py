import pytest

from policies.errors import UserError
from runtime.stopping import StopRule
from runtime.tokenizers import Tokenizer


def test_goes_on_without_a_reason() -> None:
    assert StopRule(10, frozenset({0})).cut([1, 2], [3, 4]) == (2, None)


@pytest.mark.parametrize("place", range(4))
def test_end_token_at_every_place(place: int) -> None:
    block = [5, 6, 7, 8]
    block[place] = 0
    assert StopRule(10, frozenset({0, 99})).cut([1], block) == (place + 1, "end_token")


@pytest.mark.parametrize("left", range(1, 5))
def test_length_limit_inside_the_block(left: int) -> None:
    assert StopRule(3 + left).cut([1, 2, 3], [5, 6, 7, 8]) == (left, "length")


def test_the_first_reason_in_the_text_wins() -> None:
    assert StopRule(3, frozenset({0})).cut([1], [5, 6, 0]) == (2, "length")
    assert StopRule(3, frozenset({0})).cut([1], [5, 0, 6]) == (2, "end_token")


@pytest.mark.parametrize("place", range(1, 4))
def test_stop_string_ending_in_the_middle_of_the_block(tiny_path: object, place: int) -> None:
    tokenizer = Tokenizer(tiny_path / "target")  # type: ignore[operator]
    block = [11, 12, 13, 14]
    stop = StopRule(
        10, stop_strings=(f"w{block[place - 1]} w{block[place]}",), decode=tokenizer.decode
    )
    assert stop.cut([10], block) == (place + 1, "stop_string")


def test_stop_string_that_began_in_an_earlier_block() -> None:
    letters = "abcdefgh"
    stop = StopRule(20, stop_strings=("cde",), decode=lambda t: "".join(letters[n] for n in t))
    assert stop.cut([0, 1, 2], [3, 4, 5]) == (2, "stop_string")


def test_stop_string_inside_one_token_and_beyond_the_tail() -> None:
    words = ["x" * 40 + "END" + "y", "a"]
    stop = StopRule(99, stop_strings=("END",), decode=lambda t: "".join(words[n] for n in t))
    assert stop.cut([1] * 30, [1, 0, 1]) == (2, "stop_string")


def test_stop_string_after_bytes_of_a_cut_character() -> None:
    """The tail that is decoded may begin in the middle of a character of four byte tokens."""
    text = ("😀" * 5 + "stop").encode()
    stop = StopRule(
        99, stop_strings=("😀stop",), decode=lambda t: bytes(t).decode(errors="replace")
    )
    assert stop.cut(list(text[:-2]), list(text[-2:])) == (2, "stop_string")


def test_unusable_rules() -> None:
    with pytest.raises(UserError, match="max_new_tokens=0"):
        StopRule(0)
    with pytest.raises(UserError, match="need a tokenizer"):
        StopRule(5, stop_strings=("x",))
    with pytest.raises(UserError, match="not be empty"):
        StopRule(5, stop_strings=("",), decode=str)
