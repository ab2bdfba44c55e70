#!/usr/bin/env python3
"""Trains a model with the Deep Graph Library (DGL) on the CPU, with the settings of one
of our runs, on the same store, and prints one JSON line with the names of our
summary.json.

  train_dgl.py cora-store RUN/config.yaml [--epochs=100] [--any-setting=value]

The layers are DGL's own, as in its examples: GraphConv, SAGEConv, GATConv, GINConv over
one graph, with self-loops added for GCN and GAT as its examples do."""

import sys
import warnings

warnings.filterwarnings("ignore")

import dgl  # noqa: E402
import torch  # noqa: E402
from dgl import nn as dnn  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import peer  # noqa: E402

# Settings that DGL's plain layers have no counterpart of.
PLAIN = {"residual": False, "norm": "none", "jumping_knowledge": False, "bias": True, "activation": ("relu", "elu")}


class Net(nn.Module):
    """The layers of a config on one graph."""

    def __init__(self, config, features, classes):
        super().__init__()
        c = self.config = config
        self.act = {"relu": F.relu, "elu": F.elu}[c["activation"]]
        self.convs = nn.ModuleList()
        width = features
        for l in range(1, c["layers"] + 1):
            last = l == c["layers"]
            conv, width = self.conv(width, classes if last else c["hidden"], last)
            self.convs.append(conv)

    def conv(self, width, out, last):
        """A layer and the width of its output."""
        c = self.config
        if c["model"] == "gcn":
            return dnn.GraphConv(width, out, norm="both"), out
        if c["model"] == "sage":
            return dnn.SAGEConv(width, out, {"mean": "mean", "max": "pool"}[c["aggregator"]]), out
        if c["model"] == "gin":
            hidden = c["hidden"]
            mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU() if c["activation"] == "relu" else nn.ELU(), nn.Linear(hidden, out))
            return dnn.GINConv(mlp, "sum", learn_eps=True), out
        heads = c["out_heads"] if last else c["heads"]
        return dnn.GATConv(width, out, heads, attn_drop=c["attention_dropout"]), out if last else heads * out

    def forward(self, g, x):
        c = self.config
        h = F.dropout(x, c["input_dropout"], self.training)
        for l, conv in enumerate(self.convs, 1):
            last = l == len(self.convs)
            h = conv(g, h)
            if c["model"] == "gat":
                h = h.mean(1) if last else h.flatten(1)
            if not last:
                h = F.dropout(self.act(h), c["dropout"], self.training)
        return h


def graph(config, g):
    """DGL's graph of g, with the formats that its kernels use made before the first epoch,
    as its trainers do, and 32-bit ids, which halve the traffic of indices."""
    src, dst = g.edge_index
    d = dgl.graph((src.int(), dst.int()), num_nodes=len(g.y))
    if config["model"] in ("gcn", "gat"):
        d = dgl.add_self_loop(dgl.remove_self_loop(d))
    # Attention scores are computed edge by edge, which takes the list of edges besides.
    return d.formats(["coo", "csr", "csc"] if config["model"] == "gat" else ["csr", "csc"])


def main():
    args, config = peer.arguments(__doc__)
    for name, plain in PLAIN.items():
        allowed = plain if isinstance(plain, tuple) else (plain,)
        if config.get(name, allowed[0]) not in allowed:
            sys.exit(f"train_dgl.py: {name.replace('_', '-')}={config[name]}: DGL's layers have {allowed[0]!r} only")
    if config["model"] not in ("gcn", "sage", "gin", "gat"):
        sys.exit(f"train_dgl.py: model {config['model']!r} has no counterpart here: gcn, gat, sage, gin have")
    run = peer.Run("dgl", args, config)
    g = run.graph
    if g.edge_weight is not None:
        sys.exit("train_dgl.py: the graph has edge weights, which DGL's layers do not use as ours do")
    d = graph(config, g)
    g.edge_index = g.edge_index[:, :0]  # d has them
    run.train(lambda: Net(config, g.x.size(1), g.classes), lambda net: net(d, g.x), lambda name: name.startswith("convs.0."))
    run.print(adjacency=", ".join(d.formats()["created"] + d.formats()["not created"]) + ", int32", edges=d.num_edges(), version=f"torch {torch.__version__}, dgl {dgl.__version__}")


if __name__ == "__main__":
    main()
