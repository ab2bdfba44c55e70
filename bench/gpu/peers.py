"""Times cuSPARSE's sparse product, ops of PyTorch and PyTorch Geometric (peer_ops.py) and
the latter's training on the GPU, on the same graph as ours, and writes peers.json.

    python bench/gpu/peers.py STORE --out peers.json [--widths 16,41] [--epochs 20]

cuSPARSE is called directly (by ctypes, on PyTorch's memory): csr x dense rows,
CUSPARSE_SPMM_CSR_ALG2 after cusparseSpMM_preprocess, whose time is not counted, in fp32
and of bfloat16 rows with sums in fp32. Beside it PyTorch's own sparse_csr @ dense. Every product is compared with sums in float64 of
some rows. The training is a GCN of width 128 whose normalisation is computed once, over a CSR
matrix and over an edge list. Times are medians between CUDA events. What cannot be
measured is listed under "missing" with the reason. Without a GPU it fails, unless with
--cpu, which runs everything but cuSPARSE on the processor, untimed: the test of this file."""

import argparse
import ctypes
import glob
import json
import os
import statistics
import sys

import numpy as np
import torch

from peer_ops import Ops, value

# Values of cusparse.h.
INDEX_32I, BASE_ZERO, R_32F, R_16BF, ORDER_ROW, CSR_ALG2, NON_TRANSPOSE = 2, 0, 0, 14, 2, 6, 0


def timed(run, rounds, cuda):
    """Median milliseconds of run, 0 on the processor."""
    if not cuda:
        run()
        return 0.0
    times = []
    for i in range(rounds + 2):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        if i >= 2:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


class CuSPARSE:
    """The library that PyTorch has loaded, or one on the loader's path."""

    def __init__(self):
        found = glob.glob(os.path.join(os.path.dirname(torch.__file__), "..", "nvidia", "*", "lib", "libcusparse.so.*"))
        names = found + ["libcusparse.so.12", "libcusparse.so.11"]
        for name in names:
            try:
                self.lib = ctypes.CDLL(name)
                break
            except OSError as e:
                problem = e
        else:
            raise OSError(f"no cuSPARSE: {problem}")
        self.handle = ctypes.c_void_p()
        self.call("cusparseCreate", ctypes.byref(self.handle))
        self.call("cusparseSetStream", self.handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        version = ctypes.c_int()
        self.call("cusparseGetVersion", self.handle, ctypes.byref(version))
        self.version = version.value

    def call(self, name, *args):
        code = getattr(self.lib, name)(*args)
        if code:
            raise RuntimeError(f"{name}: status {code}")

    def product(self, ptr, col, values, x, y):
        """A function that computes y = A x, prepared. ptr and col are int32; values and x of
        one type, y and the sums fp32."""
        kind = R_16BF if x.dtype == torch.bfloat16 else R_32F
        p = lambda t: ctypes.c_void_p(t.data_ptr())
        n = ctypes.c_int64
        a, b, c = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cusparseCreateCsr", ctypes.byref(a), n(len(ptr) - 1), n(x.size(0)), n(len(col)), p(ptr), p(col), p(values),
                  INDEX_32I, INDEX_32I, BASE_ZERO, kind)
        self.call("cusparseCreateDnMat", ctypes.byref(b), n(x.size(0)), n(x.size(1)), n(x.stride(0)), p(x), kind, ORDER_ROW)
        self.call("cusparseCreateDnMat", ctypes.byref(c), n(y.size(0)), n(y.size(1)), n(y.stride(0)), p(y), R_32F, ORDER_ROW)
        one, zero, size = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_size_t()
        args = (self.handle, NON_TRANSPOSE, NON_TRANSPOSE, ctypes.byref(one), a, b, ctypes.byref(zero), c, R_32F, CSR_ALG2)
        self.call("cusparseSpMM_bufferSize", *args, ctypes.byref(size))
        buffer = torch.empty(max(size.value, 16), dtype=torch.uint8, device=x.device)
        self.call("cusparseSpMM_preprocess", *args, p(buffer))

        def run(keep=(ptr, col, values, x, y, buffer, one, zero)):
            self.call("cusparseSpMM", *args, p(buffer))

        return run


