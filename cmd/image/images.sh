#!/bin/sh
# Builds the images dorylus and dorylus-lambda:
#
#   cmd/image/images.sh [FLAGS OF BUILD]     such as --platform=linux/arm64
#
# ENGINE=docker|podman|buildah chooses the container engine, IMAGE=NAME the name in place
# of dorylus, BASE_IMAGE and GO_VERSION the arguments of the Dockerfile.
set -eu
cd "$(dirname "$0")/../.."
say() { printf 'images.sh: %s\n' "$*" >&2; }

# Says what keeps an engine from working; nothing if it works.
trouble() {
  command -v "$1" >/dev/null || { echo "is not installed"; return; }
  "$1" info >/dev/null 2>"$log" || echo "does not work: $(tail -n 1 "$log")"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
engine=
reasons=
for e in ${ENGINE:-docker podman buildah}; do
  reason=$(trouble "$e")
  if [ -z "$reason" ]; then
    engine=$e
    break
  fi
  reasons="$reasons
  $e $reason"
done
if [ -z "$engine" ]; then
  say "no container engine can build images here:$reasons"
  say "install Docker or Podman, or start its service, and try again; ./build.sh build makes the programs without one"
  exit 1
fi

version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
name=${IMAGE:-dorylus}
# Files get the commit's time, so that the same commit upon the same bases gives the
# same layers.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
set -- --build-arg VERSION="$version" --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
  ${BASE_IMAGE:+--build-arg BASE_IMAGE="$BASE_IMAGE"} ${GO_VERSION:+--build-arg GO_VERSION="$GO_VERSION"} "$@"
case $engine in
docker)
  DOCKER_BUILDKIT=1
  export DOCKER_BUILDKIT
  set -- --build-arg SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" "$@"
  ;;
*) set -- --timestamp "$SOURCE_DATE_EPOCH" --format docker "$@" ;;
esac
for target in engine lambda; do
  [ "$target" = engine ] && tag=$name || tag=$name-lambda
  "$engine" build --target="$target" -t "$tag:$version" -t "$tag:latest" "$@" .
  say "built $tag:$version"
done
