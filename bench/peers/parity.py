#!/usr/bin/env python3
"""Holds our models to PyTorch Geometric: same weights, same graph.

For each graph, model and depth it compares

  loss     of the initial weights, relative (tolerance 1e-4)
  grad     of the first step, per tensor max|ours-PyG| / max|PyG| (1e-3); ours is what
           the first step leaves in SGD's momentum
  logits   after some epochs of training with dropout, for all vertices, centred per
           vertex (softmax loses the constant): max|ours-PyG| / max|PyG| (1e-4)

PyG computes in float64; "PyG32" is how far PyG's own float32 is from that. Gradients
that nearly cancel, such as those of biases and of attention, have larger errors in both.
Exits with 1 if anything is out of tolerance."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_geometric  # noqa: E402

import graphs  # noqa: E402
from engine import Engine, tensors  # noqa: E402
import config as settings
from models import Net  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LOSS, GRAD, LOGITS = 1e-4, 1e-3, 1e-4

MODELS = {
    "gcn": ["--model=gcn", "--hidden=16"],
    "gat 8x8+1": ["--model=gat", "--hidden=8", "--heads=8", "--out-heads=1"],
    "gat 4x8+3": ["--model=gat", "--hidden=8", "--heads=4", "--out-heads=3"],
    "sage mean": ["--model=sage", "--hidden=16"],
    "sage max": ["--model=sage", "--hidden=16", "--aggregator=max"],
    "gin": ["--model=gin", "--hidden=16"],
}

# One step that moves no weight, and leaves the gradient behind as the momentum. (The
# difference of the weights before and after a long step has it too, but without the
# last digits, and small gradients, such as those of attention, have no others.)
ONE_STEP = ["--epochs=1", "--optimizer=sgd", "--momentum=0.9", "--lr=1e-30", "--weight-decay=0", "--dropout=0", "--attention-dropout=0"]
# Where a ReLU's input is so near to 0, relative to the largest, that rounding decides its
# sign, gradients may differ by rights: if they do, the next seed's weights are tried.
KINK, SEEDS = 1e-6, 4
# Float64 gradients this much smaller than the model's largest one are 0 but for rounding.
ZERO = 1e-9

# Each graph: how it is made, and what PyG gets instead of the store.
GRAPHS = {
    "undirected": dict(seed=1, undirected=True, loops=30),
    "directed": dict(seed=2),
    "repeats+loops": dict(seed=3, loops=40, repeats=200),
    "parallel edges": dict(seed=4, loops=40, repeats=200, weights="ones"),
    "weighted": dict(seed=5, loops=40, repeats=200, weights="random"),
    "weighted, undirected": dict(seed=6, loops=40, undirected=True, weights="random", zero_weights=0),
    "weights of 0": dict(seed=7, loops=40, weights="random", zero_weights=60),
    "sparse features": dict(seed=8, loops=40, weights="random", sparse=True, features=200),
}


class Case:
    """One model on one graph, the engine on `data`, PyG on `graph`."""

    def __init__(self, engine, folder, data, graph, flags):
        self.engine, self.folder, self.data, self.graph, self.flags = engine, folder, data, graph, flags

    def run(self, name, *flags):
        path = os.path.join(self.folder, name)
        shutil.rmtree(path, ignore_errors=True)
        return path, self.engine.train(self.data, path, *self.flags, *flags)

    def net(self, run, dtype, state):
        g = self.graph
        net = Net(settings.read(os.path.join(run, "config.yaml")), g.x.size(1), g.classes, g.edge_weight is not None)
        net.load_state_dict(state)  # strict: all names and shapes must fit
        net.train_rows = g.train
        return net.to(dtype), g.to(dtype)

    def gradients(self, input_dropout):
        """What Table.row shows of the first step."""
        for seed in range(SEEDS):
            run, summary = self.run("step", *ONE_STEP, f"--input-dropout={input_dropout}", f"--seed={seed}")
            state, moments = tensors(run), tensors(run, "optimizer")
            loss, want, margin = self.step(run, torch.float64, state)
            largest = max(g.abs().max().item() for g in want.values())
            errors = {name: error(moments[name + ".momentum_buffer"].double(), g, largest) for name, g in want.items()}
            worst = max(errors, key=lambda name: errors[name] if errors[name] == errors[name] else float("inf"))
            if errors[worst] <= GRAD or margin > KINK:
                break
        _, want32, _ = self.step(run, torch.float32, state)
        return {
            "loss": abs(summary["loss"] / loss - 1), "grad": errors[worst], "worst": worst,
            "grad32": max(error(want32[name], g, largest) for name, g in want.items()), "seed": seed,
        }

    def step(self, run, dtype, state):
        """PyG's loss, gradients, and how near an activation's input came to the kink at
        0, relative to the largest."""
        net, g = self.net(run, dtype, state)
        margin = [1.0]

        def watch(_, args):
            size = args[0].detach().abs()
            if size.max() > 0:
                margin.append((size[size > 0].min() / size.max()).item())

        for m in net.modules():
            if isinstance(m, torch.nn.ReLU):
                m.register_forward_pre_hook(watch)
        net.train()  # all dropout rates but this one are 0
        net.config["input_dropout"] = 0
        loss = torch.nn.functional.cross_entropy(net(g.x, g.edge_index, g.edge_weight)[g.train], g.y[g.train])
        loss.backward()
        return loss.item(), {name: p.grad.double() for name, p in net.named_parameters()}, min(margin)

    def logits(self, epochs):
        """What Table.row shows of a trained model."""
        run, _ = self.run("trained", f"--epochs={epochs}")
        ours = torch.from_numpy(self.engine.log_probabilities(run))
        state = tensors(run)
        out = {}
        for dtype in (torch.float64, torch.float32):
            net, g = self.net(run, dtype, state)
            with torch.no_grad():
                out[dtype] = net.eval()(g.x, g.edge_index, g.edge_weight).double()
        want = out[torch.float64]
        # The logarithm of a probability below float32's normal numbers has lost digits.
        seen = (ours > float(np.log(np.finfo(np.float32).tiny))).all(1)
        if seen.sum() < len(seen) / 2:
            raise RuntimeError(f"{self.data} {self.flags}: most probabilities are too small to compare; train for fewer epochs")
        centred = lambda t: (t - t.mean(1, keepdim=True))[seen]
        return {"logits": error(centred(ours), centred(want)), "logits32": error(centred(out[torch.float32]), centred(want))}


def error(ours, want, largest=0.0):
    """max|ours-want| / max|want|; / largest where want is 0 but for rounding, as for a
    bias in front of a batch normalisation; absolute where it is 0 throughout."""
    top = want.abs().max().item()
    if top < ZERO * largest:
        top = largest
    return (ours - want).abs().max().item() / (top if top > 0 else 1.0)


def sources(folder, engine, planetoid):
    """Yields (name, data for the engine, graph for PyG, depths, epochs)."""
    store = os.path.join(folder, "cora")
    engine.prepare("cora", store)
    yield "cora, the store", store, graphs.read_store(store), (1, 2, 3), 10
    if planetoid:
        yield "cora, PyG's reader", "cora", graphs.read_planetoid(planetoid, "cora"), (2,), 10
    for name, spec in GRAPHS.items():
        g = graphs.made_up(name, **spec)
        at = os.path.join(folder, re.sub(r"\W+", "-", name))
        graphs.write_source(g, at, spec.get("sparse", False))
        engine.prepare(at, at + "-store", "--order=lpa")
        read = graphs.read_store(at + "-store")
        if spec.get("weights") == "ones":
            yield name + ", the store", at + "-store", read, (2,), 20
            # PyG's own layers on a graph that lists edges several times.
            yield name + ", as listed", at + "-store", graphs.unweighted(g), (1, 2, 3), 20
            continue
        yield name, at + "-store", graphs.merged(g), (1, 2, 3), 20
        same = all(torch.equal(a, b) for a, b in ((g.x, read.x), (g.y, read.y), (g.train, read.train), (g.test, read.test)))
        if not same:
            raise RuntimeError(f"{name}: the store's features, labels or split are not the source's")


def main():
    args = arguments()
    torch.set_num_threads(1)  # more only wait for each other on graphs this small
    folder = args.keep or tempfile.mkdtemp(prefix="parity-")
    os.makedirs(folder, exist_ok=True)
    engine = Engine(args.engine, [f"--threads={args.threads}", *args.flag])
    print(f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}; {engine.call('version').strip()}")
    table = Table()
    try:
        if args.data:
            g = graphs.read_store(args.data)
            todo = [(g.name, args.data, g, (1, 2, 3), 10)]
        else:
            todo = sources(folder, engine, args.planetoid)
        for name, data, graph, depths, epochs in todo:
            if re.search(args.only, name):
                compare(table, engine, folder, name, data, graph, depths, epochs, args.model)
        if not args.data and re.search(args.only, "control"):
            control(table, engine, folder)
        if not args.data and re.search(args.only, "snippet"):
            snippet(table, engine, folder)
    finally:
        if not args.keep:
            shutil.rmtree(folder)
    return table.end()


def compare(table, engine, folder, name, data, graph, depths, epochs, only):
    for model, flags in MODELS.items():
        if not re.search(only, model):
            continue
        for layers in depths:
            case = Case(engine, folder, data, graph, [*flags, f"--layers={layers}"])
            table.row(name, model, layers, "", **case.gradients(0), **case.logits(epochs))
        if 2 in depths:
            # With input dropout nothing is aggregated ahead: another program. The rate
            # is so small that nothing is dropped.
            case = Case(engine, folder, data, graph, [*flags, "--layers=2"])
            table.row(name, model, 2, "not kept", **case.gradients(2.0**-60))
        if 3 in depths and len(depths) > 1:
            case = Case(engine, folder, data, graph, [*flags, "--layers=3", "--residual", "--norm=layer"])
            table.row(name, model, 3, "res+norm", **case.gradients(0), **case.logits(epochs))
            case = Case(engine, folder, data, graph, [*flags, "--layers=3", "--jumping-knowledge", "--norm=batch"])
            table.row(name, model, 3, "jk+batch", **case.gradients(0), **case.logits(epochs))


def control(table, engine, folder):
    """The comparison must notice a graph whose edges are turned around."""
    g = graphs.made_up("control", seed=2)
    at = os.path.join(folder, "control")
    shutil.rmtree(at, ignore_errors=True)
    graphs.write_source(g, at)
    engine.prepare(at, at + "-store", "--overwrite")
    g.edge_index = g.edge_index.flip(0)
    for model, flags in MODELS.items():
        case = Case(engine, folder, at + "-store", g, flags)
        e = case.gradients(0)["grad"], case.logits(20)["logits"]
        table.check(f"control: {model} with edges turned around: gradient {e[0]:.1e}, logits {e[1]:.1e}", e[0] > GRAD and e[1] > LOGITS)


def snippet(table, engine, folder):
    """The lines of the README, run as they are: the same logits as the engine's."""
    run, store, scores = (os.path.join(folder, n) for n in ("RUN", "mystore", "scores.npy"))
    shutil.rmtree(run, ignore_errors=True)
    engine.prepare("cora", store, "--overwrite")
    engine.train(store, run, "--epochs=50")
    engine.call("predict", f"--run={run}", "--scores", "-o", scores)
    p = subprocess.run([sys.executable, "-W", "ignore", os.path.join(HERE, "snippet.py"), run, store, scores], capture_output=True, text=True)
    if p.returncode != 0:
        raise RuntimeError(f"snippet.py: {p.stderr}")
    worst = float(p.stdout.split()[-1])
    table.check(f"snippet: {p.stdout.strip()}", worst < LOGITS)


