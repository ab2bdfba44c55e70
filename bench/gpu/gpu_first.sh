#!/usr/bin/env bash
# The first run on a machine with a GPU: nine steps, in some ten minutes. It needs a
# driver, but no network, Go or root; steps that need a toolkit are skipped by name
# without one.
#
#   gpu_first.sh OUT     a folder for logs, steps.jsonl and gpu-first.json
#
#   TOOLKIT=/usr/local/cuda     where a CUDA toolkit is, if there is one
#   PYTHON=python3              one with PyTorch, for the peers
#   SMALL=1                     a tiny graph and few epochs, as on an emulated device
#   DORYLUS_CUDA_DRIVER=FILE    another driver; an emulated device is not timed
#
# Every part is a process of its own, with a limit, a log and a JSON line; a failure does
# not stop the rest. Exit 1 if one has failed.
set -uo pipefail
[ $# = 1 ] || { echo "usage: gpu_first.sh OUT" >&2; exit 2; }
mkdir -p "$1" || exit 1
OUT=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here" || exit 1
. ./steps.sh
: >"$OUT/steps.jsonl"
ENGINE=$here/bin/dorylus-engine
bench=$here/bin/gpu-bench
driver=${DORYLUS_CUDA_DRIVER:-libcuda.so.1}
export CUDA_CACHE_PATH=$OUT/jit # empty: the first load compiles
toolkit=${TOOLKIT:-${CUDA_HOME:-/usr/local/cuda}}
PATH=$PATH:$toolkit/bin

# 1. Versions and hashes.
# shellcheck disable=SC2016
step 1-versions 20 sh -c 'cat VERSION; "$1" version; (cd csrc/cuda && sha256sum --check --quiet SHA256 && echo "kernels as packed"); uname -a; nvidia-smi -q 2>/dev/null | head -n 60; true' sh "$ENGINE"
# shellcheck disable=SC2016
step 1-devices 20 sh -c '"$1" devices --json >"$2"; "$1" devices' sh "$ENGINE" "$OUT/devices.json"
small=${SMALL:-0}
if emulated; then
  small=1
  echo "gpu_first.sh: an EMULATED device answers: nothing is timed" >&2
fi

# 2. Our header against the toolkit's.
header=$(find -L "$toolkit" -maxdepth 8 -path '*/include/cuda.h' -print -quit 2>/dev/null)
if [ -z "$header" ]; then
  skip 2-header "no cuda.h below $toolkit; set TOOLKIT"
elif ! command -v "${CC:-gcc}" >/dev/null; then
  skip 2-header "no ${CC:-gcc}"
else
  step 2-header 20 ./header.sh cuda_asserts.c "$(dirname "$header")"
fi

# 3. Both PTX files, JIT cold and warm, every kernel.
step 3-selftest-cold 240 "$ENGINE" devices --selftest
step 3-selftest-warm 240 "$ENGINE" devices --selftest
for ptx in sm_70 sm_80; do
  step "3-kernels-$ptx" 240 bin/kernel-check "$driver" "csrc/cuda/$ptx.ptx" 1
done

# 4. The tests of make test-gpu, reference runs apart.
tests=1
emulated && tests=emulated
# shellcheck disable=SC2016
go_test='cd "$1" && "$2" -test.v -test.skip="Emulated$4" -test.timeout="$3"s'
step 4-conformance 480 env DORYLUS_TEST_GPU=$tests sh -c "$go_test" sh tests/repo/kernels/cuda/conform "$here/tests/conform.test" 470
step 4-models 480 env DORYLUS_TEST_GPU=$tests sh -c "$go_test" sh tests/repo/engine/pipeline/ongpu "$here/tests/ongpu.test" 470 '|Golden'
if [ -d tests/shared/golden/cora_gcn2 ]; then
  step 4-golden 240 env DORYLUS_TEST_GPU=$tests sh -c 'cd "$1" && "$2" -test.v -test.run=Golden' sh tests/repo/engine/pipeline/ongpu "$here/tests/ongpu.test"
else
  skip 4-golden "no reference data was packed"
fi

# 5. Cora: four models against the processor; twice for equal bits; resident against streamed.
epochs=20
[ "$small" = 0 ] || epochs=3
for model in gcn gat sage gin; do
  for pipeline in sync async; do
    step "5-cora-$model-$pipeline" 120 "$ENGINE" compare --modes=cpu,gpu --model=$model --epochs=$epochs --pipeline=$pipeline --out="$OUT/cora-$model-$pipeline"
  done
done
cora=(--mode=gpu --model=gcn --epochs=$epochs --seed=1)
train cora 60 "${cora[@]}"
train cora-again 60 "${cora[@]}"
# A graph that does not fit into 24 MiB of the device: its rows pass through. Its sums are
# made in pieces, so that it agrees with a resident run within rounding, and with itself
# to the bit.
wide=(--mode=gpu --data=synth:sbm,vertices=3000,degree=6,features=768,classes=4,seed=1 --model=gcn --hidden=16 --input-dropout=0 --epochs=2 --eval-every=1000000 --seed=1)
train resident 120 "${wide[@]}"
train streamed 120 "${wide[@]}" --gpu-memory=24MiB
train streamed-again 120 "${wide[@]}" --gpu-memory=24MiB
# shellcheck disable=SC2016
same='a=$(sed -n "s/.*\"weights_sha256\": *\"\([0-9a-f]*\)\".*/\1/p" "$1"); b=$(sed -n "s/.*\"weights_sha256\": *\"\([0-9a-f]*\)\".*/\1/p" "$2"); echo "$a $b"; [ -n "$a" ] && [ "$a" = "$b" ]'
step 5-equal-bits 10 sh -c "$same" sh "$OUT/epoch-cora.json" "$OUT/epoch-cora-again.json"
step 5-streamed-bits 10 sh -c "$same" sh "$OUT/epoch-streamed.json" "$OUT/epoch-streamed-again.json"
# shellcheck disable=SC2016
close='for f in "$1" "$2"; do sed -n "s/.*\"loss\": *\([0-9.e+-]*\).*/\1/p" "$f" | head -n 1; done | awk "{ print; x[NR] = \$1 } END { d = x[1] - x[2]; exit !(NR == 2 && d < 1e-4 && d > -1e-4) }"'
step 5-streamed-close 10 sh -c "$close" sh "$OUT/epoch-resident.json" "$OUT/epoch-streamed.json"

# 6. What each kernel takes.
if command -v ptxas >/dev/null; then step 6-ptxas 120 csrc/cuda/ptxas.sh sm_80 sm_90; else skip 6-ptxas "no ptxas in PATH or $toolkit/bin"; fi
if command -v nvcc >/dev/null; then step 6-nvcc 120 env NVCC=nvcc csrc/cuda/ptxas.sh sm_80 sm_90; else skip 6-nvcc "no nvcc in PATH or $toolkit/bin"; fi

# 7 and 8. Rates; a graph as large as Reddit: widths beside cuSPARSE, epochs beside PyTorch.
graph=synth:sbm,vertices=232965,degree=492,features=602,classes=41,seed=1
widths=16,32,41,48,64,128,256,602
[ "$small" = 0 ] || graph=synth:sbm,vertices=600,degree=12,features=48,classes=5,seed=1 widths=16,41
rates=1024
[ "$small" = 0 ] || rates=1
step 8-graph 600 "$ENGINE" prepare "$graph" --split=random:66/10/24 --out="$OUT/store"
step 7-8-kernels 300 "$bench" kernels -store="$OUT/store" -widths="$widths" -rate-mb="$rates" -out="$OUT/kernels.json"
reddit=(--mode=gpu --data="$OUT/store" --model=gcn --hidden=128 --dropout=0 --input-dropout=0 --epochs=$epochs --eval-every=1000000 --seed=1)
train gcn-fp32-sync 120 "${reddit[@]}"
train gcn-fp32-async 120 "${reddit[@]}" --pipeline=async
train gcn-tf32-sync 120 "${reddit[@]}" --precision=tf32
train gcn-bf16-sync 120 "${reddit[@]}" --precision=bf16
train gcn-uncached-sync 120 "${reddit[@]}" --cache-gather=false
train gcn-all-rows-sync 120 "${reddit[@]}" --prune-rows=false
if cublas; then
  train gcn-cublas-sync 120 "${reddit[@]}" --gpu-products=cublas
else
  skip train-gcn-cublas-sync "$(without_cublas)"
fi
train gcn-dropout-sync 120 "${reddit[@]}" --dropout=0.5 --input-dropout=0.5
if emulated; then
  skip 8-peers "an emulated device: there is nothing to compare"
elif "${PYTHON:-python3}" -c 'import torch, torch_geometric; assert torch.cuda.is_available()' 2>/dev/null; then
  step 8-peers 600 "${PYTHON:-python3}" peers.py "$OUT/store" --widths="$widths" --out="$OUT/peers.json"
else
  skip 8-peers "${PYTHON:-python3} has no PyTorch with a GPU and PyTorch Geometric; set PYTHON"
fi

# 9. Every kernel under the sanitizer.
if command -v compute-sanitizer >/dev/null; then
  step 9-memcheck 120 compute-sanitizer --error-exitcode=9 --tool=memcheck bin/kernel-check "$driver" csrc/cuda/sm_80.ptx 1
  step 9-racecheck 240 compute-sanitizer --error-exitcode=9 --tool=racecheck bin/kernel-check "$driver" csrc/cuda/sm_80.ptx 1
else
  skip 9-memcheck "no compute-sanitizer in PATH or $toolkit/bin"
  skip 9-racecheck "no compute-sanitizer in PATH or $toolkit/bin"
fi

"$bench" report -dir="$OUT" -out="$OUT/gpu-first.json" || failures=$((failures + 1))
echo "gpu_first.sh: $failures steps have failed; see $OUT/gpu-first.json" >&2
[ "$failures" = 0 ]
