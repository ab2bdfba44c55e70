"""Our models, built from PyG's layers: parameters have the names and shapes of
RUN/ckpt/*/weights.safetensors.

Without edge weights every layer is PyG's own class, untouched. With weights GCN is
still PyG's; the other layers, for which PyG has no weights, are made weighted here:
a weight acts like that many parallel edges."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.typing import OptPairTensor
from torch_geometric.utils import scatter, softmax

ACTIVATIONS = {"relu": nn.ReLU, "elu": nn.ELU, "tanh": nn.Tanh, "identity": nn.Identity, "leaky-relu": nn.LeakyReLU}


class WeightedSAGE(SAGEConv):
    """SAGEConv over weighted edges: the weighted mean, or the maximum over edges of
    positive weight."""

    def __init__(self, *args, aggr="mean", **kwargs):
        super().__init__(*args, aggr="sum" if aggr == "mean" else aggr, **kwargs)
        self.mean = aggr == "mean"

    def forward(self, x, edge_index, edge_weight):
        # propagate_type: (x: OptPairTensor, edge_weight: Tensor)
        if self.mean:
            out = self.propagate(edge_index, x=(x, x), edge_weight=edge_weight)
            total = scatter(edge_weight, edge_index[1], 0, x.size(0), reduce="sum")
            out = out / torch.where(total == 0, 1, total).unsqueeze(1)
        else:
            there = edge_weight > 0
            out = self.propagate(edge_index[:, there], x=(x, x), edge_weight=torch.ones_like(edge_weight[there]))
        return self.lin_l(out) + self.lin_r(x)

    def message(self, x_j: Tensor, edge_weight: Tensor):
        return x_j * edge_weight.unsqueeze(1)


class WeightedGIN(GINConv):
    """GINConv whose sum is weighted by the edges."""

    def forward(self, x, edge_index, edge_weight):
        # propagate_type: (x: OptPairTensor, edge_weight: Tensor)
        out = self.propagate(edge_index, x=(x, x), edge_weight=edge_weight)
        return self.nn(out + (1 + self.eps) * x)

    def message(self, x_j: Tensor, edge_weight: Tensor):
        return x_j * edge_weight.unsqueeze(1)


class WeightedGAT(GATConv):
    """GATConv whose edges have weights: the logarithm of the weight is added to the
    attention's logit. A self-loop of weight 1 is added where none exists."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, add_self_loops=False, **kwargs)

    def forward(self, x, edge_index, edge_weight):
        looped = torch.zeros(x.size(0), dtype=torch.bool)
        looped[edge_index[0][edge_index[0] == edge_index[1]]] = True
        add = (~looped).nonzero().flatten()
        edge_index = torch.cat([edge_index, torch.stack([add, add])], 1)
        return super().forward(x, edge_index, edge_attr=torch.cat([edge_weight, edge_weight.new_ones(len(add))]))

    def edge_update(self, alpha_j, alpha_i, edge_attr, index, ptr, dim_size):
        alpha = F.leaky_relu(alpha_j + alpha_i, self.negative_slope) + edge_attr.log().unsqueeze(1)
        alpha = softmax(alpha, index, ptr, dim_size)
        return F.dropout(alpha, p=self.dropout, training=self.training)


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm1d whose statistics in training are those of some rows only."""

    def forward(self, x, seen):
        if not self.training:
            return super().forward(x)
        F.batch_norm(x[seen], self.running_mean, self.running_var, training=True, momentum=self.momentum)
        var, mean = torch.var_mean(x[seen], 0, correction=0)
        return (x - mean) / (var + self.eps).sqrt() * self.weight + self.bias


class Bias(nn.Module):
    """A vector."""

    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))


class Net(nn.Module):
    """The model of a config (config.read) for a graph's features, classes and weights.
    `train_rows` are the vertices that the loss is taken over: batch normalisation sees
    those alone that it can reach."""

    train_rows = None

    def __init__(self, config, features, classes, weighted, cached=False):
        super().__init__()
        c = self.config = config
        self.weighted, self.layers = weighted, c["layers"]
        self.act = ACTIVATIONS[c["activation"]]()
        width = features
        for l in range(1, self.layers + 1):
            last = l == self.layers and not c["jumping_knowledge"]
            out = classes if last else c["hidden"]
            conv, made = self.conv(width, out, last, cached)
            setattr(self, f"conv{l}", conv)
            if not last and c["residual"] and (l == 1 or width != made):
                setattr(self, f"res{l}", nn.Linear(width, made, bias=False))
            if not last and c["norm"] == "layer":
                setattr(self, f"norm{l}", nn.LayerNorm(made))
            if not last and c["norm"] == "batch":
                setattr(self, f"norm{l}", BatchNorm(made))
            if c["jumping_knowledge"]:
                setattr(self, f"jump{l}", nn.Linear(made, classes, bias=False))
            width = made
        if c["jumping_knowledge"] and c["bias"]:
            self.jump = Bias(classes)

    def conv(self, width, out, last, cached):
        """A layer and the width of its output."""
        c, bias = self.config, self.config["bias"]
        if c["model"] == "gcn":
            return GCNConv(width, out, bias=bias, cached=cached), out
        if c["model"] == "sage":
            kind = WeightedSAGE if self.weighted else SAGEConv
            return kind(width, out, aggr=c["aggregator"], bias=bias), out
        if c["model"] == "gin":
            hidden = c["hidden"]
            mlp = nn.Sequential(nn.Linear(width, hidden, bias), ACTIVATIONS[c["activation"]](), nn.Linear(hidden, out, bias))
            return (WeightedGIN if self.weighted else GINConv)(mlp, train_eps=True), out
        if c["model"] == "gat":
            kind = WeightedGAT if self.weighted else GATConv
            heads = c["out_heads"] if last else c["heads"]
            conv = kind(width, out, heads=heads, concat=not last, dropout=c["attention_dropout"], bias=bias)
            return conv, out if last else heads * out
        raise ValueError(f"model {c['model']!r} has no counterpart here: gcn, gat, sage, gin have")

    def forward(self, x, edge_index, edge_weight=None):
        c = self.config
        edges = (edge_index,) if edge_weight is None else (edge_index, edge_weight)
        h = F.dropout(x, c["input_dropout"], self.training)
        jumped = 0
        for l in range(1, self.layers + 1):
            y = getattr(self, f"conv{l}")(h, *edges)
            if l == self.layers and not c["jumping_knowledge"]:
                return y
            if c["residual"]:
                res = getattr(self, f"res{l}", None)
                y = y + (h if res is None else res(h))
            if c["norm"] == "layer":
                y = getattr(self, f"norm{l}")(y)
            if c["norm"] == "batch":
                y = getattr(self, f"norm{l}")(y, self.seen(len(x), edge_index, l))
            h = F.dropout(self.act(y), c["dropout"], self.training)
            if c["jumping_knowledge"]:
                jumped = jumped + getattr(self, f"jump{l}")(h)
        return jumped + self.jump.bias if c["bias"] else jumped

    def seen(self, n, edge_index, layer):
        """The rows of a layer's output that the loss can reach."""
        rows = torch.zeros(n, dtype=torch.bool)
        if self.train_rows is None:
            return ~rows
        rows[self.train_rows] = True
        for _ in range(self.layers - layer):
            rows = rows.clone().index_fill_(0, edge_index[0][rows[edge_index[1]]], True)
        return rows
