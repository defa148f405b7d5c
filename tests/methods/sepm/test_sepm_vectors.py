"""The numbers that METHODS.md gives for SEPM's pure functions, to the stated digits."""

from __future__ import annotations

import pytest

from methods.sepm.divergence import PlanView, classify, goal_divergence, plan_divergence
from methods.sepm.promotion import summary_score
from methods.sepm.retrieval import bm25, normalised, rank, weights
from methods.text.hash256 import bounded_similarity, embed, slot

QUERY = "clean a mug and put it in the cabinet"
DOCUMENTS = ["clean mug then place in cabinet", "heat egg then place in microwave", "look at bowl under desklamp"]


@pytest.mark.parametrize(("token", "place"), [("clean", (99, -1)), ("mug", (22, 1)), ("cabinet", (60, 1))])
def test_hash_slots_r11(token: str, place: tuple[int, int]) -> None:
    """SEPM-R11: f is the same everywhere."""
    assert slot(token) == place


def test_bm25_sample_r9_r10() -> None:
    """SEPM-R9, SEPM-R10: raw and normalised BM25, similarity, and their mean; zeros stay zeros."""
    raw = bm25(QUERY, DOCUMENTS)
    assert raw == pytest.approx([3.324490, 0.457883, 0.0], abs=5e-7)
    assert normalised(raw) == pytest.approx([1.0, 0.137730, 0.0], abs=5e-7)
    assert normalised([0.0, 0.0]) == [0.0, 0.0]
    vector = embed(QUERY)
    similar = [bounded_similarity(vector, embed(text)) for text in DOCUMENTS]
    assert similar == pytest.approx([0.772166, 0.568041, 0.5], abs=5e-7)
    hits = rank(QUERY, [(str(i), 1, text) for i, text in enumerate(DOCUMENTS)], 5)
    assert [hit.sop_id for hit in hits] == ["0", "1", "2"]
    assert [hit.score for hit in hits] == pytest.approx([0.886083, 0.352886, 0.25], abs=5e-7)


@pytest.mark.parametrize(
    ("query", "share"),
    [
        ("clean a mug", (0.5, 0.5)),
        ("debug the code", (0.2689, 0.7311)),
        ("the latest news", (0.6900, 0.3100)),
        ("a routine check", (0.6457, 0.3543)),
        ("latest routine", (0.8022, 0.1978)),
        ("implement the latest", (0.4502, 0.5498)),
        ("implement the latest routine", (0.5987, 0.4013)),
    ],
)
def test_seven_weight_vectors_r12(query: str, share: tuple[float, float]) -> None:
    """SEPM-R12 to 1e-4; a list of cues counts once."""
    assert weights(query) == pytest.approx(share, abs=1e-4)
    assert weights(f"{query} {query}") == weights(query)
    assert weights(query, adaptive=False) == (0.5, 0.5)


def test_cues_are_parts_of_words_unless_words_are_asked_for() -> None:
    """AMB-6: `current` is in `concurrent`."""
    assert weights("concurrent writers")[0] > 0.5
    assert weights("concurrent writers", cue_match="word") == (0.5, 0.5)


def views(a: dict[str, str], b: dict[str, str], edges_a: str = "", edges_b: str = "") -> tuple[PlanView, PlanView]:
    def edges(text: str) -> frozenset[tuple[str, str]]:
        return frozenset((pair[0], pair[1]) for pair in text.split())

    return PlanView(a, edges(edges_a)), PlanView(b, edges(edges_b))


@pytest.mark.parametrize(
    ("pair", "value", "fires"),
    [
        (views({"a": "x", "b": "other"}, {"a": "x", "b": "y"}, "ab", "ab"), 1 / 3, False),
        (views({"b": "y"}, {"a": "x", "b": "y"}, "", "ab"), 2 / 3, True),
        (views({"a": "x", "b": "y"}, {"a": "x", "b": "y"}, "ba", "ab"), 0.5, True),
        (views({"a": "x", "l": "z"}, {"a": "x"}), 0.5, True),
        (views({"a": " Take  MUG"}, {"a": "take mug"}), 0.0, False),
        (views({}, {}), 0.0, False),
    ],
)
def test_plan_divergence_r17(pair: tuple[PlanView, PlanView], value: float, fires: bool) -> None:
    """SEPM-R17: the vectors of METHODS.md 4.5."""
    assert plan_divergence(*pair) == pytest.approx(value)
    assert ("plan" in classify(None, plan_divergence(*pair), ()).reasons) is fires


def test_goal_divergence_r15() -> None:
    """SEPM-R15: fires strictly above 0.35; the judge decides (the thresholds of J that METHODS.md 4.5 derives)."""
    assert goal_divergence("clean the mug", "clean the mug", 1.0) == pytest.approx(0.0)
    for goal, assigned, edge in (("alpha", "beta", 0.833), ("clean the mug", "clean the mug", 0.222)):
        assert goal_divergence(goal, assigned, edge - 0.002) > 0.35 > goal_divergence(goal, assigned, edge + 0.002)


def test_thresholds_are_strict_r15_r17_r18() -> None:
    """SEPM-R15, SEPM-R17, SEPM-R18: at the threshold nothing fires; each of the three alone does."""
    assert not classify(0.35, 0.40, ()).triggered
    assert classify(0.3501, 0.0, ()).reasons == ("goal",)
    assert classify(0.0, 0.4001, ()).reasons == ("plan",)
    assert classify(None, None, (("mug", "clean"),)).reasons == ("state",)


def test_unobserved_goal_and_plan_never_trigger_r20() -> None:
    """SEPM-R20."""
    assert not classify(None, None, ()).triggered


@pytest.mark.parametrize(
    ("causal", "qualified", "needed", "risk", "score"),
    [(0.9, 1, 1, 0.0, 0.96), (0.65, 1, 1, 0.49, 0.713), (1.0, 1, 2, 0.0, 0.85)],
)
def test_summary_score_r30(causal: float, qualified: int, needed: int, risk: float, score: float) -> None:
    """SEPM-R30: equation 15."""
    assert summary_score(causal, qualified, needed, risk) == pytest.approx(score)
