#!/usr/bin/env python3
"""Trains a model with PyTorch Geometric on the CPU, with the settings of one of our
runs, on the same store, and prints one JSON line with the names of our summary.json.

  dorylus-engine prepare cora -o cora-store
  dorylus-engine --data=cora-store --model=gat --out=RUN --json
  train_pyg.py cora-store RUN/config.yaml [--epochs=100] [--any-setting=value]

Adjacency: "csr" (a sparse matrix, PyTorch's own product: PyG's fastest way without
extensions), "edges" (edge_index: gather and scatter), or "auto": csr where the layer
can use it (gcn, and sage and gin without weights), else edges."""

import importlib.util
import warnings

warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch_geometric  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch_geometric.nn.conv.gcn_conv import gcn_norm  # noqa: E402

import peer  # noqa: E402
from models import Net  # noqa: E402


def adjacency(kind, config, g):
    """What the layers get as edges, and the name of its kind. For GCN the
    normalisation is computed here, once, as our engine does."""
    model, weighted = config["model"], g.edge_weight is not None
    can = model == "gcn" or model in ("sage", "gin") and not weighted
    if kind == "auto":
        kind = "csr" if can else "edges"
    if kind == "csr" and not can:
        raise ValueError(f"--adjacency=csr: PyG has no sparse product for {model}{' with weights' if weighted else ''}; use edges")
    edges, w = g.edge_index, g.edge_weight
    if model == "gcn":
        edges, w = gcn_norm(edges, w, len(g.y))
    if kind == "edges":
        return (edges,) if w is None else (edges, w), kind
    # Row of the destination; columns must ascend within it.
    order = (edges[1] * len(g.y) + edges[0]).argsort()
    src, dst = edges[:, order]
    ptr = F.pad(torch.bincount(dst, minlength=len(g.y)).cumsum(0), (1, 0))
    values = torch.ones(len(src)) if w is None else w[order]
    return (torch.sparse_csr_tensor(ptr, src, values, (len(g.y), len(g.y))),), kind


def network(config, g):
    """The model, whose adjacency is normalised already."""
    net = Net(config, g.x.size(1), g.classes, g.edge_weight is not None)
    if config["model"] == "gcn":
        for l in range(1, config["layers"] + 1):
            getattr(net, f"conv{l}").normalize = False
    return net


def main():
    args, config = peer.arguments(__doc__, lambda p: p.add_argument("--adjacency", choices=("auto", "csr", "edges"), default="auto"))
    run = peer.Run("pyg", args, config)
    g = run.graph
    try:
        adj, kind = adjacency(args.adjacency, config, g)
    except ValueError as e:
        raise SystemExit(f"train_pyg.py: {e}") from None
    run.train(lambda: network(config, g), lambda net: net(g.x, *adj), lambda name: name.split(".")[0] in ("conv1", "res1"))
    absent = [m for m in ("torch_sparse", "torch_scatter", "pyg_lib") if not importlib.util.find_spec(m)]
    run.print(adjacency=kind, version=f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}",
              note="without " + ", ".join(absent) + ": PyTorch's own kernels" if absent else "")


if __name__ == "__main__":
    main()