def products(args, ptr, col, out, device):
    cuda = device.type == "cuda"
    n = len(ptr) - 1
    p, c = torch.from_numpy(ptr.astype(np.int32)).to(device), torch.from_numpy(np.ascontiguousarray(col)).to(device)
    ones = torch.ones(len(col), device=device)
    sparse = None
    if cuda:
        try:
            sparse = CuSPARSE()
            out["cusparse"] = sparse.version
        except (OSError, AttributeError, RuntimeError) as e:
            out["missing"].append(f"cuSPARSE: {e}")
    else:
        out["missing"].append("cuSPARSE: no GPU")
    matrix = torch.sparse_csr_tensor(p, c, ones, (n, n))
    for width, precision in [(w, kind) for kind in ("fp32", "bf16") for w in args.widths]:
        narrow, bound = precision == "bf16", 1e-4
        x, y = value(n, width, device), torch.empty(n, width, device=device)
        want = [x[col[ptr[r]:ptr[r + 1]].astype(np.int64)].double().sum(0) for r in range(min(args.check, n))]
        size = [x[col[ptr[r]:ptr[r + 1]].astype(np.int64)].double().abs().sum(0) + 1e-30 for r in range(min(args.check, n))]
        worst = lambda got: max(((got[r].double() - want[r]).abs() / size[r]).max().item() for r in range(len(want)))
        row = {"width": width, "precision": precision, "cusparse_ms": 0, "torch_ms": 0, "error": 0}
        results = {}
        if narrow:
            x, bound = x.bfloat16(), bound + 1 / 256  # PyTorch has no such product with sums in fp32
        else:

            def torch_product():
                results["y"] = matrix @ x

            row["torch_ms"] = timed(torch_product, args.rounds, cuda)
            row["error"] = worst(results.pop("y"))
        if sparse:
            try:
                run = sparse.product(p, c, ones.to(x.dtype), x, y)
                row["cusparse_ms"] = timed(run, args.rounds, True)
                row["error"] = max(row["error"], worst(y))
            except (AttributeError, RuntimeError) as e:
                out["missing"].append(f"cuSPARSE, width {width}, {precision}: {e}")
        if not row["error"] < bound:
            raise RuntimeError(f"width {width}, {precision}: an error of {row['error']}: not the same product")
        out["spmm"].append(row)


def epochs(args, ptr, col, out, device):
    cuda = device.type == "cuda"
    try:
        import torch_geometric
        from torch_geometric.nn import GCNConv
        from torch_geometric.nn.conv.gcn_conv import gcn_norm
    except ImportError as e:
        out["missing"].append(f"PyTorch Geometric: {e}")
        return
    out["pyg"] = torch_geometric.__version__
    n = len(ptr) - 1
    meta = json.load(open(os.path.join(args.store, "meta.json")))
    x = torch.from_numpy(np.array(np.load(os.path.join(args.store, "features.npy"), mmap_mode="r")[:, : meta["features"]])).to(device)
    y = torch.from_numpy(np.load(os.path.join(args.store, "labels.npy")).astype(np.int64)).to(device)
    train = torch.from_numpy(np.flatnonzero(np.load(os.path.join(args.store, "splits.npy"))[0] == 1)).to(device)
    dst = np.repeat(np.arange(n), np.diff(ptr))
    edges = torch.from_numpy(np.stack([col.astype(np.int64), dst])).to(device)
    edges, w = gcn_norm(edges, None, n)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = GCNConv(x.size(1), 128, normalize=False)
            self.two = GCNConv(128, meta["classes"], normalize=False)

        def forward(self, *adjacency):
            return self.two(self.one(x, *adjacency).relu(), *adjacency)

    def train_with(name, *adjacency):
        torch.manual_seed(1)
        net = Net().to(device)
        opt = torch.optim.Adam(net.parameters(), lr=0.01)

        def epoch():
            opt.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(net(*adjacency)[train], y[train])
            loss.backward()
            opt.step()

        try:
            ms = timed(epoch, args.epochs, cuda)
            out["epochs"].append({"name": name, "ms": ms})
        except (RuntimeError, torch.OutOfMemoryError) as e:
            out["missing"].append(f"PyTorch Geometric, {name}: {str(e).splitlines()[0]}")

    order = (edges[1] * n + edges[0]).argsort()
    src, to, values = edges[0][order], edges[1][order], w[order]
    rows = torch.nn.functional.pad(torch.bincount(to, minlength=n).cumsum(0), (1, 0))
    train_with("pyg csr", torch.sparse_csr_tensor(rows, src, values, (n, n)))
    train_with("pyg edges", edges, w)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store")
    p.add_argument("--out", default="peers.json")
    p.add_argument("--widths", default="16,32,41,48,64,128,256,602", type=lambda s: [int(w) for w in s.split(",")])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--check", type=int, default=200)
    p.add_argument("--cpu", action="store_true")
    args = p.parse_args()
    if not args.cpu and not torch.cuda.is_available():
        sys.exit("peers.py: PyTorch sees no GPU here (torch.cuda.is_available() is false)")
    device = torch.device("cpu" if args.cpu else "cuda")
    ptr, col = (np.load(os.path.join(args.store, name + ".npy"), mmap_mode="r") for name in ("in_indptr", "in_indices"))
    ptr = np.array(ptr)
    if ptr[-1] >= 2**31:
        sys.exit(f"peers.py: {ptr[-1]} edges: more than int32 offsets reach")
    out = {"device": "cpu" if args.cpu else torch.cuda.get_device_name(), "torch": torch.__version__, "pyg": "", "missing": [], "spmm": [], "ops": [], "products": [], "epochs": []}
    with torch.no_grad():
        products(args, ptr, np.array(col), out, device)
    Ops(out, device, lambda run: timed(run, args.rounds, device.type == "cuda")).all(torch.from_numpy(ptr).to(device), torch.from_numpy(np.array(col)).to(device))
    epochs(args, ptr, np.array(col), out, device)
    with open(args.out, "w") as f:
        json.dump(out, f, indent=1)


if __name__ == "__main__":
    main()
