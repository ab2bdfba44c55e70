"""The engine, called as its users call it."""

import glob
import json
import os
import subprocess

import numpy as np
from safetensors.torch import load_file


class Engine:
    """The binary `path`; every call gets `flags` too."""

    def __init__(self, path, flags=()):
        self.path, self.flags = os.path.abspath(path), list(flags)

    def call(self, *args):
        p = subprocess.run([self.path, *args], capture_output=True, text=True)
        if p.returncode != 0:
            raise RuntimeError(f"{os.path.basename(self.path)} {' '.join(args)}: exit code {p.returncode}\n{p.stderr.strip()}")
        return p.stdout

    def prepare(self, source, store, *args):
        self.call("prepare", source, "-o", store, *args)

    def train(self, data, run, *args):
        """Trains into the folder run; returns the summary."""
        return json.loads(self.call(f"--data={data}", f"--out={run}", "--json", "--progress=none", *self.flags, *args))

    def log_probabilities(self, run):
        """Logarithms of predict's probabilities with the final weights, float64, in the
        user's vertex order: the logits but for a constant per vertex."""
        out = os.path.join(run, "scores.npy")
        self.call("predict", f"--run={run}", "--weights=final", "--scores", "-o", out)
        with np.errstate(divide="ignore"):
            return np.log(np.load(out).astype(np.float64))


def tensors(run, name="weights"):
    """The tensors of a run's last checkpoint: "weights" (final), "best" or "optimizer"."""
    return load_file(sorted(glob.glob(os.path.join(run, "ckpt", "epoch-*[0-9]")))[-1] + f"/{name}.safetensors")
