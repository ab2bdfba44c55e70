#!/usr/bin/env bash
# Builds, runs and tests Dorylus from a clean clone. Finds the toolchain, installs
# what is missing where it may, sets the build tags and leaves the rest to make.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat <<'TEXT'
usage: ./build.sh build        build bin/dorylus-engine and its workers' bin/dorylus-lambda
       ./build.sh run [FLAGS]  build it and run it; without flags it trains a GCN on Cora
       ./build.sh test         build, vet and run all tests
       ./build.sh deps         only install or name what is missing

It needs Go, gcc, make and OpenBLAS's static library; METIS is used where it is there. On Debian and
Ubuntu, as root, it installs what is missing (not Go). TAGS=noblas builds without OpenBLAS, which makes
dense products several times slower; CGO_ENABLED=0 builds without any C, slower still.
TEXT
}

say() { printf 'build.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# The oldest Go that go.mod accepts.
want_go() { sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod; }

check_go() {
  command -v go >/dev/null || die "Go is not installed: get Go $(want_go) or newer from https://go.dev/dl and put its bin folder into PATH"
  # go itself fetches a newer toolchain where go.mod asks for one and it may.
  go version >/dev/null 2>&1 || die "go does not run here: $(go version 2>&1 | tail -n 1)"
  local have
  have=$(go env GOVERSION | sed 's/^go//')
  if [ "$(printf '%s\n%s\n' "$(want_go)" "$have" | sort -V | head -n 1)" != "$(want_go)" ]; then
    die "Go $have is too old: Go $(want_go) or newer is needed; see https://go.dev/dl"
  fi
}

# Says whether the C compiler can link a program with these flags.
links() { printf 'int main(void){return 0;}' | ${CC:-gcc} -x c - -o /dev/null "$@" >/dev/null 2>&1; }

uses_cgo() { [ "${CGO_ENABLED:-1}" != 0 ]; }
uses_blas() { case ",${TAGS:-}," in *,noblas,*) return 1 ;; esac; [ "$(go env GOARCH)" = amd64 ]; }

# Debian's packages of what is missing; METIS is wanted, not needed, and so is a C++
# compiler for the tests on an emulated GPU.
wanted='^(libmetis-dev|g\+\+)$'
missing() {
  command -v make >/dev/null || echo make
  uses_cgo || return 0
  [ "${for_tests:-}" = "" ] || command -v g++ >/dev/null || echo g++
  if ! links; then
    echo gcc libc6-dev
    ! uses_blas || echo libopenblas-dev
    echo libmetis-dev
    return 0
  fi
  ! uses_blas || links -l:libopenblas.a || echo libopenblas-dev
  links -lmetis || echo libmetis-dev
}

install_missing() {
  local list needed
  list=$(missing | tr '\n' ' ')
  [ -n "${list// /}" ] || return 0
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    say "installing $list"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # a list of packages
    { apt-get update -q && apt-get install -q -y --no-install-recommends $list; } >&2 || say "apt-get did not install all of them"
    list=$(missing | tr '\n' ' ')
  fi
  needed=$(printf '%s' "$list" | tr ' ' '\n' | grep -vE "$wanted" | tr '\n' ' ' || true)
  if [ -n "${needed// /}" ]; then
    say "missing: $needed"
    say "  Debian, Ubuntu:  sudo apt-get install $needed"
    say "  Fedora:          sudo dnf install gcc make openblas-static metis-devel"
    die "install them and try again, or build without OpenBLAS (TAGS=noblas) or without C (CGO_ENABLED=0)"
  fi
  case " $list" in *" libmetis-dev "*) say "METIS is not installed (libmetis-dev): prepare orders vertices by label propagation instead" ;; esac
  case " $list" in *" g++ "*) say "g++ is not installed: tests on an emulated GPU are skipped" ;; esac
}

# The build tags that fit this machine, with those of the caller.
build_tags() {
  local tags=${TAGS:-}
  if uses_cgo && links -lmetis; then
    case ",$tags," in *,metis,*) ;; *) tags=${tags:+$tags,}metis ;; esac
  fi
  printf '%s' "$tags"
}

prepare() {
  check_go
  install_missing
  TAGS=$(build_tags)
  export TAGS
}

case "${1:-}" in
  build) prepare; exec make --no-print-directory build ;;
  run)
    shift
    prepare
    make --no-print-directory build >&2
    exec bin/dorylus-engine "$@"
    ;;
  test) for_tests=1; prepare; exec make --no-print-directory test-all ;;
  deps) check_go; install_missing ;;
  -h | --help | help | "") usage ;;
  *) usage >&2; exit 2 ;;
esac
