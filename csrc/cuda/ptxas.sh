#!/bin/sh
# ptxas.sh hands the committed PTX to ptxas for sm_70, sm_80 and sm_90 and prints a
# table of each kernel's registers, shared memory and spills. Exit 1 if a kernel is
# refused, or one of the hot ones (gather, product, attention by rows) spills.
#   usage: csrc/cuda/ptxas.sh [ARCH...]        PTXAS=ptxas
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PTXAS=${PTXAS:-ptxas}
command -v "$PTXAS" >/dev/null || { echo "ptxas.sh: no $PTXAS: set PTXAS; it comes with the CUDA toolkit, or with the Python package nvidia-cuda-nvcc-cu12" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
printf '%-28s %-7s %-10s %5s %7s %6s\n' kernel arch ptx regs shared spills
for arch in ${*:-sm_70 sm_80 sm_90}; do
	ptx=sm_80
	[ "${arch#sm_}" -ge 80 ] || ptx=sm_70
	"$PTXAS" -arch="$arch" -v -o "$work/cubin" "$here/$ptx.ptx" >"$work/log" 2>&1 || { cat "$work/log"; echo "ptxas.sh: refused for $arch" >&2; exit 1; }
	awk -v arch="$arch" -v ptx="$ptx" '
		/Compiling entry function/ { split($0, q, "\047"); name = q[2] }
		/bytes spill stores/ { spills = $(0) ; sub(/.*frame, /, "", spills); split(spills, n, " "); spill = n[1] + n[5] }
		/Used [0-9]+ registers/ {
			regs = $0; sub(/.*Used /, "", regs); sub(/ .*/, "", regs)
			shared = 0
			if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART, RLENGTH) + 0
			printf "%-28s %-7s %-10s %5d %7d %6d\n", name, arch, ptx ".ptx", regs, shared, spill
			spill = 0
		}' "$work/log" | sort >"$work/table"
	cat "$work/table"
	if awk '$6 > 0 && $1 ~ /^dk_(spmm_(bf16_)?[gwc]|spmmt_|gemm_[nt].*v4|gemm_(tf32|bf16)|gat_(v|dst_v|src_v))/ { print "ptxas.sh: " $1 " spills on " $2; bad = 1 } END { exit !bad }' "$work/table"; then
		status=1
	fi
done
exit $status
