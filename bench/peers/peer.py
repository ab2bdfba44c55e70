"""What trainers in other libraries share: settings and data of one of our runs, the loop
over epochs as ours is timed, and a line of JSON with the names of summary.json."""

import argparse
import json
import os
import resource
import statistics
import sys
import time

import torch
from torch.nn import functional as F

import config as settings
import graphs

# Settings that these trainers have only in their plain form.
PLAIN = {"lr_schedule": "constant", "warmup": 0, "clip_norm": 0, "class_weights": "", "metric": "", "target_accuracy": 0,
         "precision": "fp32", "split": "", "split_file": ""}


def arguments(doc, add=lambda parser: None):
    """The command line: STORE, RUN/config.yaml, --threads, what add adds, and any setting of
    the config. Returns the arguments and the config."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store")
    p.add_argument("config", help="config.yaml of a run of ours")
    p.add_argument("--threads", type=int, default=0, help="0: one per core")
    add(p)
    args, rest = p.parse_known_args()
    config = settings.read(args.config)
    for flag in rest:
        name, _, text = flag.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not flag.startswith("--") or name not in config:
            p.error(f"{flag}: not a setting in {args.config}; write --setting=value")
        config[name] = settings.value(text)
    for name, plain in PLAIN.items():
        if config.get(name, plain) != plain:
            p.error(f"{name.replace('_', '-')}={config[name]}: not supported here, only {plain or 'none'!r}; add --{name.replace('_', '-')}={plain}")
    torch.set_num_threads(args.threads or len(os.sched_getaffinity(0)))
    return args, config


def peak_memory():
    """The process's largest resident size in bytes, since forget_peak or the start."""
    try:
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak():
    """Lets peak_memory count from here on, where the system can (Linux)."""
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass


def optimizer(config, net, first):
    """PyTorch's optimiser of that name, and decay where the settings say; first tells the
    weights of the first layer by their names."""
    weights = {n for n, p in net.named_parameters() if p.dim() > 1}
    every = {n for n, _ in net.named_parameters()}
    decays = {"first": {n for n in weights if first(n)}, "weights": weights, "all": every}[config["weight_decay_scope"]]
    part = lambda yes: [p for n, p in net.named_parameters() if (n in decays) == yes]
    groups = [{"params": part(True), "weight_decay": config["weight_decay"]}, {"params": part(False), "weight_decay": 0}]
    if config["optimizer"] == "sgd":
        return torch.optim.SGD(groups, lr=config["lr"], momentum=config["momentum"])
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config["optimizer"]](groups, lr=config["lr"])


class Run:
    """One training; the graph is read when it is made."""

    def __init__(self, mode, args, config):
        self.mode, self.config = mode, config
        self.start = time.perf_counter()
        self.imports = peak_memory()
        self.graph = graphs.read_store(args.store, max(config["split_index"], 0))

    def train(self, make, forward, first):
        """Trains make() by forward(net), the logits of all vertices."""
        config, g = self.config, self.graph
        torch.manual_seed(config["seed"])
        net = make()
        opt = optimizer(config, net, first)
        accuracy = lambda out, rows: (out[rows].argmax(1) == g.y[rows]).double().mean().item() if len(rows) else None
        self.before = peak_memory()
        forget_peak()
        loop = time.perf_counter()
        seconds, best, since = [], None, 0
        for epoch in range(1, config["epochs"] + 1):
            start = time.perf_counter()
            net.train()
            opt.zero_grad(set_to_none=True)
            loss = F.cross_entropy(forward(net)[g.train], g.y[g.train])
            loss.backward()
            opt.step()
            seconds.append(time.perf_counter() - start)
            if epoch % config["eval_every"] and epoch != config["epochs"]:
                continue
            net.eval()
            with torch.no_grad():
                out = forward(net)
            now = {"best_epoch": epoch, "train_acc": accuracy(out, g.train), "val_acc": accuracy(out, g.val), "test_acc": accuracy(out, g.test)}
            since += 1
            if best is None or now["val_acc"] is None or now["val_acc"] > best["val_acc"]:
                best, since = now, 0
            if config["patience"] and since * config["eval_every"] >= config["patience"]:
                break
        self.result = {"epochs_run": epoch, **best, "loss": loss.item(), "epoch_seconds": statistics.median(seconds),
                       "first_epoch_seconds": seconds[0], "loop_seconds": time.perf_counter() - loop}

    def print(self, **more):
        g, training = self.graph, peak_memory()
        print(json.dumps({
            "mode": self.mode, "model": self.config["model"], "dataset": g.name, "seed": self.config["seed"], "vertices": len(g.y),
            "edges": g.edge_index.size(1), **self.result, "metric": "accuracy", "total_seconds": time.perf_counter() - self.start,
            "peak_memory_bytes": max(self.before, training), "training_peak_memory_bytes": training,
            "imports_memory_bytes": self.imports, "threads": torch.get_num_threads(), **more,
        }))
