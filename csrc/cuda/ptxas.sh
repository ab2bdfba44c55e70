#!/bin/sh
# ptxas.sh assembles the kernels and prints a table of each one's registers, shared
# memory and spills. Exit 1 if a kernel is refused, or one of the hot ones (gather,
# product, attention by rows) spills.
#   usage: csrc/cuda/ptxas.sh [ARCH...]        sm_70 sm_80 sm_90
#     PTXAS=ptxas   assembles the committed PTX
#     NVCC=nvcc     compiles the sources instead, with NVCC_FLAGS
#     TABLE=FILE    also appends the rows there, with the tool's version in front
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${NVCC:-}" ]; then name=nvcc tool=$NVCC; else name=ptxas tool=${PTXAS:-ptxas}; fi
command -v "$tool" >/dev/null || { echo "ptxas.sh: no $tool: set PTXAS or NVCC; bench/gpu/toolkit.sh fetches them" >&2; exit 1; }
version=$("$tool" --version | sed -n 's/.*, V\([0-9.]*\).*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
printf '%-28s %-7s %-10s %5s %7s %6s\n' kernel arch from regs shared spills
for arch in ${*:-sm_70 sm_80 sm_90}; do
	if [ $name = nvcc ]; then
		from=sources
		# shellcheck disable=SC2086 # several flags are meant
		set -- "$tool" ${NVCC_FLAGS:-} -std=c++17 -O3 -arch="$arch" -Xptxas -v -cubin -o "$work/cubin" "$here/all.cu"
	else
		from=sm_80.ptx
		[ "${arch#sm_}" -ge 80 ] || from=sm_70.ptx
		set -- "$tool" -arch="$arch" -v -o "$work/cubin" "$here/$from"
	fi
	"$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "ptxas.sh: refused for $arch" >&2; exit 1; }
	# A version says of a kernel first what it spills, then what it uses; the names are
	# told as "Compiling entry function 'NAME'" or "Function properties for NAME".
	awk -v arch="$arch" -v from="$from" '
		/Compiling entry function/ { split($0, q, "\047"); name = q[2]; spill = 0 }
		/Function properties for/ { name = $NF; spill = 0 }
		/bytes spill stores/ { s = $0; sub(/.*frame, /, "", s); split(s, n, " "); spill = n[1] + n[5] }
		/Used [0-9]+ registers/ {
			regs = $0; sub(/.*Used /, "", regs); sub(/ .*/, "", regs)
			shared = 0
			if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART, RLENGTH) + 0
			printf "%-28s %-7s %-10s %5d %7d %6d\n", name, arch, from, regs, shared, spill
		}' "$work/log" | LC_ALL=C sort >"$work/table"
	[ -s "$work/table" ] || { cat "$work/log"; echo "ptxas.sh: $name says nothing of its kernels" >&2; exit 1; }
	cat "$work/table"
	[ -z "${TABLE:-}" ] || sed "s/^/$name $version /" "$work/table" >>"$TABLE"
	if awk '$6 > 0 && $1 ~ /^dk_(spmm_(bf16_)?[gwc]|spmmt_|gemm_[nt].*v4|gemm_(tf32|bf16)|gat_(v|dst_v|src_v))/ { print "ptxas.sh: " $1 " spills on " $2; bad = 1 } END { exit !bad }' "$work/table"; then
		status=1
	fi
done
exit $status
