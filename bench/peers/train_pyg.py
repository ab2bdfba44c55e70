#!/usr/bin/env python3
"""Trains a model with PyTorch Geometric on the CPU, with the settings of one of our
runs, on the same store, and prints one JSON line with the names of our summary.json.

  dorylus-engine prepare cora -o cora-store
  dorylus-engine --data=cora-store --model=gat --out=RUN --json
  train_pyg.py cora-store RUN/config.yaml [--epochs=100] [--any-setting=value]

Adjacency: "csr" (a sparse matrix, PyTorch's own product: PyG's fastest way without
extensions), "edges" (edge_index: gather and scatter), or "auto": csr where the layer
can use it (gcn, and sage and gin without weights), else edges."""

import argparse
import importlib.util
import json
import os
import resource
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch_geometric  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch_geometric.nn.conv.gcn_conv import gcn_norm  # noqa: E402

import graphs  # noqa: E402
from models import Net, read_config, value  # noqa: E402


# Settings that this trainer has only in their plain form.
PLAIN = {"lr_schedule": "constant", "warmup": 0, "clip_norm": 0, "class_weights": "", "metric": "", "target_accuracy": 0,
         "precision": "fp32", "split": "", "split_file": ""}


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


def optimizer(config, net):
    """PyTorch's optimiser of that name, and decay where the settings say."""
    first = {n for n, p in net.named_parameters() if p.dim() > 1 and n.split(".")[0] in ("conv1", "res1")}
    weights = {n for n, p in net.named_parameters() if p.dim() > 1}
    every = {n for n, _ in net.named_parameters()}
    decays = {"first": first, "weights": weights, "all": every}[config["weight_decay_scope"]]
    part = lambda yes: [p for n, p in net.named_parameters() if (n in decays) == yes]
    groups = [{"params": part(True), "weight_decay": config["weight_decay"]}, {"params": part(False), "weight_decay": 0}]
    if config["optimizer"] == "sgd":
        return torch.optim.SGD(groups, lr=config["lr"], momentum=config["momentum"])
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config["optimizer"]](groups, lr=config["lr"])


def train(config, g, adj, seed):
    """Trains once. Returns the summary's numbers about it."""
    torch.manual_seed(seed)
    net = Net(config, g.x.size(1), g.classes, g.edge_weight is not None)
    if config["model"] == "gcn":
        for l in range(1, config["layers"] + 1):
            getattr(net, f"conv{l}").normalize = False  # adjacency has done it
    opt = optimizer(config, net)
    accuracy = lambda out, rows: (out[rows].argmax(1) == g.y[rows]).double().mean().item() if len(rows) else None
    seconds, best, since = [], None, 0
    for epoch in range(1, config["epochs"] + 1):
        start = time.perf_counter()
        net.train()
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(g.x, *adj)[g.train], g.y[g.train])
        loss.backward()
        opt.step()
        seconds.append(time.perf_counter() - start)
        if epoch % config["eval_every"] and epoch != config["epochs"]:
            continue
        net.eval()
        with torch.no_grad():
            out = net(g.x, *adj)
        now = {"best_epoch": epoch, "train_acc": accuracy(out, g.train), "val_acc": accuracy(out, g.val), "test_acc": accuracy(out, g.test)}
        since += 1
        if best is None or now["val_acc"] is None or now["val_acc"] > best["val_acc"]:
            best, since = now, 0
        if config["patience"] and since * config["eval_every"] >= config["patience"]:
            break
    return {"epochs_run": epoch, **best, "loss": loss.item(), "epoch_seconds": statistics.median(seconds)}


def peak_memory():
    """The process's largest resident size in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store")
    p.add_argument("config", help="config.yaml of a run of ours")
    p.add_argument("--adjacency", choices=("auto", "csr", "edges"), default="auto")
    p.add_argument("--threads", type=int, default=0, help="0: one per core")
    args, rest = p.parse_known_args()
    config = read_config(args.config)
    for flag in rest:
        name, _, text = flag.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not flag.startswith("--") or name not in config:
            p.error(f"{flag}: not a setting in {args.config}; write --setting=value")
        config[name] = value(text)
    for name, plain in PLAIN.items():
        if config.get(name, plain) != plain:
            p.error(f"{name.replace('_', '-')}={config[name]}: not supported here, only {plain or 'none'!r}; add --{name.replace('_', '-')}={plain}")
    torch.set_num_threads(args.threads or len(os.sched_getaffinity(0)))
    start = time.perf_counter()
    before = peak_memory()
    g = graphs.read_store(args.store, max(config["split_index"], 0))
    try:
        adj, kind = adjacency(args.adjacency, config, g)
    except ValueError as e:
        p.error(str(e))
    result = train(config, g, adj, config["seed"])
    absent = [m for m in ("torch_sparse", "torch_scatter", "pyg_lib") if not importlib.util.find_spec(m)]
    print(json.dumps({
        "mode": "pyg", "model": config["model"], "dataset": g.name, "seed": config["seed"], "vertices": len(g.y),
        "edges": g.edge_index.size(1), **result, "metric": "accuracy", "total_seconds": time.perf_counter() - start,
        "peak_memory_bytes": peak_memory(), "imports_memory_bytes": before, "threads": torch.get_num_threads(), "adjacency": kind,
        "version": f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}",
        "note": "without " + ", ".join(absent) + ": PyTorch's own kernels" if absent else "",
    }))


if __name__ == "__main__":
    main()
