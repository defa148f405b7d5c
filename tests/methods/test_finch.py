"""FINCH: small cases, the silhouette against its definition, and invariants (METHODS.md 3.4)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.gmemory.finch import Matrix, cluster, partitions, silhouette


def angles(*degrees: float) -> Matrix:
    """Unit vectors in the plane."""
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def plain_silhouette(unit: Matrix, labels: list[int]) -> float:
    distance, scores = 1.0 - unit @ unit.T, []
    for i, own in enumerate(labels):
        others = [j for j, label in enumerate(labels) if label == own and j != i]
        if not others:
            scores.append(0.0)
            continue
        inside = distance[i, others].mean()
        outside = min(
            distance[i, [j for j, label in enumerate(labels) if label == other]].mean() for other in set(labels) - {own}
        )
        scores.append((outside - inside) / max(inside, outside) if max(inside, outside) > 0 else 0.0)
    return float(np.mean(scores))


@pytest.mark.parametrize(("points", "labels"), [((), []), ((0,), [0]), ((0, 90), [0, 0])])
def test_fewer_than_three_points_are_one_cluster(points: tuple[float, ...], labels: list[int]) -> None:
    assert cluster(angles(*points)).tolist() == labels


def test_three_points_whose_neighbours_chain_are_one_cluster() -> None:
    assert cluster(angles(0, 10, 25)).tolist() == [0, 0, 0]


def test_two_tight_groups_are_two_clusters() -> None:
    assert cluster(angles(0, 90, 2, 92, 1)).tolist() == [0, 1, 0, 1, 0]


def test_pairs_of_pairs_are_joined_on_the_second_level() -> None:
    """First neighbours make four pairs; their means make two; the pairs' silhouette is the better one."""
    points = angles(0, 1, 20, 21, 180, 181, 200, 201)
    found = [labels.tolist() for labels in partitions(points)]
    assert found == [[0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1], [0] * 8]
    assert cluster(points).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_coarser_partition_wins_where_it_separates_better() -> None:
    points = angles(0, 1, 2.5, 3.5, 180, 181, 182.5, 183.5)
    assert cluster(points).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_equal_points_and_zero_vectors_end() -> None:
    assert cluster(np.ones((7, 3))).tolist() == [0] * 7
    assert set(cluster(np.zeros((5, 3))).tolist()) == {0}


@given(st.lists(st.floats(0, 359), min_size=4, max_size=30, unique=True), st.integers(2, 4))
def test_the_silhouette_equals_its_definition(degrees: list[float], count: int) -> None:
    points = angles(*degrees)
    labels = [place % count for place in range(len(degrees))]
    assert silhouette(points, np.array(labels)) == pytest.approx(plain_silhouette(points, labels), abs=1e-6)


@settings(max_examples=50)
@given(st.lists(st.floats(0, 359), min_size=3, max_size=40))
def test_labels_are_dense_and_every_level_joins_clusters_of_the_one_before(degrees: list[float]) -> None:
    levels = partitions(angles(*degrees))
    for finer, coarser in pairwise(levels):
        assert coarser.max() < finer.max()
        assert len(set(zip(finer.tolist(), coarser.tolist(), strict=True))) == finer.max() + 1
    labels = cluster(angles(*degrees))
    assert sorted(set(labels.tolist())) == list(range(labels.max() + 1)) and labels[0] == 0
