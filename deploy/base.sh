#!/usr/bin/env bash
# base.sh [--pin]: the base image of the worker, by digest. A tag can be moved to other content; a digest cannot.
#
# The digest is in deploy/base-image, if that file exists: the image is then built from the same base until a person
# changes it. `base.sh --pin` asks the registry what the tag is now, and writes the file; commit it. Without the file
# each build asks, and uses what it got by digest, so that provenance and labels name it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
TAG=python:3.11-slim
PINNED=deploy/base-image

resolved() {
  command -v docker > /dev/null || { echo "base.sh: docker is needed to ask the registry for the digest of $TAG" >&2; return 1; }
  docker pull --quiet "$TAG" > /dev/null
  docker image inspect --format '{{index .RepoDigests 0}}' "$TAG"
}

if [ "${1:-}" = --pin ] || [ ! -f "$PINNED" ]; then base="$(resolved)"; else base="$(cat "$PINNED")"; fi
if ! [[ "$base" =~ ^[a-z0-9./_-]+@sha256:[0-9a-f]{64}$ ]]; then
  echo "base.sh: no digest of $TAG is known: ${base:-the registry did not answer}" >&2
  exit 1
fi
[ "${1:-}" != --pin ] || echo "$base" > "$PINNED"
echo "$base"
