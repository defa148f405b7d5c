"""The embedders and the shared vector store."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigError, SetupError
from harness.store.view import RunView
from methods.text import wordllama
from methods.text.embedders import EMBEDDERS, Embedder, Hash256, check_embedder, local_embedder
from methods.text.wordllama import WordLlama
from methods.vectors.store import Growing, VectorStore, top
from tests.support.build import played, scripted
from tests.support.fakes import FakeModels

KEYS = ("clean mug", "heat egg", "cool tomato", "look at bowl", "clean plate")


def store(db: sqlite3.Connection, embedder: str = "hash256", space: str = "tasks") -> VectorStore:
    made = VectorStore(db, Embedder(embedder, FakeModels(lambda call: ""), "memory.test.embed"), space)
    made.open()
    return made


def filled(db: sqlite3.Connection, keys: tuple[str, ...] = KEYS, embedder: str = "hash256") -> VectorStore:
    made = store(db, embedder)
    for number, key in enumerate(keys, 1):
        made.add(number, made.embed(key, "write"))
    return made


class TestEmbedders:
    def test_an_unknown_name_is_an_error_with_the_known_ones(self) -> None:
        with pytest.raises(ValueError, match="there are hash256, wordllama, minilm, litellm"):
            check_embedder("glove")
        with pytest.raises(ConfigError, match="There is no embedder 'glove'"):
            local_embedder("glove")
        assert set(EMBEDDERS) == {"hash256", "wordllama", "minilm", "litellm"}

    def test_wordllama_knows_that_words_mean_alike(self) -> None:
        a, b, c = WordLlama().embed(["wash the mug", "rinse a cup", "heat the potato"])
        assert a @ b > a @ c
        assert np.linalg.norm(a) == pytest.approx(1.0, abs=1e-4)

    def test_wordllama_of_nothing_is_the_zero_vector(self) -> None:
        assert not WordLlama().embed([""]).any() and WordLlama().embed([]).shape == (0, 256)
        assert WordLlama().count(["", "clean a mug"]) >= 3

    def test_a_batch_gives_what_the_texts_give_alone(self) -> None:
        embedder, texts = WordLlama(), ["clean a mug", "x", "a much longer text about heating an egg in the microwave"]
        for one, row in zip(texts, embedder.embed(texts), strict=True):
            assert (embedder.embed([one])[0] == row).all()

    def test_a_missing_package_is_one_clear_setup_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import importlib.util

        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(SetupError, match="needs the package sentence-transformers, which is not installed"):
            local_embedder("minilm")
        with pytest.raises(SetupError, match=r"pip install --no-deps wordllama==0\.4\.0\.post1"):
            local_embedder("wordllama")

    def test_weights_that_cannot_be_read_are_a_setup_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wordllama, "WEIGHTS", "weights/none.safetensors")
        with pytest.raises(SetupError, match="holds no weights that can be read"):
            WordLlama()

    def test_vectors_do_not_depend_on_the_process(self) -> None:
        code = "from methods.text.wordllama import WordLlama; print(WordLlama().embed(['Clean the mug']).tobytes().hex())"
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
        assert len(outputs) == 1

    def test_importing_the_embedders_imports_no_model_library(self) -> None:
        code = "import sys, methods.text.embedders; print([m for m in ('tokenizers', 'wordllama', 'torch', 'litellm') if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": "."}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestStore:
    def test_the_nearest_come_first_and_the_older_of_equals(self) -> None:
        made = filled(sqlite3.connect(":memory:"), ("heat egg", "clean mug", "clean mug"))
        assert [n.id for n in made.nearest(made.embed("clean mug", "retrieve"), 3)] == [2, 3, 1]

    def test_among_restricts_the_ids(self) -> None:
        made = filled(sqlite3.connect(":memory:"))
        query = made.embed("clean mug", "retrieve")
        assert [n.id for n in made.nearest(query, 2, among=np.array([False, True, False, False, True]))] == [5, 2]
        assert made.nearest(query, 2, among=np.zeros(5, dtype=bool)) == []

    def test_similarities_are_those_of_the_ids_asked_for(self) -> None:
        made = filled(sqlite3.connect(":memory:"))
        query = made.embed("clean mug", "retrieve")
        assert made.similarities(query, [5, 1]).tolist() == pytest.approx([0.5, 1.0])
        assert made.all_similarities(query)[[4, 0]].tolist() == made.similarities(query, [5, 1]).tolist()

    def test_ids_ascend(self) -> None:
        made = filled(sqlite3.connect(":memory:"))
        with pytest.raises(ValueError, match="id 5 is not larger than 5"):
            made.add(5, made.embed("x", "write"))

    def test_spaces_do_not_mix(self) -> None:
        db = sqlite3.connect(":memory:")
        filled(db)
        assert len(store(db, space="records")) == 0 and len(store(db)) == len(KEYS)

    @pytest.mark.parametrize("embedder", ["hash256", "wordllama"])
    def test_a_reopened_store_answers_as_the_one_that_wrote(self, embedder: str) -> None:
        db = sqlite3.connect(":memory:")
        made = filled(db, KEYS * 9, embedder)
        again = store(db, embedder)
        query = made.embed("clean the bowl", "retrieve")
        assert again.nearest(query, 20) == made.nearest(query, 20)
        assert (again.matrix() == made.matrix()).all() and (again.vector(3) == made.vector(3)).all()

    @given(st.lists(st.sampled_from(KEYS), min_size=1, max_size=40), st.sampled_from(KEYS))
    def test_it_finds_what_a_plain_search_finds(self, keys: list[str], query: str) -> None:
        made = filled(sqlite3.connect(":memory:"), tuple(keys))
        vector = made.embed(query, "retrieve")
        plain = sorted((-round(float(Hash256().embed([key])[0] @ vector), 9), number) for number, key in enumerate(keys, 1))
        assert [n.id for n in made.nearest(vector, 7)] == [number for _, number in plain[:7]]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 9))
def test_the_top_values_are_those_of_a_full_sort(values: list[int], limit: int) -> None:
    plain = sorted(range(len(values)), key=lambda place: (-values[place], place))[:limit]
    assert top(np.array(values, dtype=float), limit).tolist() == plain


def test_a_growing_array_keeps_its_values() -> None:
    growing = Growing(bool, [True])
    for place in range(40):
        growing.append(place % 2)
    assert growing.array.tolist() == [True, *[bool(place % 2) for place in range(40)]]


class TestLedger:
    """The embedder's calls are rows of the kind `embedding`, outside the headline."""

    @pytest.mark.parametrize("embedder", ["hash256", "wordllama", "litellm"])
    def test_calls_are_rows_that_the_headline_leaves_out(self, embedder: str, tmp_path: Path) -> None:
        view = RunView(played(tmp_path, method={"name": "metagpt", "embedder": embedder}))
        rows = {row.group: row for row in view.usage("kind", "key", "phase", "model")}
        model = "scripted/oracle" if embedder == "litellm" else embedder
        assert rows[("embedding", "embed", "retrieve", model)].calls == 6
        assert rows[("embedding", "embed", "write", model)].calls == 6
        assert rows[("embedding", "embed", "write", model)].input_tokens > 0
        assert view.usage(method_only=True)[0].calls == view.usage("kind")[0].calls
        assert view.usage()[0].cost_usd == 0.0

    def test_local_embedders_count_against_no_limit(self, tmp_path: Path) -> None:
        """2 model calls and 2 embeddings a task: a limit of 2 calls is kept, and a resumed stream has spent the same."""
        limits = {"limits": {"task": {"calls": 2}, "stream": {"calls": 12}}}
        view = RunView(played(tmp_path, method={"name": "metagpt"}, run=limits))
        assert view.status == "finished" and all(row.success for row in view.tasks())
        assert sum(attempt["calls"] for attempt in view.attempts()) == 12

    def test_the_embedder_is_part_of_the_identity(self, tmp_path: Path) -> None:
        views = [
            RunView(played(tmp_path / name, method={"name": "metagpt", "embedder": name})) for name in ("hash256", "wordllama")
        ]
        assert views[0].manifest["identity"] != views[1].manifest["identity"]

    def test_a_model_set_without_embeddings_says_so(self, tmp_path: Path) -> None:
        models = scripted()
        models["endpoints"]["main"] = {"backend": "litellm", "model": "openai/none", "api_base": "http://endpoint.invalid/v1"}
        with pytest.raises(ConfigError, match=r"no endpoint for embeddings.*models\.keys\.embed"):
            played(tmp_path, method={"name": "metagpt", "embedder": "litellm"}, models=models)
