#!/usr/bin/env bash
# Makes the Python environments in which our models are compared with PyTorch
# Geometric and with DGL, outside of the repository: FOLDER and FOLDER-dgl, since DGL's
# last release on the Python Package Index wants an older PyTorch.
#
#   setup.sh [FOLDER [pyg|dgl]]      default: ${XDG_CACHE_HOME:-$HOME/.cache}/dorylus-peers, both
#
# PYTHON is the interpreter (3.10 or newer), TORCH what pip installs as PyTorch and
# TORCH_PIP further arguments for that: an index of CPU builds or a folder of wheels
# saves most of the download, since the wheel that the Python Package Index has for
# Linux on amd64 needs the CUDA libraries even to be imported (about 2.5 GB to
# download, 6 GB on disk). Running it again does only what is missing.
set -euo pipefail

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/dorylus-peers}
which=${2:-both}
python=${PYTHON:-python3}
torch=${TORCH:-torch>=2.4}
# The newest DGL there and the PyTorch that it was built for.
dgl_torch=${DGL_TORCH:-torch==2.2.1} dgl=${DGL:-dgl==2.1.0}

say() { echo "setup.sh: $*" >&2; }
die() { say "$*"; exit 1; }

# environment FOLDER OLDEST NEWEST: makes it where it is not there, with a Python of 3.OLDEST to 3.NEWEST.
environment() {
  [ -x "$1/bin/python" ] && return
  "$python" -c "import sys; sys.exit(not (3, $2) <= sys.version_info[:2] <= (3, $3))" 2>/dev/null ||
    die "$python is missing or not 3.$2 to 3.$3: name another with PYTHON=..."
  "$python" -m venv "$1" ||
    die "$python cannot make a virtual environment in $1: is its venv module installed, the folder writable?"
}

# has MODULE: whether the environment in $here can import it.
has() { "$here/bin/python" -W ignore -c "import $1" 2>/dev/null; }
why() { "$here/bin/python" -W ignore -c "import $1" 2>&1 | tail -1; }
install() { "$here/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir "$@"; }

# pytorch REQUIREMENT
pytorch() {
  has torch && return
  say "installing $1 (this is the large one)"
  # shellcheck disable=SC2086 # several arguments are meant
  install ${TORCH_PIP:-} "$1" ||
    die "no PyTorch to be had: see pip's message above; a local wheel will do: TORCH=/path/to/torch.whl $0 $folder"
  has torch || die "PyTorch is installed but cannot be imported: $(why torch)"
}

if [ "$which" != dgl ]; then
  here=$folder
  environment "$here" 10 99
  pytorch "$torch"
  for module in numpy safetensors torch_geometric; do
    has "$module" || install "$module" || die "$module cannot be had: see pip's message above"
  done
  "$here/bin/python" -W ignore - <<'PY'
import importlib.util as u, platform, numpy, safetensors, torch, torch_geometric
print(f"python {platform.python_version()}, torch {torch.__version__}, torch_geometric {torch_geometric.__version__}, "
      f"numpy {numpy.__version__}, safetensors {safetensors.__version__}, MKL: {torch.backends.mkl.is_available()}")
absent = [m for m in ("torch_sparse", "torch_scatter", "pyg_lib") if not u.find_spec(m)]
if absent:
    print("without", ", ".join(absent) + ": PyG then uses PyTorch's own gathers, scatters and sparse products")
PY
  say "ready: $here/bin/python bench/peers/parity.py"
fi

if [ "$which" != pyg ]; then
  here=$folder-dgl
  environment "$here" 8 12
  pytorch "$dgl_torch"
  # What DGL imports without asking pip for it stands behind it.
  has dgl || install "$dgl" 'numpy<2' 'pandas<3' 'torchdata==0.7.1' pydantic pyyaml || die "DGL cannot be had: see pip's message above"
  has dgl || die "DGL is installed but cannot be imported: $(why dgl)"
  "$here/bin/python" -W ignore - 2>/dev/null <<'PY'
import platform, numpy, torch, dgl
print(f"python {platform.python_version()}, torch {torch.__version__}, dgl {dgl.__version__}, numpy {numpy.__version__}, MKL: {torch.backends.mkl.is_available()}")
PY
  say "ready: $here/bin/python bench/peers/train_dgl.py"
fi
