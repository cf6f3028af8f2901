#!/usr/bin/env bash
# image.sh TAG: builds the worker's image from a base image by digest, and refuses to build from anything else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base="$(deploy/base.sh)"
echo "base image: $base"
docker build --tag="${1:?which tag}" --build-arg="BASE=$base" \
  --label="org.opencontainers.image.base.name=${base%@*}" --label="org.opencontainers.image.base.digest=${base#*@}" .
