#!/usr/bin/env bash
# console.sh [--if-deployed] [IMAGE]: the console on Cloud Run (docs/console.md). IMAGE is the worker's; by default the one
# that the worker runs now. FIREBASE_API_KEY is the web API key of the Firebase project, which is public: needed the first
# time, kept afterwards. With --if-deployed a project that has no console gets none: each release runs it so.
source "$(dirname "$0")/names.sh"

only_if_deployed=no
[ "${1:-}" != --if-deployed ] || { only_if_deployed=yes; shift; }

is_deployed() { gcloud run services describe "$CONSOLE" --region="$REGION" --format='value(metadata.name)' >/dev/null 2>&1; }

if [ -n "${FIREBASE_API_KEY:-}" ]; then
  settings="--set-env-vars=$SETTINGS,OUTBOX_FIREBASE_API_KEY=$FIREBASE_API_KEY"
elif is_deployed; then
  settings="--update-env-vars=$SETTINGS" # the others stay, and the key with them
elif [ "$only_if_deployed" = yes ]; then
  echo "console.sh: this project has no console. To add it: FIREBASE_API_KEY=... deploy/console.sh (docs/console.md)"
  exit 0
else
  echo "console.sh: set FIREBASE_API_KEY to the web API key of the project (Firebase console: Project settings, General)" >&2
  exit 2
fi

image="${1:-$(gcloud run services describe "$WORKER" --region="$REGION" --format='value(spec.template.spec.containers[0].image)' || true)}"
[ -n "$image" ] || { echo "console.sh: the worker is not deployed yet, and no image is named; run deploy/worker.sh IMAGE first" >&2; exit 2; }

# Browsers call it, so it is open: the console checks each session cookie itself. One instance, because viewers share what
# an instance reads, and an audit that runs is in its memory; a live page keeps one request open, and is cut after a minute.
gcloud run deploy "$CONSOLE" --region="$REGION" --image="$image" \
  --command=python --args=-m,firestore_outbox.cli,console \
  --service-account="$CONSOLE_ACCOUNT" --no-invoker-iam-check --ingress=all \
  --cpu=1 --memory=512Mi --cpu-boost --concurrency=500 --timeout=120 \
  --min-instances=0 --max-instances=1 \
  --startup-probe=httpGet.path=/healthz,periodSeconds=1,failureThreshold=30,timeoutSeconds=1 \
  ${EXTRA_SECRETS:+"--set-secrets=$EXTRA_SECRETS"} \
  "$settings"
echo "the console: $CONSOLE_URL"
echo "for sign-in with Google, add $CONSOLE_URL/sign-in/google/back to the authorised redirect URIs of the OAuth client"
