"""The retrieval index: token and vector columns of the active revisions, so that a query reads only what it names.

Kept in the store beside the pool (a row a revision) and in memory as columns, loaded once and extended on every commit. A
query of t terms touches t posting lists and at most t of the 256 vector dimensions, whatever the size of the pool; the result
is exactly that of `methods.sepm.retrieval.rank` over the compatible active revisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from methods.sepm.procedure import Procedure
from methods.sepm.retrieval import K1, ROUNDING, B, Hit, idf, terms, weights
from methods.text.hash256 import slot, tokens

Ints = NDArray[np.int64]
SEPARATOR = "\x1f"
Rows = Callable[[str], Iterable[Any]]  # runs a SELECT
Write = Callable[[str, tuple[Any, ...]], Any]  # runs a statement that changes something


class Growing:
    """An array that grows by doubling."""

    def __init__(self, values: NDArray[Any] | None = None, kind: Any = np.int64) -> None:
        self._values = np.zeros(8, dtype=kind) if values is None else values
        self.size = 0 if values is None else len(values)

    def append(self, value: Any) -> None:
        if self.size == len(self._values):
            self._values = np.concatenate([self._values, np.zeros(max(8, self.size), dtype=self._values.dtype)])
        self._values[self.size] = value
        self.size += 1

    @property
    def values(self) -> NDArray[Any]:
        return self._values[: self.size]


class Columns:
    """Sparse columns: key → (documents, values). What was loaded lies sorted by key in one array, additions beside it."""

    def __init__(self, keys: Ints, docs: Ints, values: Ints) -> None:
        order = np.argsort(keys, kind="stable")
        self._docs, self._values = docs[order], values[order]
        size = int(keys.max()) + 1 if len(keys) else 0
        self._starts = (
            np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=size))]) if size else np.zeros(1, dtype=np.int64)
        )
        self._added: dict[int, tuple[Growing, Growing]] = {}

    def add(self, key: int, doc: int, value: int) -> None:
        docs, values = self._added.setdefault(key, (Growing(), Growing()))
        docs.append(doc)
        values.append(value)

    def read(self, key: int) -> Iterator[tuple[Ints, Ints]]:
        """The parts of a column; a document occurs once in all of them."""
        if 0 <= key < len(self._starts) - 1:
            part = slice(int(self._starts[key]), int(self._starts[key + 1]))
            yield self._docs[part], self._values[part]
        if key in self._added:
            docs, values = self._added[key]
            yield docs.values, values.values


def table(schema: str) -> tuple[str, ...]:
    """The CREATE statements of the index's tables in database `schema`."""
    return (
        f"CREATE TABLE IF NOT EXISTS {schema}.sepm_token (id INTEGER PRIMARY KEY, token TEXT NOT NULL)",
        f"CREATE TABLE IF NOT EXISTS {schema}.sepm_index (doc INTEGER PRIMARY KEY, sop_id TEXT NOT NULL,"
        " version INTEGER NOT NULL, active INTEGER NOT NULL, terms BLOB NOT NULL, dims BLOB NOT NULL,"
        " conditions TEXT NOT NULL, exclusions TEXT NOT NULL)",
    )


