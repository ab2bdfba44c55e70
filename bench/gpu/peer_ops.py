"""What PyTorch and PyTorch Geometric offer for the ops that bench/gpu measures beside SpMM,
under the same names, and products by cuBLAS, which PyTorch calls. peers.py calls this."""

import torch


def value(rows, cols, at=None):
    """The matrix that is computed on, as bench/gpu fills it."""
    r = (torch.arange(rows, device=at) * 131)[:, None]
    c = (torch.arange(cols, device=at) * 17)[None, :]
    return ((r + c) % 251).float() / 251 - 0.5


class Ops:
    """Measures into out. timed(run) gives milliseconds; what cannot run is listed with its reason."""

    def __init__(self, out, device, timed):
        self.out, self.device, self.timed = out, device, timed

    def value(self, rows, cols):
        return value(rows, cols, self.device)

    def add(self, name, what, run):
        try:
            self.out["ops"].append({"name": name, "what": what, "ms": self.timed(run)})
        except (RuntimeError, torch.OutOfMemoryError) as e:
            self.out["missing"].append(f"{name}, {what}: {str(e).splitlines()[0]}")

    def gradient(self, name, what, forward, *leaves):
        """The backward half alone, over a graph that is kept."""
        try:
            y = forward()
            up = self.value(*y.shape) if y.dim() == 2 else torch.ones_like(y)
            self.add(name, what, lambda: torch.autograd.grad(y, leaves, up, retain_graph=True))
        except (RuntimeError, torch.OutOfMemoryError) as e:
            self.out["missing"].append(f"{name}, {what}: {str(e).splitlines()[0]}")

    def gat(self, n, src, dst, heads, cols):
        """Attention as PyTorch Geometric computes it: edge by edge, softmax per destination."""
        from torch_geometric.utils import scatter, softmax

        loops = torch.arange(n, device=self.device)
        src, dst = torch.cat([src, loops]), torch.cat([dst, loops])
        leaf = lambda m: m.requires_grad_(True)
        x, a, b = leaf(self.value(n, heads * cols)), leaf(self.value(n, heads)), leaf(self.value(n, heads))

        def forward():
            alpha = softmax(torch.nn.functional.leaky_relu(a[src] + b[dst], 0.2), dst, num_nodes=n)
            rows = x.view(n, heads, cols)[src] * alpha.unsqueeze(-1)
            return scatter(rows, dst, dim=0, dim_size=n, reduce="sum").view(n, heads * cols)

        def inference():
            with torch.no_grad():
                forward()

        self.add(f"gat forward {heads}x{cols}", "PyG softmax and scatter", inference)
        # Ours is in two halves, along the in-edges and along the out-edges.
        self.gradient(f"gat backward {heads}x{cols}", "PyG softmax and scatter", forward, x, a, b)

    def maximum(self, n, src, dst, cols):
        from torch_geometric.utils import scatter

        x = self.value(n, cols).requires_grad_(True)
        forward = lambda: scatter(x[src], dst, dim=0, dim_size=n, reduce="max")

        def inference():
            with torch.no_grad():
                forward()

        self.add(f"max forward {cols}", "PyG scatter", inference)
        self.gradient(f"max backward {cols}", "PyG scatter", forward, x)

    def dense(self, n):
        f = torch.nn.functional
        logits = self.value(n, 41).requires_grad_(True)
        labels = torch.arange(n, device=self.device) * 7 % 41
        labels[2::3] = -1

        def loss():
            torch.autograd.grad(f.cross_entropy(logits, labels, ignore_index=-1), logits)

        self.add("cross-entropy 41", "PyTorch, forward and backward", loss)
        x, bias = self.value(n, 128).requires_grad_(True), self.value(1, 128)
        forward = lambda: f.dropout(f.relu(x + bias), 0.5)

        def inference():
            with torch.no_grad():
                forward()

        self.add("bias, relu, dropout 128", "PyTorch", inference)
        self.gradient("bias, relu, dropout backward 128", "PyTorch", forward, x)
        p = self.value(602, 128).requires_grad_(True)
        p.grad = self.value(602, 128)
        for kind in ({"fused": True}, {"foreach": True}):
            try:
                step = torch.optim.Adam([p], lr=0.01, **kind).step
            except (RuntimeError, TypeError) as e:
                self.out["missing"].append(f"adam, {kind}: {str(e).splitlines()[0]}")
                continue
            self.add("adam 602x128", "PyTorch " + next(iter(kind)), step)
        some = max(n // 10, 1)
        ids = torch.arange(some, device=self.device) * 10 % n
        x, y = x.detach(), self.value(some, 128)
        self.add("gather rows 128", "PyTorch index_select", lambda: torch.index_select(x, 0, ids, out=y))
        self.add("scatter rows 128", "PyTorch index_copy_", lambda: x.index_copy_(0, ids, y))

    def products(self, n):
        shapes = [("nn", n, 128, 602), ("nn", n, 41, 128), ("tn", 602, 128, n), ("tn", 128, 41, n), ("nt", n, 128, 41)]
        for precision in ("fp32", "tf32", "bf16"):
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            kind = torch.bfloat16 if precision == "bf16" else torch.float32
            for op, m, width, k in shapes:
                a = self.value(*((k, m) if op == "tn" else (m, k))).to(kind)
                b = self.value(*((width, k) if op == "nt" else (k, width))).to(kind)
                left, right = a.t() if op == "tn" else a, b.t() if op == "nt" else b
                try:
                    ms = self.timed(lambda: left @ right)
                    self.out["products"].append({"op": op, "M": m, "N": width, "K": k, "precision": precision, "ms": ms})
                except (RuntimeError, torch.OutOfMemoryError) as e:
                    self.out["missing"].append(f"product {op} {m}x{width}x{k} {precision}: {str(e).splitlines()[0]}")
        torch.backends.cuda.matmul.allow_tf32 = False

    def clear(self):
        """Rows of all edges take much of the memory, which is kept for reuse in other sizes."""
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def all(self, ptr, col):
        """ptr and col on the device."""
        n = len(ptr) - 1
        self.dense(n)
        self.products(n)
        try:
            import torch_geometric  # noqa: F401
        except ImportError as e:
            self.out["missing"].append(f"attention and maximum of PyTorch Geometric: {e}")
            return
        src = col.long()
        dst = torch.repeat_interleave(torch.arange(n, device=self.device), (ptr[1:] - ptr[:-1]).long())
        for heads, cols in ((8, 8), (1, 41)):
            self.gat(n, src, dst, heads, cols)
            self.clear()
        self.maximum(n, src, dst, 128)
        self.clear()
