#!/usr/bin/env bash
# Hands the manifests of launch k8s to a real API server: etcd and kube-apiserver, without
# any node. Takes them from KUBE_APISERVER and ETCD, or from PATH, or from what an earlier
# K8S_BUILD=1 has built; that takes long. Where there is no API server the manifests
# are only decoded strictly, which it says; K8S_REQUIRE=1 makes that a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=${K8S_VERSION:-1.37.2}
kept="${XDG_CACHE_HOME:-$HOME/.cache}/dorylus-k8s/kube-apiserver-$version"
: "${GO:=go}"

say() { printf 'k8s-test: %s\n' "$*" >&2; }

# builds kube-apiserver from its module. Those below k8s.io that are developed with it have
# no versions there: they are published apart, as v0.MINOR.PATCH.
build() {
  local folder mod staged name
  staged="v0.${version#*.}"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' RETURN
  say "building kube-apiserver $version into $kept: half an hour on two cores"
  mod=$(cd "$folder" && "$GO" list -m -f '{{.GoMod}}' "k8s.io/kubernetes@v$version")
  (
    cd "$folder"
    "$GO" mod init apiserver 2>/dev/null
    "$GO" mod edit -require "k8s.io/kubernetes@v$version" -go "$(sed -n 's/^go //p' "$mod")"
    for name in $(sed -nE 's|.*(k8s\.io/[a-z0-9.-]+) => \./staging/src/.*|\1|p' "$mod" | sort -u); do
      "$GO" mod edit -replace "$name=$name@$staged"
    done
    if [ "${K8S_BUILD:-}" = resolve ]; then # only whether all versions are there
      "$GO" list -mod=mod -m all >/dev/null
      exit
    fi
    for name in component-base/version client-go/pkg/version; do
      flags="${flags:-} -X k8s.io/$name.gitVersion=v$version -X k8s.io/$name.gitMajor=1 -X k8s.io/$name.gitMinor=$(cut -d. -f2 <<<"$version")"
    done
    mkdir -p "$(dirname "$kept")"
    CGO_ENABLED=0 nice -n 5 "$GO" build -mod=mod -trimpath -ldflags "-s -w $flags" -o "$kept.new" k8s.io/kubernetes/cmd/kube-apiserver
    mv "$kept.new" "$kept"
  )
}

# The first of these programs that is there.
first() {
  local p
  for p in "$@"; do
    if [ -n "$p" ] && command -v -- "$p"; then return; fi
  done
  return 1
}

if [ -n "${KUBE_APISERVER:-}" ] && ! first "$KUBE_APISERVER" >/dev/null; then
  say "KUBE_APISERVER=$KUBE_APISERVER: there is no such program"
  exit 1
fi
if [ -n "${K8S_BUILD:-}" ] && ! first "${KUBE_APISERVER:-}" "$kept" >/dev/null; then
  build
  [ "$K8S_BUILD" != resolve ] || exit 0
fi
why=
apiserver=$(first "${KUBE_APISERVER:-}" kube-apiserver "$kept") || why="kube-apiserver is not installed: name one by KUBE_APISERVER, or build it by K8S_BUILD=1 (half an hour)"
etcd=$(first "${ETCD:-}" etcd) || why="etcd is not installed (Debian: etcd-server)"
if [ -n "$why" ]; then
  say "$why"
  if [ "${K8S_REQUIRE:-}" = 1 ]; then
    exit 1
  fi
  say "NO API SERVER SEES THE MANIFESTS: they are only decoded strictly, by the types of k8s.io/api"
  "$GO" test -count=1 -tags "${TAGS:-}" -run '^(TestJobSet|TestPlainJobs|TestManifest|TestControlPlane)' ./cluster/launch
  say "decoded; no API server has seen them"
  exit
fi
say "manifests go to $apiserver, behind $etcd"
DORYLUS_KUBE_APISERVER=$(realpath "$apiserver") DORYLUS_ETCD=$(realpath "$etcd") "$GO" test -count=1 -v -tags "${TAGS:-}" -run '^(TestJobSet|TestPlainJobs|TestAPIServer)' ./cluster/launch
