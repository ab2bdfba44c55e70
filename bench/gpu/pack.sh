#!/usr/bin/env bash
# Packs what a first run on a GPU needs: program, tests, sources of the kernels, PTX,
# golden runs and gpu_first.sh, which needs a driver but no network, Go or root.
#
#   TAGS=metis,cuda pack.sh OUT.tar.gz     after make build gpu-bench
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$1 go=${GO:-go}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/gpu-first
# Tests find go.mod above them and ../shared beside it, as in the repository.
mkdir -p "$top/bin" "$top/tests/repo/kernels/cuda/conform" "$top/tests/repo/engine/pipeline/ongpu" "$top/csrc/cuda" "$(dirname "$out")"
cp bin/dorylus-engine bin/gpu-bench "$top/bin/"
cp go.mod "$top/tests/repo/"
"$go" test -c -tags "$TAGS" -o "$top/tests/conform.test" ./kernels/cuda/conform
"$go" test -c -tags "$TAGS" -o "$top/tests/ongpu.test" ./engine/pipeline/ongpu
cp csrc/cuda/*.cu csrc/cuda/*.h csrc/cuda/*.ptx csrc/cuda/ptxas.sh "$top/csrc/cuda/"
# A static program that launches every kernel by the driver and compares it with its formula.
${CXX:-g++} -std=c++17 -O1 -static-libstdc++ -static-libgcc -o "$top/bin/kernel-check" csrc/cuda/testdata/check.cc csrc/cuda/testdata/check_rest.cc -ldl
"$go" run ./bench/gpu/header -o "$top/cuda_asserts.c" csrc/include/cuda.h
cp bench/gpu/gpu_first.sh bench/gpu/steps.sh bench/gpu/header.sh bench/gpu/peers.py bench/gpu/peer_ops.py "$top/"
if [ -d ../shared/golden ]; then
  mkdir -p "$top/tests/shared"
  cp -r ../shared/golden "$top/tests/shared/"
fi
(cd csrc/cuda && sha256sum ./*.ptx ./*.cu ./*.h) >"$top/csrc/cuda/SHA256"
git describe --tags --always --dirty >"$top/VERSION" 2>/dev/null || echo unknown >"$top/VERSION"
tar -C "$work" -czf "$out" gpu-first
echo "pack.sh: wrote $out ($(du -h "$out" | cut -f 1)); unpack it on a machine with a GPU and run gpu-first/gpu_first.sh OUT" >&2
