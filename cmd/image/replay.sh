#!/bin/sh
# Builds both images by their Dockerfile without pulling anything, and runs this
# package's tests on them. The bases are made here: a minimal Debian by debootstrap, and
# upon it this machine's Go in the place of the image golang. Needs root, Debian's
# packages buildah and debootstrap (which it installs) and Debian's archive. CACHE=DIR
# keeps the bases for the next time.
set -eu
cd "$(dirname "$0")/../.."
say() { printf 'replay.sh: %s\n' "$*" >&2; }
[ "$(id -u)" = 0 ] || { say "this needs root, for chroot and mounts"; exit 1; }
go=${GO:-go}
suite=bookworm
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dorylus/image}
mkdir -p "$cache"

for tool in buildah debootstrap; do
  command -v $tool >/dev/null && continue
  say "installing $tool"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $tool; } >&2
done
b() { buildah --root "$cache/storage" --runroot "$cache/run" --storage-driver vfs "$@"; }
# Steps of a build are run by chroot and with this machine's network.
in_chroot="--isolation chroot --network host"
# What this machine trusts is trusted in the steps that fetch.
certs=/etc/ssl/certs/ca-certificates.crt

if [ ! -e "$cache/debian/etc/debian_version" ]; then
  say "making a Debian"
  rm -rf "$cache/debian.part" "$cache/debian"
  debootstrap --variant=minbase $suite "$cache/debian.part" >&2
  rm -rf "$cache"/debian.part/var/cache/apt/archives/*.deb
  mv "$cache/debian.part" "$cache/debian"
fi
if ! b inspect --type image "debian:$suite-slim" >/dev/null 2>&1; then
  c=$(b from scratch)
  b add "$c" "$cache/debian" / >/dev/null
  b commit -q --rm "$c" "debian:$suite-slim" >/dev/null
fi
version=$(sed -n 's/^ARG GO_VERSION=//p' Dockerfile)
if ! b inspect --type image "golang:$version-$suite" >/dev/null 2>&1; then
  say "making the base of the build stage"
  c=$(b from --pull-never "debian:$suite-slim")
  # shellcheck disable=SC2086 # words
  b run $in_chroot "$c" sh -c 'apt-get update -q && apt-get install -q -y --no-install-recommends ca-certificates' >&2
  b add "$c" "$certs" "$certs" >/dev/null
  b add "$c" "$("$go" env GOROOT)" /usr/local/go >/dev/null
  b config --env PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env GOPATH=/go "$c"
  b commit -q --rm "$c" "golang:$version-$suite" >/dev/null
fi

roots=$(mktemp -d)
containers=
finish() {
  for c in $containers; do b rm "$c" >/dev/null 2>&1 || true; done
  rm -rf "$roots"
}
trap finish EXIT
modules=$("$go" env GOMODCACHE)
mkdir -p "$modules" "$cache/go-build"
for target in engine lambda; do
  say "building the target $target"
  # shellcheck disable=SC2086 # words
  b build $in_chroot --pull-never --timestamp 0 --volume "$modules:/go/pkg/mod" --volume "$cache/go-build:$(getent passwd 0 | cut -d : -f 6)/.cache/go-build" \
    --build-arg VERSION="${VERSION:-unknown}" --target=$target -t "dorylus-$target" . >&2
  c=$(b from --pull-never "dorylus-$target")
  containers="$containers $c"
  ln -s "$(b mount "$c")" "$roots/$target"
  b inspect --type image "dorylus-$target" >"$roots/$target.json"
done
say "running the tests on the images"
DORYLUS_IMAGES=$roots "$go" test -tags "${TAGS:-metis}" -count=1 -v ./cmd/image
