"""FINCH clustering by first neighbours, and the partition with the best silhouette (METHODS.md 3.4). No dependency but NumPy.

The first partition links every point with its nearest neighbour (so points that share one are linked as well) and takes the
connected components; the next does the same with the means of the clusters, until one cluster is left. Distances are cosine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]

FEWEST = 3  # fewer points are one cluster
BLOCK = 512  # rows of the similarity matrix held at once
DIGITS = 9  # ties must not depend on the last bits of a product


def cluster(points: Matrix) -> Labels:
    """A label from 0 on for each row of `points`, shape (n, dimensions); labels in order of first appearance."""
    if len(points) < FEWEST:
        return np.zeros(len(points), dtype=np.int64)
    unit = _normalised(points)
    candidates = [labels for labels in partitions(unit) if labels.max() > 0]
    if not candidates:
        return np.zeros(len(points), dtype=np.int64)
    return max(candidates, key=lambda labels: round(silhouette(unit, labels), DIGITS))  # of equals the finer


def partitions(unit: Matrix) -> list[Labels]:
    """The partitions from the finest to the coarsest."""
    found = [_components(_first_neighbours(unit))]
    while (count := int(found[-1].max()) + 1) > 1:
        means = _normalised(_sums(unit, found[-1], count))
        coarser = _components(_first_neighbours(means))[found[-1]]
        found.append(coarser)
    return found


def silhouette(unit: Matrix, labels: Labels) -> float:
    """The mean silhouette of unit vectors under cosine distance, in [-1, 1]; a point alone in its cluster counts 0.

    The mean distance to a cluster is 1 minus the product with its mean, so n × clusters products are enough.
    """
    count = int(labels.max()) + 1
    sizes = np.bincount(labels, minlength=count)
    total = 0.0
    sums = _sums(unit, labels, count)
    for start in range(0, len(unit), BLOCK):
        rows = slice(start, start + BLOCK)
        products, own = unit[rows] @ sums.T, labels[rows]
        here = np.arange(len(own))
        lengths = np.einsum("ij,ij->i", unit[rows], unit[rows])  # 1, or 0 for a zero vector
        others = np.maximum(sizes[own] - 1, 1)
        inside = 1.0 - (products[here, own] - lengths) / others
        distances = 1.0 - products / sizes
        distances[here, own] = np.inf
        outside = distances.min(axis=1)
        widest = np.maximum(inside, outside)
        score = np.divide(outside - inside, widest, out=np.zeros(len(own)), where=(widest > 0) & (sizes[own] > 1))
        total += float(score.sum())
    return total / len(unit)


def _normalised(points: Matrix) -> Matrix:
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    unit: Matrix = np.divide(points, norms, out=np.zeros_like(points), where=norms > 0)
    return unit


def _sums(unit: Matrix, labels: Labels, count: int) -> Matrix:
    """The sum of each cluster's rows, shape (count, dimensions); every label from 0 to count - 1 occurs."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count))
    sums: Matrix = np.add.reduceat(unit[order], starts, axis=0)
    return sums


def _first_neighbours(unit: Matrix) -> Labels:
    """The nearest other row of each row, the first of equally near ones."""
    nearest = np.zeros(len(unit), dtype=np.int64)
    for start in range(0, len(unit), BLOCK):
        similarity = np.round(unit[start : start + BLOCK] @ unit.T, DIGITS)
        rows = np.arange(len(similarity))
        similarity[rows, start + rows] = -np.inf
        nearest[start : start + len(rows)] = similarity.argmax(axis=1)
    return nearest


def _components(neighbour: Labels) -> Labels:
    """Connected components of the graph with an edge from every point to its neighbour."""
    parent = list(range(len(neighbour)))

    def root(point: int) -> int:
        while parent[point] != point:
            parent[point] = parent[parent[point]]
            point = parent[point]
        return point

    for point, other in enumerate(neighbour):
        a, b = root(point), root(int(other))
        parent[max(a, b)] = min(a, b)
    labels: dict[int, int] = {}
    return np.array([labels.setdefault(root(point), len(labels)) for point in range(len(neighbour))], dtype=np.int64)
