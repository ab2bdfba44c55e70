#!/usr/bin/env bash
# Fetches what compiles, assembles and describes CUDA without a GPU, into a folder
# outside of the repository, and prints where each tool is:
#
#   toolkit.sh [FOLDER]      default: ${XDG_CACHE_HOME:-$HOME/.cache}/dorylus-cuda
#
#   12      ptxas and headers of CUDA 12, Python packages (700 MB on disk with 13)
#   13      ptxas, nvcc and headers of CUDA 13, Python packages
#   nvcc12  nvcc of CUDA 12: Debian's package nvidia-cuda-toolkit (non-free), unpacked but
#           not installed, with headers of its version from Python packages; left out
#           where apt-get or Debian's archive is not there
#
# PYTHON is the interpreter. Running it again fetches only what is missing. The
# licences of those packages are NVIDIA's: nothing of them goes into a release.
set -euo pipefail
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/dorylus-cuda}
python=${PYTHON:-python3}
say() { echo "toolkit.sh: $*" >&2; }

environment() { # NAME PACKAGE...
  local at=$folder/$1
  shift
  [ -x "$at/bin/python" ] || "$python" -m venv "$at"
  [ -n "$(find "$at" -path '*/bin/ptxas' -type f)" ] && [ -n "$(find "$at" -path '*/include/cuda.h')" ] && return
  "$at/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir "$@"
}

# The archive's index for one suite, kept apart from the system's.
debian() { apt-get -o Dir::Etc::SourceList="$apt/list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt" -o Dir::State::status="$apt/status" "$@"; }

nvcc12() {
  local at=$folder/nvcc12 uri
  [ -x "$at/usr/lib/nvidia-cuda-toolkit/bin/nvcc" ] && [ -d "$at/pip/nvidia/cuda_nvcc/include/crt" ] && return
  uri=$(cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | sed -nE 's/^URIs: *(.*)/\1/p; s/^deb (\[[^]]*\] )?([^ ]+) .*/\2/p' | grep -m 1 /debian) || true
  if [ -z "$uri" ] || ! command -v apt-get >/dev/null; then say "no archive of Debian's here: nvcc of CUDA 12 is left out"; return; fi
  apt=$folder/apt
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$at"
  : >"$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri trixie non-free" >"$apt/list"
  if ! (cd "$apt" && debian update -qq && debian download -qq nvidia-cuda-toolkit) >&2; then say "nvidia-cuda-toolkit could not be fetched: nvcc of CUDA 12 is left out"; return; fi
  dpkg -x "$apt"/nvidia-cuda-toolkit_*.deb "$at" && rm "$apt"/nvidia-cuda-toolkit_*.deb
  "$folder/12/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --target "$at/pip" \
    nvidia-cuda-runtime-cu12==12.4.127 nvidia-cuda-nvcc-cu12==12.4.131
}

mkdir -p "$folder"
environment 12 nvidia-cuda-nvcc-cu12 nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12
environment 13 'nvidia-cuda-nvcc==13.*' 'nvidia-cuda-runtime==13.*' 'nvidia-cuda-crt==13.*' 'nvidia-nvvm==13.*' 'nvidia-cuda-cccl==13.*'
nvcc12

tool() { # NAME FOLDER PATTERN
  local found
  found=$(find "$folder/$2" -path "$3" -type f -print -quit 2>/dev/null) || true
  [ -z "$found" ] || printf '%s=%q\n' "$1" "$found"
}
tool PTXAS12 12 '*/bin/ptxas'
tool PTXAS13 13 '*/bin/ptxas'
tool NVCC13 13 '*/bin/nvcc'
tool HEADER12 12 '*/cuda_runtime/include/cuda.h'
tool HEADER13 13 '*/include/cuda.h'
if [ -x "$folder/nvcc12/usr/lib/nvidia-cuda-toolkit/bin/nvcc" ]; then
  # It looks for its parts in PATH and in /usr: a wrapper tells it where they are.
  at=$folder/nvcc12
  cat >"$at/nvcc" <<WRAP
#!/bin/sh
PATH='$at/usr/lib/nvidia-cuda-toolkit/bin:$at/usr/bin:'\$PATH exec '$at/usr/lib/nvidia-cuda-toolkit/bin/nvcc' -I'$at/pip/nvidia/cuda_runtime/include' -I'$at/pip/nvidia/cuda_nvcc/include' "\$@"
WRAP
  chmod +x "$at/nvcc"
  printf 'NVCC12=%q\n' "$at/nvcc"
fi
