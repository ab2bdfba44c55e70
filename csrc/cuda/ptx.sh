#!/bin/sh
# ptx.sh makes sm_70.ptx and sm_80.ptx again, in the folder OUT (this one by default).
# "ptx.sh --check" makes them elsewhere and compares: the committed files are those of
# clang 14.0.6; another clang need only compile the sources.
#   usage: csrc/cuda/ptx.sh [--check | OUT]        CLANG=clang++-14
set -eu
here=$(cd "$(dirname "$0")" && pwd)
CLANG=${CLANG:-clang++-14}
command -v "$CLANG" >/dev/null || { echo "ptx.sh: no $CLANG: install clang-14, or set CLANG" >&2; exit 1; }
check=0
out=$here
if [ "${1:-}" = --check ]; then
	check=1
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
elif [ $# -gt 0 ]; then
	out=$(cd "$1" && pwd)
fi
cd "$here"
ptx() { # ARCH PTX_VERSION
	"$CLANG" -x cuda -std=c++17 -O3 --cuda-device-only --cuda-gpu-arch="$1" -nocudainc -nocudalib \
		-Xclang -target-feature -Xclang "+$2" -ffp-contract=fast -Wall -Wextra -S -o "$out/$1.ptx" all.cu
}
ptx sm_70 ptx60 &
ptx sm_80 ptx70
wait $!
[ $check = 1 ] || exit 0
version=$("$CLANG" --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
if [ "$version" != 14.0.6 ]; then
	echo "ptx.sh: the sources compile with clang $version; not compared, which needs 14.0.6"
	exit 0
fi
for f in sm_70.ptx sm_80.ptx; do
	cmp "$out/$f" "$f" || { echo "ptx.sh: $f is not what the sources give: run make ptx" >&2; exit 1; }
done
echo "ptx.sh: sm_70.ptx and sm_80.ptx are what the sources give"
