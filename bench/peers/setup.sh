#!/usr/bin/env bash
# Makes the Python environment in which our models are compared with PyTorch
# Geometric, outside of the repository.
#
#   setup.sh [FOLDER]      default: ${XDG_CACHE_HOME:-$HOME/.cache}/dorylus-peers
#
# PYTHON is the interpreter (3.10 or newer), TORCH what pip installs as PyTorch and
# TORCH_PIP further arguments for that: an index of CPU builds or a folder of wheels
# saves most of the download, since the wheel that the Python Package Index has for
# Linux on amd64 needs the CUDA libraries even to be imported (about 2.5 GB to
# download, 6 GB on disk). Running it again does only what is missing.
set -euo pipefail

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/dorylus-peers}
python=${PYTHON:-python3}
torch=${TORCH:-torch>=2.4}

say() { echo "setup.sh: $*" >&2; }
die() { say "$*"; exit 1; }

if [ ! -x "$folder/bin/python" ]; then
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
    die "$python is missing or older than 3.10: name another with PYTHON=..."
  "$python" -m venv "$folder" ||
    die "$python cannot make a virtual environment in $folder: is its venv module installed, the folder writable?"
fi

# has MODULE: whether the environment can import it.
has() { "$folder/bin/python" -W ignore -c "import $1" 2>/dev/null; }
install() { "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir "$@"; }

if ! has torch; then
  say "installing $torch (this is the large one)"
  # shellcheck disable=SC2086 # several arguments are meant
  install ${TORCH_PIP:-} "$torch" ||
    die "no PyTorch to be had: see pip's message above; a local wheel will do: TORCH=/path/to/torch.whl $0 $folder"
  has torch || die "PyTorch is installed but cannot be imported: $("$folder/bin/python" -c 'import torch' 2>&1 | tail -1)"
fi
for module in numpy safetensors torch_geometric; do
  has "$module" || install "$module" || die "$module cannot be had: see pip's message above"
done

"$folder/bin/python" -W ignore - <<'PY'
import importlib.util as u, platform, numpy, safetensors, torch, torch_geometric
print(f"python {platform.python_version()}, torch {torch.__version__}, torch_geometric {torch_geometric.__version__}, "
      f"numpy {numpy.__version__}, safetensors {safetensors.__version__}, MKL: {torch.backends.mkl.is_available()}")
absent = [m for m in ("torch_sparse", "torch_scatter", "pyg_lib") if not u.find_spec(m)]
if absent:
    print("without", ", ".join(absent) + ": PyG then uses PyTorch's own gathers, scatters and sparse products")
PY
say "ready: $folder/bin/python bench/peers/parity.py"
