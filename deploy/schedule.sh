#!/usr/bin/env bash
# schedule.sh [URL]: the sweep, each minute, at the worker; or at the function `sweep`, where URL is its address.
source "$(dirname "$0")/names.sh"

job=(
  "$SWEEP_JOB" --location="$REGION" --schedule='* * * * *' --time-zone=Etc/UTC
  --uri="${1:-$WORKER_URL/tasks/sweep}" --http-method=post --message-body='{}'
  --oidc-service-account-email="$TASKS_ACCOUNT" --oidc-token-audience="$WORKER_URL"
  --attempt-deadline=120s --max-retry-attempts=0 # the next minute is the next try
)
if gcloud scheduler jobs describe "$SWEEP_JOB" --location="$REGION" >/dev/null 2>&1; then
  gcloud scheduler jobs update http "${job[@]}" --update-headers=Content-Type=application/json
else
  gcloud scheduler jobs create http "${job[@]}" --headers=Content-Type=application/json
fi
