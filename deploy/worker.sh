#!/usr/bin/env bash
# worker.sh IMAGE: the worker on Cloud Run.
source "$(dirname "$0")/names.sh"

# The worker checks its callers' tokens itself: signature, audience, account. Cloud Run's own check would take the
# signature off the token before we see it, so it is left out; calls from outside of Google do not reach the worker.
gcloud run deploy "$WORKER" --region="$REGION" --image="${1:?which image}" \
  --service-account="$WORKER_ACCOUNT" --no-invoker-iam-check --ingress=internal \
  --cpu=1 --memory=512Mi --cpu-boost --concurrency="$WORKER_CONCURRENCY" --timeout=600 \
  --min-instances=0 --max-instances="$WORKER_INSTANCES" \
  --startup-probe=httpGet.path=/healthz,periodSeconds=1,failureThreshold=30,timeoutSeconds=1 \
  ${EXTRA_SECRETS:+"--set-secrets=$EXTRA_SECRETS"} \
  --set-env-vars="$SETTINGS"
