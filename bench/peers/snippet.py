# Loads a trained GCN into PyG: snippet.py RUN STORE prints a class per vertex.
import glob, sys, numpy as np, torch
from safetensors.torch import load_file
from torch_geometric.nn import GCNConv

run, store = sys.argv[1:]
w = load_file(sorted(glob.glob(f"{run}/ckpt/epoch-*"))[-1] + "/best.safetensors")
load = lambda name: torch.from_numpy(np.load(f"{store}/{name}.npy")).long()
order, ptr = load("order"), load("in_indptr")
edges = torch.stack([load("in_indices"), torch.arange(len(order)).repeat_interleave(ptr.diff())])
x = torch.sparse_csr_tensor(load("features_indptr"), load("features_indices"), torch.from_numpy(np.load(f"{store}/features_values.npy"))).to_dense()
conv1, conv2 = GCNConv(x.shape[1], 16), GCNConv(16, 7)
torch.nn.ModuleDict({"conv1": conv1, "conv2": conv2}).load_state_dict(w)
classes = conv2(conv1(x, edges).relu(), edges).argmax(1)  # by row of the store
print(*classes[order.argsort()].tolist())  # in the user's order
