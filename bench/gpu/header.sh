#!/bin/sh
# Compiles assertions made by bench/gpu/header against a toolkit's cuda.h and lists the
# differences: what has another value, size, place or type, and what it does not declare.
# Exit 1 if there are differences of the first kind; 2 if it cannot say.
#   usage: header.sh asserts.c FOLDER_OF_cuda.h...        CC=gcc
set -u
asserts=$1
shift
include=
for folder in "$@"; do include="$include -I$folder"; done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # several flags are meant
LC_ALL=C ${CC:-gcc} -std=gnu11 -fsyntax-only -fmax-errors=0 -fno-diagnostics-show-caret -Wno-deprecated-declarations $include "$asserts" >"$log" 2>&1
if grep -E "fatal error" "$log"; then exit 2; fi
different=$(sed -n 's/.*static assertion failed: "\(.*\)".*/different: \1/p' "$log")
absent=$(sed -nE "s/.*error: .*'(\w+)' undeclared.*/not declared: \1/p; s/.*error: .*has no member named '(\w+)'.*/no such member: \1/p; s/.*error: unknown type name '(\w+)'.*/no such type: \1/p" "$log" | sort -u)
other=$(grep 'error:' "$log" | grep -vE "static assertion failed|undeclared|has no member|unknown type name|expression in static assertion" | head -n 20)
printf '%s assertions' "$(grep -c '^_Static_assert' "$asserts")"
sed -n 's/^#define CUDA_VERSION \([0-9]*\)/, CUDA_VERSION \1/p' "$1/cuda.h" | tr -d '\n'
echo
[ -z "$absent" ] || echo "$absent"
[ -z "$other" ] || echo "$other"
[ -z "$different" ] || { echo "$different"; exit 1; }
[ -z "$other" ] || exit 2