class Table:
    """Prints rows as they come and remembers the worst."""

    form = "{:<27} {:<10} {:>6} {:<9} {:>8} {:>8} {:>8} {:>8} {:>8}  {}"

    def __init__(self):
        self.rows = self.bad = 0
        self.worst = {}
        self.start = time.monotonic()
        print(self.form.format("graph", "model", "layers", "", "loss", "grad", "PyG32", "logits", "PyG32", ""))

    def row(self, graph, model, layers, note, loss, grad, worst, grad32, seed, logits=None, logits32=None):
        wrong = [f"{what} {e:.1e} > {tol:g}" for what, e, tol in (("loss", loss, LOSS), (f"gradient of {worst}", grad, GRAD), ("logits", logits, LOGITS))
                 if e is not None and not e <= tol]
        notes = wrong + ([f"seed {seed}: differed before it, with a ReLU at its kink"] if seed else [])
        show = lambda e: "" if e is None else f"{e:.1e}"
        print(self.form.format(graph, model, layers, note, show(loss), show(grad), show(grad32), show(logits), show(logits32), "; ".join(notes)).rstrip(), flush=True)
        self.rows += 1
        self.bad += bool(wrong)
        for key, e in (("loss", loss), ("gradient", grad), ("logits", logits)):
            if e is not None:
                kind = self.worst.setdefault(model, {})
                kind[key] = max(kind.get(key, 0.0), e) if e == e else e

    def check(self, text, fine):
        print(text + ("" if fine else "  WRONG"), flush=True)
        self.rows += 1
        self.bad += not fine

    def end(self):
        print("\nworst per model")
        for model, kinds in self.worst.items():
            print(f"  {model:<10} " + ", ".join(f"{k} {e:.1e}" for k, e in kinds.items()))
        print(f"{self.rows - self.bad} passed, {self.bad} failed ({time.monotonic() - self.start:.0f} s)")
        return 1 if self.bad or not self.rows else 0


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--engine", default="bin/dorylus-engine", help="the binary (default: %(default)s)")
    p.add_argument("--data", help="compare on this store only")
    p.add_argument("--planetoid", help="folder with ind.cora.*: compare the built-in Cora with PyG's reader of it too")
    p.add_argument("--only", default="", help="graphs whose name matches this expression")
    p.add_argument("--model", default="", help="models whose name matches this expression")
    p.add_argument("--threads", type=int, default=2, help="of the engine")
    p.add_argument("--flag", action="append", default=[], help="a flag for all training runs, such as --flag=--device=cpu/scalar")
    p.add_argument("--keep", help="work in this folder and leave everything there")
    return p.parse_args()


if __name__ == "__main__":
    sys.exit(main())
