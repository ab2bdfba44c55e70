"""What staleness alone does to a GCN, without any code of the engine.

usage: stale.py STORE [EPOCHS]

Trains a GCN of two layers (64 hidden, Adam, weight decay 5e-4, dropout 0.5) on a prepared store in PyTorch with the
gradient written out, and spoils it in the two ways an asynchronous run does: the gradient is that of weights some
epochs old, and a share of the gathered rows, forward and backward, is of the epoch before. It prints the test accuracy
of the best validation, over two seeds. Where this collapses, an asynchronous run with the same settings may, too.
"""
import os
import sys

import numpy as np
import torch

HIDDEN, DECAY, BLOCK = 64, 5e-4, 480


def load(store):
    get = lambda name: torch.from_numpy(np.load(f"{store}/{name}.npy"))
    ptr, cols, labels, split = get("in_indptr"), get("in_indices").long(), get("labels").long(), get("splits")[0]
    n = len(labels)
    if os.path.exists(f"{store}/features.npy"):
        x = get("features").float()
    else:
        fptr, fcols = get("features_indptr"), get("features_indices").long()
        path = f"{store}/features_values.npy"
        values = torch.from_numpy(np.load(path)) if os.path.exists(path) else torch.ones(len(fcols))
        x = torch.sparse_csr_tensor(fptr, fcols, values, (n, int(fcols.max()) + 1)).to_dense()
    degree = ptr.diff()
    scale = (degree + 1).float().pow(-0.5)
    ends = torch.stack([torch.arange(n).repeat_interleave(degree), cols])
    ends = torch.cat([ends, torch.arange(n).repeat(2, 1)], 1)
    a = torch.sparse_coo_tensor(ends, scale[ends[0]] * scale[ends[1]], (n, n)).coalesce().to_sparse_csr()
    return a, x, labels, split


def train(data, delay, stale, lr, input_dropout, seed, epochs):
    a, x, labels, split = data
    n, classes = len(labels), int(labels.max()) + 1
    rng = torch.Generator().manual_seed(seed)

    def glorot(rows, cols):
        return (torch.rand(rows, cols, generator=rng) * 2 - 1) * (6 / (rows + cols)) ** 0.5

    def keep(shape, p):
        return (torch.rand(shape, generator=rng) >= p).float() / (1 - p)

    def mix(new, old):  # some intervals' rows are still those of the epoch before
        if old is None or stale == 0:
            return new
        late = (torch.rand(n // BLOCK + 1, generator=rng) < stale).repeat_interleave(BLOCK)[:n, None]
        return torch.where(late, old, new)

    weights = [glorot(x.shape[1], HIDDEN), torch.zeros(HIDDEN), glorot(HIDDEN, classes), torch.zeros(classes)]
    first, second = [torch.zeros_like(w) for w in weights], [torch.zeros_like(w) for w in weights]
    versions = [[w.clone() for w in weights]]
    before = dict.fromkeys(("z1", "z2", "g", "d"))
    best = (0.0, 0.0)
    one_hot = torch.nn.functional.one_hot(labels.clamp(min=0), classes)
    trained = (split == 1)[:, None]
    for epoch in range(epochs):
        w = versions[max(0, len(versions) - 1 - delay)]
        xd = x * keep(x.shape, input_dropout) if input_dropout else x
        z1 = xd @ w[0]
        a1 = a @ mix(z1, before["z1"]) + w[1]
        k = keep(a1.shape, 0.5)
        h = a1.clamp(min=0) * k
        z2 = h @ w[2]
        out = a @ mix(z2, before["z2"]) + w[3]
        g = (out.softmax(1) - one_hot) * trained / trained.sum()
        dz2 = a @ mix(g, before["g"])
        d = (dz2 @ w[2].T) * k * (a1 > 0)
        dz1 = a @ mix(d, before["d"])
        before = dict(z1=z1, z2=z2, g=g, d=d)
        for i, grad in enumerate((xd.T @ dz1, d.sum(0), h.T @ dz2, g.sum(0))):
            grad = grad + DECAY * weights[i]
            first[i] = 0.9 * first[i] + 0.1 * grad
            second[i] = 0.999 * second[i] + 0.001 * grad * grad
            step = (first[i] / (1 - 0.9 ** (epoch + 1))) / ((second[i] / (1 - 0.999 ** (epoch + 1))).sqrt() + 1e-8)
            weights[i] = weights[i] - lr * step
        versions = (versions + [[v.clone() for v in weights]])[-4:]
        if epoch % 5 == 4:
            w = weights
            right = (a @ ((a @ (x @ w[0]) + w[1]).clamp(min=0) @ w[2]) + w[3]).argmax(1) == labels
            best = max(best, tuple(right[split == role].float().mean().item() for role in (2, 3)))
    return best[1]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    data = load(sys.argv[1])
    print("delay of weights, share of stale rows, learning rate, input dropout: test accuracy of two seeds")
    for case in [(0, 0, 0.01, 0.5), (0, 0.3, 0.01, 0.5), (1, 0, 0.01, 0.5), (1, 0.3, 0.01, 0.5), (1, 0.3, 0.001, 0.5), (1, 0.3, 0.001, 0)]:
        print(*case, *(f"{100 * train(data, *case, seed, epochs):.1f} %" for seed in (0, 1)), flush=True)


if __name__ == "__main__":
    main()
