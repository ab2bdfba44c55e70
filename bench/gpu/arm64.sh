#!/usr/bin/env bash
# Assembles what is written for arm64 with a cross compiler and runs it under qemu's
# user-mode emulation: the shim's trampolines, and the emulated device, whose fibers
# switch stacks in assembly, with its own test program and two seeds.
#
#   arm64.sh [--kernels]     with --kernels also every GPU kernel against its formula
#
# On Debian: gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user. NATIVE=1 runs the same
# on this machine's processor instead, which tests this script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [ "${NATIVE:-0}" = 1 ]; then
  CC=gcc CXX=g++ arch=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/') run=()
else
  CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ arch=arm64 run=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
fi
for tool in "$CC" "$CXX" "${run[@]:0:1}"; do
  command -v "$tool" >/dev/null || { echo "arm64.sh: no $tool: apt-get install gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user" >&2; exit 1; }
done
export CC CXX
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

"$CC" -std=gnu11 -O2 -Wall -Wextra -Werror -o "$work/jump" csrc/cudashim/testdata/jump.c csrc/cudashim/shim.c "csrc/cudashim/tramp_$arch.S" -ldl
"$CC" -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$work/libjump.so" csrc/cudashim/testdata/jump_driver.c
echo "trampolines: $("${run[@]}" "$work/jump" "$work/libjump.so" | tail -n 1)"
"${run[@]}" "$work/jump" "$work/libjump.so" >/dev/null || failed=1

OBJECTS=$work/objects sh csrc/cuemu/build.sh "$work/libtest.so" csrc/cuemu/testdata/kernels.cu
"$CXX" -std=c++17 -Wall -Wextra -Icsrc/include -o "$work/driver" csrc/cuemu/testdata/driver.cc -ldl
cases=$("${run[@]}" "$work/driver" "$work/libtest.so" list 0 2>&1 | sed '1s/.*are://' || true)
passed=0
for case in $cases; do
  case $case in own_fault | hash | init_only | environment) continue ;; esac # they end in ways of their own
  for seed in 1 2; do
    if timeout 120 "${run[@]}" "$work/driver" "$work/libtest.so" "$case" "$seed" >"$work/log" 2>&1; then
      passed=$((passed + 1))
    else
      echo "emulated device: case $case, seed $seed: exit $?"
      head -n 5 "$work/log"
      failed=1
    fi
  done
done
echo "emulated device: $passed runs of cases passed"
[ "$passed" -ge 40 ] || { echo "too few cases ran: $cases"; failed=1; }

if [ "${1:-}" = --kernels ]; then
  OBJECTS=$work/objects sh csrc/cuemu/build.sh "$work/libcuemu.so"
  "$CXX" -std=c++17 -O1 -o "$work/check" csrc/cuda/testdata/check.cc csrc/cuda/testdata/check_rest.cc -ldl
  timeout 1800 "${run[@]}" "$work/check" "$work/libcuemu.so" csrc/cuda/sm_80.ptx 1 | tail -n 3 || failed=1
fi
exit $failed
