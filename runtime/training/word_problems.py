"""Generated arithmetic problems with worked solutions, all templates our own."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

NAMES = [
    "Ada",
    "Ben",
    "Clara",
    "David",
    "Emma",
    "Felix",
    "Grace",
    "Hugo",
    "Ida",
    "Jonas",
    "Karin",
    "Leo",
    "Mia",
    "Nora",
    "Otto",
    "Paula",
]
THINGS = [
    "apples",
    "books",
    "cards",
    "coins",
    "eggs",
    "flowers",
    "marbles",
    "nuts",
    "pencils",
    "stamps",
    "stones",
    "tickets",
]


def problem_sheet(source: random.Random, problems: int = 24) -> str:
    """A numbered sheet of ``problems`` exercises, each followed by its solution."""
    first = source.randrange(1, 900)
    parts = []
    for number in range(first, first + problems):
        question, solution = source.choice(TEMPLATES)(source)
        parts.append(f"Problem {number}. {question}\nSolution. {solution}\n")
    return "\n".join(parts)


def bags(source: random.Random) -> tuple[str, str]:
    name, thing = source.choice(NAMES), source.choice(THINGS)
    have, count, each = source.randrange(3, 60), source.randrange(2, 12), source.randrange(2, 20)
    total = have + count * each
    return (
        f"{name} has {have} {thing} and buys {count} bags with {each} {thing} in each bag. "
        f"How many {thing} does {name} have now?",
        f"The bags hold {count} * {each} = {count * each} {thing}. Together with the first {have} "
        f"{thing} this gives {have} + {count * each} = {total}. The answer is {total}.",
    )


def sharing(source: random.Random) -> tuple[str, str]:
    name, thing = source.choice(NAMES), source.choice(THINGS)
    friends, each, left = source.randrange(3, 12), source.randrange(2, 15), source.randrange(0, 3)
    total = friends * each + left
    return (
        f"{name} shares {total} {thing} equally among {friends} friends. How many {thing} does "
        f"each friend get, and how many are left over?",
        f"We divide {total} by {friends}. Since {friends} * {each} = {friends * each} and "
        f"{total} - {friends * each} = {left}, each friend gets {each} {thing} and {left} are "
        f"left over. The answer is {each} remainder {left}.",
    )


def journey(source: random.Random) -> tuple[str, str]:
    name, hours, speed = source.choice(NAMES), source.randrange(2, 10), 5 * source.randrange(2, 25)
    vehicle = source.choice(["train", "car", "bus", "boat"])
    return (
        f"{name} travels by {vehicle} for {hours} hours at {speed} km per hour. "
        f"How long is the journey?",
        f"The distance is speed times time, so it is {speed} * {hours} = {speed * hours} km. "
        f"The answer is {speed * hours} km.",
    )


def rectangle(source: random.Random) -> tuple[str, str]:
    length, width = source.randrange(4, 40), source.randrange(3, 30)
    place = source.choice(["garden", "room", "field", "yard", "table"])
    around = 2 * (length + width)
    return (
        f"A {place} is {length} m long and {width} m wide. Find its area and its perimeter.",
        f"The area is {length} * {width} = {length * width} square metres. The perimeter is "
        f"2 * ({length} + {width}) = 2 * {length + width} = {around} m. "
        f"The answer is {length * width} square metres and {around} m.",
    )


def equation(source: random.Random) -> tuple[str, str]:
    factor, root, offset = source.randrange(2, 13), source.randrange(1, 25), source.randrange(1, 50)
    right = factor * root + offset
    return (
        f"Solve {factor} x + {offset} = {right} for x.",
        f"Subtract {offset} from both sides: {factor} x = {right} - {offset} = {factor * root}. "
        f"Divide both sides by {factor}: x = {factor * root} / {factor} = {root}. "
        f"The answer is x = {root}.",
    )


def percentage(source: random.Random) -> tuple[str, str]:
    price, rate = 20 * source.randrange(1, 40), 5 * source.randrange(1, 14)
    cut = price * rate // 100
    article = source.choice(["coat", "lamp", "chair", "bicycle", "radio", "clock"])
    return (
        f"A {article} costs {price} crowns. In the sale its price falls by {rate} percent. "
        f"What does the {article} cost now?",
        f"The reduction is {price} * {rate} / 100 = {cut} crowns. The new price is "
        f"{price} - {cut} = {price - cut} crowns. The answer is {price - cut} crowns.",
    )


def common_divisor(source: random.Random) -> tuple[str, str]:
    factor = source.randrange(2, 30)
    first, second = factor * source.randrange(5, 40), factor * source.randrange(2, 20)
    a, b = max(first, second), min(first, second)
    steps = []
    x, y = a, b
    while y:
        steps.append(f"{x} = {x // y} * {y} + {x % y}")
        x, y = y, x % y
    return (
        f"Find the greatest common divisor of {a} and {b}.",
        f"We use the algorithm of Euclid: {'; '.join(steps)}. The last remainder that is not zero "
        f"is {x}. The answer is {x}.",
    )


def factors(source: random.Random) -> tuple[str, str]:
    number = math.prod(source.choice([2, 2, 3, 3, 5, 7]) for _ in range(source.randrange(3, 6)))
    rest, primes, steps = number, [], []
    for prime in (2, 3, 5, 7):
        while rest % prime == 0:
            steps.append(f"{rest} / {prime} = {rest // prime}")
            primes.append(str(prime))
            rest //= prime
    return (
        f"Write {number} as a product of primes.",
        f"We divide by the smallest prime again and again: {', '.join(steps)}. "
        f"The answer is {number} = {' * '.join(primes)}.",
    )


def series(source: random.Random) -> tuple[str, str]:
    first, step, count = source.randrange(1, 15), source.randrange(1, 9), source.randrange(4, 13)
    last = first + (count - 1) * step
    total = count * (first + last) // 2
    return (
        f"An arithmetic sequence starts with {first} and grows by {step}. Find the sum of its "
        f"first {count} terms.",
        f"The last term is {first} + {count - 1} * {step} = {last}. The sum is "
        f"{count} * ({first} + {last}) / 2 = {count} * {first + last} / 2 = {total}. "
        f"The answer is {total}.",
    )


def ages(source: random.Random) -> tuple[str, str]:
    older, younger = source.sample(NAMES, 2)
    age, gap, years = source.randrange(4, 40), source.randrange(2, 15), source.randrange(2, 20)
    return (
        f"{older} is {gap} years older than {younger}. {younger} is {age} years old. "
        f"How old will {older} be in {years} years?",
        f"{older} is now {age} + {gap} = {age + gap} years old. In {years} years {older} will be "
        f"{age + gap} + {years} = {age + gap + years} years old. "
        f"The answer is {age + gap + years}.",
    )


def fractions(source: random.Random) -> tuple[str, str]:
    b, d = source.randrange(2, 10), source.randrange(2, 10)
    a, c = source.randrange(1, b), source.randrange(1, d)
    top, bottom = a * d + c * b, b * d
    shared = math.gcd(top, bottom)
    return (
        f"Add the fractions {a}/{b} and {c}/{d}.",
        f"The common denominator is {b} * {d} = {bottom}. We get {a}/{b} = {a * d}/{bottom} and "
        f"{c}/{d} = {c * b}/{bottom}. The sum is {top}/{bottom}. Dividing by {shared} gives "
        f"{top // shared}/{bottom // shared}. The answer is {top // shared}/{bottom // shared}.",
    )


def coins(source: random.Random) -> tuple[str, str]:
    name, amount = source.choice(NAMES), source.randrange(23, 400)
    rest, steps = amount, []
    for coin in (50, 20, 10, 5, 2, 1):
        if rest >= coin:
            steps.append(f"{rest // coin} of {coin}, leaving {rest % coin}")
            rest %= coin
    return (
        f"{name} pays {amount} crowns with as few coins as possible, using coins of 50, 20, 10, "
        f"5, 2 and 1. Which coins are used?",
        f"We always take the largest coin: {'; '.join(steps)}. The answer is "
        f"{', '.join(step.split(',')[0] for step in steps)}.",
    )


TEMPLATES: tuple[Callable[[random.Random], tuple[str, str]], ...] = (
    bags,
    sharing,
    journey,
    rectangle,
    equation,
    percentage,
    common_divisor,
    factors,
    series,
    ages,
    fractions,
    coins,
)
