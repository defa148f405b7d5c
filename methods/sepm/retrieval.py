"""Ranking of procedures (SEPM paper B.1): the formulas on plain texts. `methods.sepm.index` computes the same from columns."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from methods.text.hash256 import bounded_similarity, embed

K1, B = 1.5, 0.75
ROUNDING = 10  # digits of a score that count: the last bits of a sum depend on its order, and a tie must not

# cues, the logit they raise (BM25 or vector), and by how much; a list counts once (table 3; AMB-4, AMB-5)
CUES: tuple[tuple[tuple[str, ...], str, float], ...] = (
    (("code", "debug", "implement", "coding"), "vector", 1.0),
    (("latest", "current", "real-time"), "bm25", 0.8),
    (("routine", "repeat", "standard"), "bm25", 0.6),
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Hit:
    """A retrieved procedure revision; `score` is s_i of equation 3, its parts are each in [0, 1]."""

    sop_id: str
    version: int
    score: float
    bm25: float
    similarity: float


def terms(text: str) -> list[str]:
    """The lower-cased words of `text` that BM25 counts."""
    return _WORD.findall(text.lower())


def weights(query: str, *, adaptive: bool = True, cue_match: str = "substring") -> tuple[float, float]:
    """(w_b, w_v), summing to 1 (SEPM-R12). Cues are searched in the lower-cased query, as parts of words or as words (AMB-6)."""
    if not adaptive:
        return 0.5, 0.5
    text = query.lower()
    logits = {"bm25": 0.0, "vector": 0.0}
    for cues, target, increment in CUES:
        if any(_contains(text, cue, cue_match) for cue in cues):
            logits[target] += increment
    share = 1.0 / (1.0 + math.exp(logits["vector"] - logits["bm25"]))
    return share, 1.0 - share


def _contains(text: str, cue: str, how: str) -> bool:
    return cue in text if how == "substring" else re.search(rf"\b{re.escape(cue)}\b", text) is not None


def idf(documents: int, containing: int) -> float:
    return math.log(1.0 + (documents - containing + 0.5) / (containing + 0.5))


def bm25(query: str, documents: Sequence[str]) -> list[float]:
    """Raw BM25 scores over `documents` as the candidate set (SEPM-R10)."""
    counts = [Counter(terms(document)) for document in documents]
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / len(lengths) if lengths else 0.0
    found = [0.0] * len(documents)
    for term, times in Counter(terms(query)).items():
        weight = times * idf(len(documents), sum(term in count for count in counts))
        for i, count in enumerate(counts):
            if count[term]:
                found[i] += weight * count[term] * (K1 + 1) / (count[term] + K1 * (1 - B + B * lengths[i] / average))
    return found


def normalised(scores: Sequence[float]) -> list[float]:
    """Divided by the largest; zeros stay zeros."""
    top = max(scores, default=0.0)
    return [score / top for score in scores] if top > 0 else [0.0 for _ in scores]


def compatible(conditions: Iterable[str], exclusions: Iterable[str], facts: Iterable[str]) -> bool:
    """SEPM-R8: conditions ⊆ F_q and exclusions ∩ F_q = ∅, without regard to case."""
    known = {fact.casefold() for fact in facts}
    return {c.casefold() for c in conditions} <= known and not {e.casefold() for e in exclusions} & known


def rank(
    query: str, documents: Sequence[tuple[str, int, str]], k: int, *, adaptive: bool = True, cue_match: str = "substring"
) -> list[Hit]:
    """The plain form of equation 3 over compatible (sop_id, version, text): best first, equal scores by sop_id (SEPM-R9)."""
    share_bm25, share_vector = weights(query, adaptive=adaptive, cue_match=cue_match)
    lexical = normalised(bm25(query, [text for *_, text in documents]))
    vector = embed(query)
    hits = []
    for (sop_id, version, text), score in zip(documents, lexical, strict=True):
        similarity = bounded_similarity(vector, embed(text))
        hits.append(Hit(sop_id, version, share_bm25 * score + share_vector * similarity, score, similarity))
    return sorted(hits, key=lambda hit: (-round(hit.score, ROUNDING), hit.sop_id))[:k]
