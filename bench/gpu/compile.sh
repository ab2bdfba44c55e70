#!/usr/bin/env bash
# Compiles and assembles the GPU's kernels with what toolkit.sh fetched, for all
# architectures that each tool knows of those we name, and writes what every kernel
# takes into bench/results/ptxas.json. Exit 1 if one is refused, or a hot one spills.
#
#   compile.sh [ptxas | nvcc | clang]...     all of them
#
# CLANGS names newer clangs that are to compile the sources, "clang++-19" if it is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${OUT:-bench/results/ptxas.json}
eval "$(bench/gpu/toolkit.sh)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
refused=()
run() { # WHAT COMMAND...
  local what=$1
  shift
  echo "compile.sh: $what" >&2
  if ! "$@" >"$work/log" 2>&1; then
    grep -v '^dk_' "$work/log" >&2 || true
    refused+=("$what")
    status=1
  fi
}
parts=" ${*:-ptxas nvcc clang} "
export TABLE=$work/table
: >"$TABLE"
if [[ $parts == *" ptxas "* ]]; then
  run "ptxas of CUDA 12" env PTXAS="$PTXAS12" csrc/cuda/ptxas.sh sm_70 sm_80 sm_90
  # CUDA 13 has dropped sm_70.
  run "ptxas of CUDA 13" env PTXAS="$PTXAS13" csrc/cuda/ptxas.sh sm_80 sm_90 sm_100
fi
missing=()
if [[ $parts == *" nvcc "* ]]; then
  if [ -n "${NVCC12:-}" ]; then
    run "nvcc of CUDA 12" env NVCC="$NVCC12" csrc/cuda/ptxas.sh sm_70 sm_80 sm_90
  else
    missing+=("nvcc of CUDA 12")
  fi
  run "nvcc of CUDA 13" env NVCC="$NVCC13" csrc/cuda/ptxas.sh sm_80 sm_90
fi
clangs=()
if [[ $parts == *" clang "* ]]; then
  for c in ${CLANGS:-clang++-19}; do
    if command -v "$c" >/dev/null; then
      mkdir -p "$work/ptx"
      run "$c" env CLANG="$c" csrc/cuda/ptx.sh "$work/ptx"
      clangs+=("$("$c" --version | sed -n '1s/.*version \([0-9.]*\).*/clang \1/p')")
      if [ -s "$work/ptx/sm_80.ptx" ]; then run "ptxas of CUDA 12 on the PTX of $c" "$PTXAS12" -arch=sm_90 -o "$work/cubin" "$work/ptx/sm_80.ptx"; fi
    else
      missing+=("$c")
    fi
  done
fi
list() { local s=; for v in "$@"; do s+="${s:+, }\"$v\""; done; printf '[%s]' "$s"; }
{
  printf '{\n  "note": "Compiled and assembled without a GPU: bench/gpu/compile.sh. Nothing here has run on one.",\n'
  printf '  "sources": "%s",\n' "$(cd csrc/cuda && export LC_ALL=C && cat ./*.cu ./*.h | sha256sum | cut -c 1-16)"
  printf '  "ptx": {"sm_70": "%s", "sm_80": "%s"},\n' "$(sha256sum <csrc/cuda/sm_70.ptx | cut -c 1-16)" "$(sha256sum <csrc/cuda/sm_80.ptx | cut -c 1-16)"
  printf '  "other_compilers": %s,\n  "not_there": %s,\n  "refused": %s,\n' "$(list "${clangs[@]}")" "$(list "${missing[@]}")" "$(list "${refused[@]}")"
  printf '  "columns": ["registers", "bytes of shared memory", "bytes spilled"],\n'
  # Rows of the table: tool, version, kernel, architecture, source, three numbers.
  LC_ALL=C sort -k3,3 -s "$TABLE" | awk '
    { run = $1 " " $2 " " $4; if (!(run in seen)) { seen[run] = 1; order[++runs] = run }
      kernels[run]++; if ($6 > most[run]) most[run] = $6; if ($8 > 0) spill[run] = spill[run] (spill[run] ? ", " : "") "\"" $3 "\": " $8
      if ($3 != last) { names[++n] = $3; last = $3 }
      row[$3] = row[$3] (row[$3] ? ", " : "") "\"" run "\": [" $6 ", " $7 ", " $8 "]" }
    END {
      print "  \"runs\": {"
      for (i = 1; i <= runs; i++) printf "    \"%s\": {\"kernels\": %d, \"most_registers\": %d, \"spills\": {%s}}%s\n", order[i], kernels[order[i]], most[order[i]], spill[order[i]], i < runs ? "," : ""
      print "  },\n  \"kernels\": {"
      for (i = 1; i <= n; i++) printf "    \"%s\": {%s}%s\n", names[i], row[names[i]], i < n ? "," : ""
      print "  }\n}"
    }'
} >"$work/json"
cat "$work/json" >"$out"
echo "compile.sh: wrote $out" >&2
exit $status
