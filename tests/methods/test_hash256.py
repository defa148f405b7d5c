"""hash256 against the vectors of METHODS.md 1.6 and its invariants (SEPM-R11)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.text.hash256 import bounded_similarity, cosine, embed, slot, tokens


@pytest.mark.parametrize(("token", "expected"), [("clean", (99, -1)), ("mug", (22, 1)), ("cabinet", (60, 1))])
def test_slots_equal_the_verified_vectors(token: str, expected: tuple[int, int]) -> None:
    assert slot(token) == expected


def test_similarities_equal_the_verified_vectors() -> None:
    """METHODS.md 12.1: the three documents of the BM25 sample."""
    query = embed("clean a mug and put it in the cabinet")
    documents = ("clean mug then place in cabinet", "heat egg then place in microwave", "look at bowl under desklamp")
    found = [bounded_similarity(query, embed(text)) for text in documents]
    assert found == pytest.approx([0.772166, 0.568041, 0.5], abs=5e-7)


def test_han_characters_are_tokens_of_their_own() -> None:
    assert tokens("Clean 杯子 now_2") == ["clean", "杯", "子", "now_2"]


def test_a_text_without_tokens_is_the_zero_vector_and_similar_to_nothing() -> None:
    assert not embed(" .,! ").any()
    assert cosine(embed(""), embed("mug")) == 0.0
    assert bounded_similarity(embed(""), embed("mug")) == 0.5


@given(st.text(), st.text())
def test_vectors_are_normalised_and_similarity_is_symmetric_and_bounded(a: str, b: str) -> None:
    va, vb = embed(a), embed(b)
    assert not va.any() or np.isclose(np.linalg.norm(va), 1.0)
    assert 0.0 <= bounded_similarity(va, vb) <= 1.0
    assert bounded_similarity(va, vb) == bounded_similarity(vb, va)


def test_vectors_do_not_depend_on_the_process() -> None:
    code = "from methods.text.hash256 import embed; print(embed('Clean the mug').tobytes().hex())"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {embed("Clean the mug").tobytes().hex() + "\n"}