class RetrievalIndex:
    """The columns of all revisions that ever were heads; `active` marks those that are."""

    def __init__(self, schema: str = "main") -> None:
        self._schema = schema
        self._clear()

    def _clear(self) -> None:
        none = np.zeros(0, dtype=np.int64)
        self._vocabulary: dict[str, int] = {}
        self._sops: list[str] = []
        self._versions: list[int] = []
        self._doc_of: dict[str, int] = {}  # sop → its active document
        self._active, self._required = Growing(kind=bool), Growing()
        self._lengths, self._norms = Growing(), Growing(kind=np.float64)
        self._terms, self._dims = Columns(none, none, none), Columns(none, none, none)
        self._conditions: dict[str, Growing] = {}
        self._exclusions: dict[str, Growing] = {}

    # --- keeping ------------------------------------------------------------------------------------------------------
    def load(self, rows: Rows) -> None:
        """Read the tables. 100,000 revisions take about a second."""
        self._clear()
        self._vocabulary = {token: number for number, token in rows(f"SELECT id, token FROM {self._schema}.sepm_token")}
        found = list(
            rows(
                f"SELECT sop_id, version, active, terms, dims, conditions, exclusions FROM {self._schema}.sepm_index ORDER BY doc"
            )
        )
        if not found:
            return
        sops, versions, active, term_blobs, dim_blobs, conditions, exclusions = zip(*found, strict=True)
        self._sops, self._versions = list(sops), list(versions)
        self._active = Growing(np.array(active, dtype=bool))
        self._doc_of = {sop: doc for doc, sop in enumerate(sops) if active[doc]}
        self._terms, term_values, term_docs = _unpack(term_blobs)
        self._dims, dim_values, dim_docs = _unpack(dim_blobs)
        self._lengths = Growing(np.bincount(term_docs, weights=term_values, minlength=len(sops)).astype(np.int64))
        squares = np.bincount(dim_docs, weights=dim_values.astype(np.float64) ** 2, minlength=len(sops))
        self._norms = Growing(np.sqrt(squares))
        self._required = Growing()
        for doc, (needed, excluded) in enumerate(zip(conditions, exclusions, strict=True)):
            self._note(doc, _split(needed), _split(excluded))

    def add(self, write: Write, sop_id: str, version: int, procedure: Procedure) -> None:
        """Make this revision the active one of `sop_id`, in the table and in memory."""
        self.deactivate(write, sop_id)
        doc = len(self._sops)
        text = procedure.document()
        counts = sorted((self._token_id(write, term), times) for term, times in Counter(terms(text)).items())
        dims = sorted((dim, value) for dim, value in _hashed(text).items() if value)
        needed = sorted({c.casefold() for c in procedure.conditions})
        excluded = sorted({e.casefold() for e in procedure.exclusions})
        write(
            f"INSERT INTO {self._schema}.sepm_index VALUES (?, ?, ?, 1, ?, ?, ?, ?)",
            (doc, sop_id, version, _pack(counts), _pack(dims), SEPARATOR.join(needed), SEPARATOR.join(excluded)),
        )
        self._sops.append(sop_id)
        self._versions.append(version)
        self._doc_of[sop_id] = doc
        self._active.append(True)
        self._lengths.append(sum(times for _, times in counts))
        self._norms.append(float(np.sqrt(sum(value * value for _, value in dims))))
        for columns, pairs in ((self._terms, counts), (self._dims, dims)):
            for key, value in pairs:
                columns.add(key, doc, value)
        self._note(doc, needed, excluded)

    def deactivate(self, write: Write, sop_id: str) -> None:
        """The active revision of `sop_id`, if there is one, is no longer retrieved."""
        doc = self._doc_of.pop(sop_id, None)
        if doc is not None:
            write(f"UPDATE {self._schema}.sepm_index SET active = 0 WHERE doc = ?", (doc,))
            self._active.values[doc] = False

    def _note(self, doc: int, needed: Sequence[str], excluded: Sequence[str]) -> None:
        self._required.append(len(needed))
        for held, names in ((self._conditions, needed), (self._exclusions, excluded)):
            for name in names:
                held.setdefault(name, Growing()).append(doc)

    def _token_id(self, write: Write, token: str) -> int:
        if token not in self._vocabulary:
            number = self._vocabulary[token] = len(self._vocabulary)
            write(f"INSERT INTO {self._schema}.sepm_token VALUES (?, ?)", (number, token))
        return self._vocabulary[token]

    # --- asking -------------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        """The number of active revisions."""
        return len(self._doc_of)

    def candidates(self, facts: Iterable[str]) -> NDArray[np.bool_]:
        """𝒞(q, F_q) as a mask over the documents."""
        known = sorted({fact.casefold() for fact in facts})
        met = np.zeros(len(self._sops), dtype=np.int64)
        mask: NDArray[np.bool_] = self._active.values.copy()
        for fact in known:
            if fact in self._conditions:
                met[self._conditions[fact].values] += 1
            if fact in self._exclusions:
                mask[self._exclusions[fact].values] = False
        mask &= met == self._required.values
        return mask

    def search(
        self, query: str, facts: Iterable[str], k: int, *, adaptive: bool = True, cue_match: str = "substring"
    ) -> list[Hit]:
        """ℛ(q): the top `k` of equation 3, best first, equal scores by sop_id."""
        mask = self.candidates(facts)
        chosen = np.flatnonzero(mask)
        if not chosen.size:
            return []
        lexical = self._bm25(query, mask)[chosen]
        top = float(lexical.max())
        lexical = lexical / top if top > 0 else lexical
        similarity = (self._cosine(query)[chosen] + 1.0) / 2.0
        share_bm25, share_vector = weights(query, adaptive=adaptive, cue_match=cue_match)
        score = share_bm25 * lexical + share_vector * similarity
        kept = _best(np.round(score, ROUNDING), k)
        hits = [
            Hit(self._sops[chosen[i]], self._versions[chosen[i]], float(score[i]), float(lexical[i]), float(similarity[i]))
            for i in kept
        ]
        return sorted(hits, key=lambda hit: (-round(hit.score, ROUNDING), hit.sop_id))[:k]

    def _bm25(self, query: str, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Raw scores by document; only those inside `mask` mean anything."""
        found = np.zeros(len(self._sops))
        lengths = self._lengths.values
        documents = int(mask.sum())
        average = float(lengths[mask].sum()) / documents
        for term, times in Counter(terms(query)).items():
            parts = list(self._terms.read(self._vocabulary.get(term, -1)))
            containing = sum(int(mask[docs].sum()) for docs, _ in parts)
            if not containing:
                continue
            weight = times * idf(documents, containing)
            for docs, counts in parts:
                found[docs] += weight * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths[docs] / average))
        return found

    def _cosine(self, query: str) -> NDArray[np.float64]:
        found = np.zeros(len(self._sops))
        asked = {dim: value for dim, value in _hashed(query).items() if value}
        for dim, value in asked.items():
            for docs, values in self._dims.read(dim):
                found[docs] += value * values
        norms = self._norms.values * float(np.sqrt(sum(value * value for value in asked.values())))
        cosine: NDArray[np.float64] = np.divide(found, norms, out=np.zeros_like(found), where=norms > 0)
        return np.clip(cosine, -1.0, 1.0)


def _best(scores: NDArray[np.float64], k: int) -> Ints:
    """The places of all scores that are among the `k` best, ties at the edge included."""
    if len(scores) <= k:
        return np.arange(len(scores))
    edge = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= edge)


def _hashed(text: str) -> dict[int, int]:
    """The unnormalised hash vector of a text: dimension → signed count."""
    found: dict[int, int] = {}
    for token in tokens(text):
        dim, sign = slot(token)
        found[dim] = found.get(dim, 0) + sign
    return found


def _pack(pairs: Sequence[tuple[int, int]]) -> bytes:
    return np.array(pairs, dtype="<i4").tobytes()


def _unpack(blobs: Sequence[bytes]) -> tuple[Columns, Ints, Ints]:
    """Columns over the documents 0, 1, …; the values and documents of all entries."""
    sizes = np.array([len(blob) // 8 for blob in blobs])
    pairs = np.frombuffer(b"".join(blobs), dtype="<i4").reshape(-1, 2).astype(np.int64)
    docs = np.repeat(np.arange(len(blobs)), sizes)
    return Columns(pairs[:, 0], docs, pairs[:, 1]), pairs[:, 1], docs


def _split(joined: str) -> list[str]:
    return joined.split(SEPARATOR) if joined else []
