#!/usr/bin/env bash
# The release gate: installs what the tests need beside Python, then runs what CI runs. cloudbuild.yaml calls it before
# anything is deployed, in an image with Python, make and Git. Node and gcloud with Google's emulator are in $TOOLS,
# where earlier steps copied them.
set -euo pipefail
cd "$(dirname "$0")/.."
TOOLS="${TOOLS:-/tools}"
if [ ! -d "$TOOLS" ]; then
    echo "deploy/gate.sh installs packages and is for Cloud Build, where $TOOLS has Node and gcloud; here, run: .ci/run" >&2
    exit 1
fi
export PATH="$TOOLS/node/bin:$TOOLS/google-cloud-sdk/bin:$PATH" DEBIAN_FRONTEND=noninteractive

apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium default-jre-headless

# tests/system/upgrade runs the previous version out of the history. The source belongs to another user here.
git config --global --add safe.directory "$PWD"
if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
    git fetch --quiet --unshallow
fi

exec .ci/run
