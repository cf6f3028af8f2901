#!/usr/bin/env bash
# The queues that wake lanes, and that of receipts which came before their message: busy lanes do not delay those. A task
# for a lane is a hint, and what it was for stays in Firestore: one that is given up after an hour of failures is made
# again by the sweep. Late receipts are in tasks alone, and are lost with them.
source "$(dirname "$0")/names.sh"

# No more at once than the worker takes: beyond that Cloud Run answers 429, which slows the whole queue down.
room=$((WORKER_INSTANCES * WORKER_CONCURRENCY))

queue() { # queue NAME AT_ONCE
  gcloud tasks queues describe "$1" --location="$REGION" >/dev/null 2>&1 ||
    gcloud tasks queues create "$1" --location="$REGION"
  gcloud tasks queues update "$1" --location="$REGION" \
    --max-dispatches-per-second=500 --max-concurrent-dispatches="$2" \
    --min-backoff=1s --max-backoff=60s --max-doublings=6 \
    --max-attempts=20 --max-retry-duration=3600s
  for runner in "$WORKER_ACCOUNT" "$FUNCTIONS_ACCOUNT" "$CONSOLE_ACCOUNT"; do
    gcloud tasks queues add-iam-policy-binding "$1" --location="$REGION" --member="serviceAccount:$runner" \
      --role=roles/cloudtasks.enqueuer --format=none
  done
}

for name in $(lane_queues); do queue "$name" $((room * 9 / 10 / LANE_QUEUES)); done
queue "$RECEIPT_QUEUE" $((room / 10))
