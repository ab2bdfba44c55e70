"""Writes the .pt files of this folder. Made with torch 1.13 and torch_geometric 2.5.3:
    python make.py
"""
import torch
from torch_geometric.data import Data, HeteroData, InMemoryDataset


def graph():
    """Five vertices, six directed edges; values that float32, bfloat16 and half hold exactly."""
    return Data(
        x=torch.tensor([[1.0, 0.5], [0, 2], [-1, 0], [3, 0.25], [0, 1]]),
        edge_index=torch.tensor([[0, 1, 2, 3, 4, 0], [1, 0, 3, 2, 0, 4]]),
        edge_attr=torch.tensor([[0.5], [1], [2], [4], [0.25], [8]]),
        y=torch.tensor([0, 1, 2, 1, -1]),
        train_mask=torch.tensor([1, 1, 0, 0, 0], dtype=torch.bool),
        val_mask=torch.tensor([0, 0, 1, 0, 0], dtype=torch.bool),
        test_mask=torch.tensor([0, 0, 0, 1, 0], dtype=torch.bool),
    )


torch.save(graph(), "data.pt")
torch.save(graph(), "legacy.pt", _use_new_zipfile_serialization=False)
torch.save(graph().to_dict(), "dict.pt")

# (data, slices) as datasets keep it under processed/, in both generations.
torch.save(InMemoryDataset.collate([graph()]), "collated.pt")
InMemoryDataset.save([graph()], "processed.pt")
InMemoryDataset.save([graph(), graph()], "two.pt")

# Multi-label, edge_weight, several splits, other types, and views of larger storages.
g = graph()
del g.edge_attr
g.y = torch.tensor([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1]], dtype=torch.float)
g.edge_weight = torch.arange(12, dtype=torch.float64)[::2]
g.edge_index = g.edge_index.t().contiguous().t()
g.x = torch.cat([g.x, g.x], 1).to(torch.bfloat16)[:, 1:3]
g.train_mask = torch.stack([g.train_mask, g.val_mask], 1)
g.val_mask = torch.stack([g.val_mask, g.train_mask[:, 0]], 1)
g.train_name = "not a mask"
torch.save(g, "multi.pt")

h = HeteroData()
h["paper"].x = torch.ones(2, 2)
h["paper", "cites", "paper"].edge_index = torch.tensor([[0], [1]])
torch.save(h, "hetero.pt")

s = graph()
s.x = s.x.to_sparse()
torch.save(s, "sparse.pt")

torch.save({"weight": torch.ones(2, 2)}, "model.pt")
