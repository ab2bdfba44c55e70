"""Graphs in the user's vertex order: read from a store, or made up with everything
that real edge lists have, and written as a source for `prepare`."""

import json
import os
from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Graph:
    """A directed graph of N vertices; an edge sends from edge_index[0] to [1]."""

    name: str
    x: torch.Tensor  # N x features, dense
    edge_index: torch.Tensor  # 2 x E
    edge_weight: torch.Tensor | None  # E, or None: no edge has a weight
    y: torch.Tensor  # N, -1: no label
    train: torch.Tensor  # vertices
    val: torch.Tensor
    test: torch.Tensor
    classes: int

    def to(self, dtype):
        """The same graph with floating-point arrays of another type."""
        w = None if self.edge_weight is None else self.edge_weight.to(dtype)
        return Graph(self.name, self.x.to(dtype), self.edge_index, w, self.y, self.train, self.val, self.test, self.classes)


def read_store(folder, split=0):
    """The graph of a store (engine/store/FORMAT.md), in the user's vertex order."""
    with open(os.path.join(folder, "meta.json")) as f:
        meta = json.load(f)

    def load(name):
        return np.load(os.path.join(folder, name + ".npy"))

    order = load("order").astype(np.int64)
    n = len(order)
    dst = np.repeat(order, np.diff(load("in_indptr")))
    src = order[load("in_indices")]
    rows = np.zeros((n, meta["features"]), np.float32)
    if meta["feature_kind"] == "csr":
        at = np.repeat(np.arange(n), np.diff(load("features_indptr")))
        exists = os.path.exists(os.path.join(folder, "features_values.npy"))
        rows[at, load("features_indices")] = load("features_values") if exists else 1
    else:
        rows[:] = load("features")[:, : meta["features"]]
    x, y = np.empty_like(rows), np.full(n, -1, np.int64)
    x[order], y[order] = rows, load("labels")
    role = load("splits")[split]
    pick = lambda r: torch.from_numpy(np.sort(order[role == r]))
    weight = torch.from_numpy(load("in_weights")) if meta["weighted"] else None
    return Graph(meta["name"], torch.from_numpy(x), torch.from_numpy(np.stack([src, dst])), weight,
                 torch.from_numpy(y), pick(1), pick(2), pick(3), meta["classes"])


def read_planetoid(folder, name):
    """A Planetoid graph by PyG's own reader, features normalised by PyG."""
    from torch_geometric.io import read_planetoid_data
    from torch_geometric.transforms import NormalizeFeatures

    d = NormalizeFeatures()(read_planetoid_data(folder, name))
    pick = lambda mask: mask.nonzero().flatten()
    return Graph(name, d.x, d.edge_index, None, d.y, pick(d.train_mask), pick(d.val_mask), pick(d.test_mask), int(d.y.max()) + 1)


def made_up(name, seed, n=600, features=24, classes=5, degree=5, isolated=20, sinks=20,
            undirected=False, loops=0, repeats=0, weights=None, zero_weights=0, sparse=False):
    """A random graph with a hub. The last `isolated` vertices have no edge, `sinks`
    of them no in-edge; `loops` vertices have one self-loop each; `repeats` records
    are listed again. weights is None, "ones" (a column of ones) or "random", of which
    `zero_weights` are 0. Sparse features are mostly 0."""
    r = np.random.default_rng(seed)
    live = n - isolated
    records = degree * live // (2 if undirected else 1)
    src, dst = r.integers(0, live, records), r.integers(0, live, records)
    dst[: live // 2] = 0  # the hub
    dst = np.where(dst >= live - sinks, dst - sinks, dst)
    keep = src != dst
    pairs = np.unique(np.stack([src, dst], 1)[keep], axis=0)
    if undirected:
        pairs = np.unique(np.sort(pairs, 1), axis=0)
    w = r.uniform(0.1, 3, len(pairs)).astype(np.float32) if weights == "random" else np.ones(len(pairs), np.float32)
    w[r.permutation(len(w))[:zero_weights]] = 0
    if undirected:
        pairs, w = np.concatenate([pairs, pairs[:, ::-1]]), np.concatenate([w, w])
    if loops:
        at = r.permutation(live)[:loops]
        pairs = np.concatenate([pairs, np.stack([at, at], 1)])
        own = r.uniform(0.1, 3, loops).astype(np.float32) if weights == "random" else np.ones(loops, np.float32)
        w = np.concatenate([w, own])
    if repeats:
        # Only edges between different vertices: PyG keeps one of several self-loops.
        again = r.permutation(len(pairs) - loops)[:repeats]
        again = np.concatenate([again, again[: repeats // 2]])
        pairs, w = np.concatenate([pairs, pairs[again]]), np.concatenate([w, w[again]])
    mixed = r.permutation(len(pairs))
    pairs, w = pairs[mixed], w[mixed]
    x = r.standard_normal((n, features)).astype(np.float32)
    if sparse:
        x *= r.random((n, features)) < 0.1
    y = r.integers(0, classes, n)
    role = r.permutation(n)
    part = lambda lo, hi: torch.from_numpy(np.sort(role[int(lo * n): int(hi * n)]))
    weight = None if weights is None else torch.from_numpy(w)
    return Graph(name, torch.from_numpy(x), torch.from_numpy(pairs.T.copy()), weight, torch.from_numpy(y),
                 part(0, 0.3), part(0.3, 0.6), part(0.6, 1), classes)


def write_source(g, folder, sparse=False):
    """Writes a graph as a folder that `prepare` reads as an edge list."""
    os.makedirs(folder)
    weight = [] if g.edge_weight is None else [g.edge_weight.tolist()]
    with open(os.path.join(folder, "edges.csv"), "w") as f:
        for e in zip(*g.edge_index.tolist(), *weight):
            print(*e, sep=",", file=f)
    x = g.x.numpy()
    if sparse:
        row, col = x.nonzero()
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(x)))])
        np.savez(os.path.join(folder, "features.npz"), format=b"csr", shape=np.array(x.shape), data=x[row, col],
                 indices=col.astype(np.int32), indptr=indptr.astype(np.int32))
    else:
        np.save(os.path.join(folder, "features.npy"), x)
    np.save(os.path.join(folder, "labels.npy"), g.y.numpy())
    split = {"train": g.train.tolist(), "val": g.val.tolist(), "test": g.test.tolist()}
    with open(os.path.join(folder, "splits.json"), "w") as f:
        json.dump({"splits": [split]}, f)


def merged(g):
    """The graph without repeated records, for a source without weights: there a
    neighbour counts once, however often it is listed."""
    if g.edge_weight is not None:
        return g
    pairs = torch.unique(g.edge_index, dim=1)
    return Graph(g.name, g.x, pairs, None, g.y, g.train, g.val, g.test, g.classes)


def unweighted(g):
    """The graph with its weights, all 1, left out: repeated records stay parallel edges."""
    if not bool((g.edge_weight == 1).all()):
        raise ValueError(f"{g.name}: not all weights are 1")
    return Graph(g.name, g.x, g.edge_index, None, g.y, g.train, g.val, g.test, g.classes)
