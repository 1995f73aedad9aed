"""Builders on miniature package files."""

from __future__ import annotations

import random
import re
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from runtime.training import corpora, packages
from runtime.training.recipe import WORKLOADS, CorpusRecipe
from runtime.training.word_problems import TEMPLATES, problem_sheet

RECIPE = CorpusRecipe(bytes_per_workload=20_000)


def test_every_workload_has_text_within_the_limit(package_tree: Path):
    built = corpora.build_corpora(package_tree, RECIPE)
    assert tuple(built) == WORKLOADS
    for documents in built.values():
        assert documents
        assert sum(map(len, documents[:-1])) <= RECIPE.bytes_per_workload + 40_000
        assert all(text.isascii() and "\t" not in text for text in documents)


def test_building_twice_gives_the_same_text(package_tree: Path):
    assert corpora.build_corpora(package_tree, RECIPE) == corpora.build_corpora(
        package_tree, RECIPE
    )


def test_metamath_loses_proofs_and_credits(package_tree: Path):
    text = "".join(corpora.metamath_statements(package_tree))
    assert "|- ( ph -> ps7 )" in text
    assert "SECRET" not in text
    assert "Contributed by" not in text


def test_repeated_dictionary_bodies_are_kept_once(package_tree: Path):
    text = "".join(corpora.wordnet_entries(package_tree))
    assert text.count("a thing of kind 299") == 1


def test_manual_pages_are_plain_text_without_release_notes(package_tree: Path):
    text = "".join(corpora.manual_pages(package_tree))
    assert "Use <it>" in text
    assert "SKIPPED" not in text
    assert "<p>" not in text


def test_bible_windows_are_joined(package_tree: Path):
    text = "".join(corpora.bible(package_tree))
    assert text.startswith("Gen1:0 In the beginning 0.")
    assert text.endswith("Gen1:59 In the beginning 59.\n")


def test_pieces_cut_at_line_ends_and_lose_nothing():
    text = "".join(f"line {number}\n" for number in range(50)) + "no end"
    parts = corpora.pieces(text, 40)
    assert "".join(parts) == text
    assert all(part.endswith("\n") for part in parts[:-1])


def test_missing_file_is_named(tmp_path: Path):
    with pytest.raises(packages.CorpusError, match=r"set\.mm is missing"):
        corpora.metamath_statements(tmp_path)


def test_missing_archive_is_named(tmp_path: Path):
    (tmp_path / "archives").mkdir()
    with pytest.raises(packages.CorpusError, match="metamath-databases_"):
        packages.unpacked_packages(tmp_path / "cache", tmp_path / "archives")


def test_newest_release_is_resolved(monkeypatch: pytest.MonkeyPatch):
    listed = "postgresql-doc-9\npostgresql-doc-15\npostgresql-doc-15-extra\n"
    monkeypatch.setattr(packages.shutil, "which", lambda name: name)
    monkeypatch.setattr(
        packages.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, listed)
    )
    assert packages.resolve("postgresql-doc-*") == "postgresql-doc-15"
    assert packages.resolve("dict-wn") == "dict-wn"


def test_failed_download_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    failed = subprocess.CompletedProcess([], 100, "", "W: hint\nE: no such package\n")
    monkeypatch.setattr(packages.shutil, "which", lambda name: name)
    monkeypatch.setattr(packages.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(packages.CorpusError, match=r"metamath-databases failed \(E: no such"):
        packages.unpacked_packages(tmp_path)


def test_missing_apt_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    with pytest.raises(packages.CorpusError, match="apt-get is not installed") as caught:
        packages.unpacked_packages(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("template", TEMPLATES)
def test_equations_of_the_solutions_are_true(template):
    for seed in range(40):
        _, solution = template(random.Random(seed))
        for clause in re.split(r"[.;,:]| and ", solution):
            sides = clause.split(" = ")
            terms = [re.search(r"\(?\d[\d+*/() -]*$", side.strip()) for side in sides[:-1]]
            terms.append(re.match(r"[\d+*/() -]*\d", sides[-1]))
            values = {value_of(term[0]) for term in terms if term} if len(sides) > 1 else set()
            assert len(values) <= 1, solution


def value_of(term: str) -> Fraction:
    """Value of a term of +, -, *, / and one level of brackets."""
    term = re.sub(r"\(([^()]*)\)", lambda match: str(value_of(match[1])), term)
    total = Fraction(0)
    for sign, product in re.findall(r"(^|[+-])([^+-]+)", term.replace(" ", "")):
        value = Fraction(1)
        for operator, factor in re.findall(r"(^|[*/])(\d+)", product):
            value = value / int(factor) if operator == "/" else value * int(factor)
        total += -value if sign == "-" else value
    return total


def test_sheets_are_reproducible():
    assert problem_sheet(random.Random(4)) == problem_sheet(random.Random(4))
    assert problem_sheet(random.Random(4)).count("Solution.") == 24
