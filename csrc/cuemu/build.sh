#!/bin/sh
# Builds the emulated device from its own sources and the kernels':
#
#   csrc/cuemu/build.sh OUT.so [KERNELS.cu]
#
# KERNELS.cu is csrc/cuda/all.cu if not given. The library carries the hash of all
# .cu and .h files beside it. OBJECTS=DIR keeps the emulator's objects for the next time.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
kernels=${2:-$here/../cuda/all.cu}
cxx=${CXX:-g++}
flags="-std=c++17 -O2 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -ffp-contract=off -I$here/../include"
hash=$(cd "$(dirname "$kernels")" && LC_ALL=C && export LC_ALL && cat ./*.cu $(ls ./*.h 2>/dev/null) | sha256sum | cut -c 1-16)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
objects=${OBJECTS:-$tmp/objects}
mkdir -p "$objects"
for f in "$here"/src/*.cc; do
  o=$objects/$(basename "$f" .cc).o
  [ -s "$o" ] || { $cxx $flags -c "$f" -o "$o.$$" && mv "$o.$$" "$o"; }
done
# Loops that fill an array before reading it are beyond that one warning.
$cxx $flags -Wno-maybe-uninitialized -DDK_HOST -x c++ -c "$kernels" -o "$tmp/kernels.o"
printf 'extern "C" const char dk_kernel_hash[] = "%s", dk_marker[] = "emulated device, kernels %s";\n' "$hash" "$hash" >"$tmp/hash.cc"
$cxx -fPIC -c "$tmp/hash.cc" -o "$tmp/hash.o"
# The C++ runtime goes in, hidden: the library stands in for a driver that needs libc only.
$cxx -shared -static-libstdc++ -static-libgcc -Wl,--version-script="$here/src/exports.map" -Wl,-z,defs -o "$out.$$" \
  "$objects"/*.o "$tmp/kernels.o" "$tmp/hash.o" -ldl -lpthread
mv "$out.$$" "$out"
