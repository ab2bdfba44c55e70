#!/usr/bin/env bash
# All that is measured on a GPU, in one command, on a machine with a GPU, Go and gcc:
#
#   bench/gpu.sh [FOLDER]     logs and parts; default: a new one below the user's cache
#
# Self-test, conformance and tests of the GPU path, golden runs, rates and kernels over
# widths beside cuSPARSE and PyTorch, epochs of a graph as large as Reddit beside PyTorch
# Geometric; then bench/results/gpu-NAME.json, NAME from the device. Exit 1 if a step has
# failed. Peers need Python 3.10 and pip; where they cannot be had the result says so.
#
#   DATA=STORE    a prepared graph instead of the generated one
#   VERTICES=232965 DEGREE=492 FEATURES=602 CLASSES=41   of the generated graph: 114.6 million edges
#   WIDTHS=16,32,41,48,64,128,256,602     of the gathers
#   PEERS=auto    the peers' environment: a folder with bin/python; none: leave them out
#   RESULT=FILE   instead of bench/results/gpu-NAME.json
#   SHORT=1       without the tests of the whole program
#   DORYLUS_CUDA_DRIVER=libcuemu.so   an emulated device: everything runs, nothing is timed
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
here=$PWD
OUT=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/dorylus-gpu/$(date +%Y%m%d-%H%M%S)}
mkdir -p "$OUT" || exit 1
OUT=$(cd "$OUT" && pwd)
: >"$OUT/steps.jsonl"
. bench/gpu/steps.sh
widths=${WIDTHS:-16,32,41,48,64,128,256,602}

step build 1800 make --no-print-directory build gpu-bench TAGS="${TAGS:-}" || { tail -n 5 "$OUT/build.log" >&2; exit 1; }
ENGINE=$here/bin/dorylus-engine
bench=$here/bin/gpu-bench
# shellcheck disable=SC2016
step devices 60 sh -c '"$1" devices --json >"$2"' sh "$ENGINE" "$OUT/devices.json"
if ! grep -q '"name": *"cuda:0"' "$OUT/devices.json" || ! grep -A 12 '"name": *"cuda:0"' "$OUT/devices.json" | grep -q '"usable": *true'; then
  "$ENGINE" devices >&2
  echo "gpu.sh: no GPU can be used here" >&2
  exit 1
fi
emulated && echo "gpu.sh: an EMULATED device answers: nothing is timed" >&2

step selftest 600 "$ENGINE" devices --selftest
if [ "${SHORT:-0}" = 1 ]; then
  skip tests "SHORT=1"
else
  step tests 3600 make --no-print-directory test-gpu TAGS="${TAGS:-}"
fi

# Golden runs: layers of every model and 30 steps on Cora against the reference's arrays.
golden=1
! emulated || golden=emulated
if [ -d ../shared/golden/cora_gcn2 ]; then
  step golden 900 env DORYLUS_TEST_GPU=$golden make --no-print-directory test-gpu-golden TAGS="${TAGS:-}"
else
  skip golden "no reference data: put the folder shared beside the project"
fi
# Cora beside the processor, four models; the loss curves within 1e-4.
for model in gcn gat sage gin; do
  step "cora-$model" 600 "$ENGINE" compare --modes=cpu,gpu --model="$model" --epochs="${CORA_EPOCHS:-20}" --out="$OUT/cora-$model"
done

data=${DATA:-}
if [ -z "$data" ]; then
  data=$OUT/store
  step graph 1800 "$ENGINE" prepare "synth:sbm,vertices=${VERTICES:-232965},degree=${DEGREE:-492},features=${FEATURES:-602},classes=${CLASSES:-41},seed=1" --split=random:66/10/24 --out="$data"
fi
step kernels 1200 "$bench" kernels -store="$data" -widths="$widths" -out="$OUT/kernels.json" -rate-mb="${RATE_MB:-1024}"
epochs=${EPOCHS:-30}
common=(--mode=gpu --data="$data" --model=gcn --hidden=128 --dropout=0 --input-dropout=0 --epochs="$epochs" --eval-every=1000000 --seed=1)
train gcn-fp32-sync 900 "${common[@]}"
train gcn-fp32-again 900 "${common[@]}"
train gcn-fp32-async 900 "${common[@]}" --pipeline=async
train gcn-tf32-sync 900 "${common[@]}" --precision=tf32
train gcn-bf16-sync 900 "${common[@]}" --precision=bf16
train gcn-uncached-sync 900 "${common[@]}" --cache-gather=false
train gcn-all-rows-sync 900 "${common[@]}" --prune-rows=false
if cublas; then
  train gcn-cublas-sync 900 "${common[@]}" --gpu-products=cublas
else
  skip train-gcn-cublas-sync "$(without_cublas)"
fi
train gcn-dropout-sync 900 "${common[@]}" --dropout=0.5 --input-dropout=0.5
# shellcheck disable=SC2016
step equal-bits 30 sh -c 'a=$(sed -n "s/.*\"weights_sha256\": *\"\([0-9a-f]*\)\".*/\1/p" "$1"); b=$(sed -n "s/.*\"weights_sha256\": *\"\([0-9a-f]*\)\".*/\1/p" "$2"); echo "$a $b"; [ -n "$a" ] && [ "$a" = "$b" ]' sh "$OUT/epoch-gcn-fp32-sync.json" "$OUT/epoch-gcn-fp32-again.json"

if [ "${PEERS:-auto}" = none ]; then
  skip peers "PEERS=none"
elif emulated; then
  skip peers "an emulated device: there is nothing to compare"
else
  peers=${PEERS:-auto}
  [ "$peers" != auto ] || peers=${XDG_CACHE_HOME:-$HOME/.cache}/dorylus-peers
  if step peers-setup 1800 bench/peers/setup.sh "$peers"; then
    step peers 1800 "$peers/bin/python" bench/gpu/peers.py "$data" --widths="$widths" --epochs="$epochs" --out="$OUT/peers.json"
  else
    skip peers "PyTorch and PyTorch Geometric could not be installed: see peers-setup.log"
  fi
fi

name=$(sed -n 's/.*"model": *"\([^"]*\)".*/\1/p' "$OUT/devices.json" | head -n 1 | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-' | sed 's/^nvidia-//')
result=${RESULT:-bench/results/gpu-${name:-unknown}.json}
! emulated || result=${RESULT:-$OUT/gpu-emulated.json} # no result to keep
"$bench" report -dir="$OUT" -out="$result" && echo "gpu.sh: wrote $result; logs are in $OUT" >&2 || exit 1
[ "$failures" = 0 ] || { echo "gpu.sh: $failures steps have failed" >&2; exit 1; }
