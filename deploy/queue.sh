#!/usr/bin/env bash
# The queue that wakes lanes. A task is a hint, and what it was for stays in Firestore: one that is given up after an
# hour of failures is made again by the sweep. Late receipts are in tasks too, and are lost with them.
source "$(dirname "$0")/names.sh"

gcloud tasks queues describe "$QUEUE" --location="$REGION" >/dev/null 2>&1 ||
  gcloud tasks queues create "$QUEUE" --location="$REGION"

# No more at once than the worker takes: beyond that Cloud Run answers 429, which slows the whole queue down.
gcloud tasks queues update "$QUEUE" --location="$REGION" \
  --max-dispatches-per-second=500 \
  --max-concurrent-dispatches=$((WORKER_INSTANCES * WORKER_CONCURRENCY)) \
  --min-backoff=1s --max-backoff=60s --max-doublings=6 \
  --max-attempts=20 --max-retry-duration=3600s
