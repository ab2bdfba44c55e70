#!/usr/bin/env bash
# Trains through the worker under AWS's own runtime interface emulator, which holds one
# environment, and compares the bits with the cores'. It fetches and builds the emulator.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
emulator=github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d
folder=$(mktemp -d)
cleanup() {
  [ -z "${pid:-}" ] || kill "$pid" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
(cd "$folder" && GOBIN="$folder" go install "$emulator")

train() { bin/dorylus-engine --json --progress=none --epochs=20 "$@" 2>>"$folder/log"; }
hash() { sed -nE 's/.*"(weights|predictions)_sha256": "([0-9a-f]+)".*/\2/p' "$1"; }
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

for model in gcn gat; do
  port=$((20000 + RANDOM % 20000))
  "$folder/aws-lambda-rie" --runtime-interface-emulator-address "127.0.0.1:$port" --runtime-api-address "127.0.0.1:$((port + 1))" \
    "$PWD/bin/dorylus-lambda" >"$folder/rie.log" 2>&1 &
  pid=$!
  for _ in $(seq 100); do listening "$port" && break; sleep 0.1; done
  train --model=$model >"$folder/cpu.json"
  train --model=$model --mode=lambda --lambdas=1 --lambda-function=function --lambda-endpoint="http://127.0.0.1:$port" >"$folder/rie.json"
  kill "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  if [ -z "$(hash "$folder/cpu.json")" ] || [ "$(hash "$folder/cpu.json")" != "$(hash "$folder/rie.json")" ]; then
    echo "rie-test: $model: the emulator's worker has other bits than the cores" >&2
    tail -n 20 "$folder/log" "$folder/rie.log" >&2
    exit 1
  fi
  if grep -q own_cores "$folder/log"; then echo "rie-test: $model: the graph server's own cores did tasks" >&2; exit 1; fi
  echo "rie-test: $model: the same bits under the emulator"
done
