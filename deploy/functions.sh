#!/usr/bin/env bash
# functions.sh [NAME...]: the functions, by default all but `sweep`, which is for workers that pull, and
# `on_event_created` and `events`, which are for your own handlers (docs/deploy.md).
source "$(dirname "$0")/names.sh"

# Only the folder of the source file is where Python looks for modules, and ours stand beside it. Not installed: the
# builder keeps what it installed for a day, and would serve yesterday's code.
common=(
  --gen2 --region="$REGION" --runtime=python311 --source=. --ignore-file=deploy/functions.gcloudignore
  --set-build-env-vars=GOOGLE_FUNCTION_SOURCE=functions/main.py
  --build-service-account="projects/$PROJECT_ID/serviceAccounts/$DEPLOY_ACCOUNT"
  --service-account="$FUNCTIONS_ACCOUNT"
  --cpu=1 --memory=512Mi --concurrency=80 --min-instances=0
  --set-env-vars="PYTHONPATH=$MODULES,$SETTINGS"
)

deploy() {
  case "$1" in
  on_outbox_created)
    gcloud functions deploy outbox-on-created "${common[@]}" --entry-point=on_outbox_created \
      --trigger-event-filters=type=google.cloud.firestore.document.v1.created \
      --trigger-event-filters='database=(default)' \
      --trigger-event-filters-path-pattern='document=outbox/{requestId}' \
      --trigger-location="$FIRESTORE_LOCATION" --trigger-service-account="$EVENTS_ACCOUNT" --retry \
      --no-allow-unauthenticated --ingress-settings=internal-only --timeout=60 --max-instances=20
    gcloud functions add-invoker-policy-binding outbox-on-created --region="$REGION" \
      --member="serviceAccount:$EVENTS_ACCOUNT"
    ;;
  on_event_created) # for your own handlers: events that clients and backends write (docs/handlers.md)
    gcloud functions deploy outbox-on-event "${common[@]}" --entry-point=on_event_created \
      --trigger-event-filters=type=google.cloud.firestore.document.v1.created \
      --trigger-event-filters='database=(default)' \
      --trigger-event-filters-path-pattern='document=inbox/{lane}/events/{eventId}' \
      --trigger-location="$FIRESTORE_LOCATION" --trigger-service-account="$EVENTS_ACCOUNT" --retry \
      --no-allow-unauthenticated --ingress-settings=internal-only --timeout=60 --max-instances=20
    gcloud functions add-invoker-policy-binding outbox-on-event --region="$REGION" \
      --member="serviceAccount:$EVENTS_ACCOUNT"
    ;;
  provider_webhook) # open: the provider's signature is what counts
    gcloud functions deploy outbox-webhook "${common[@]}" --entry-point=provider_webhook --trigger-http \
      --allow-unauthenticated --timeout=30 --max-instances=20
    ;;
  events) # for your own handlers, open: the scheme of OUTBOX_EVENTS is what counts (docs/handlers.md)
    gcloud functions deploy outbox-events "${common[@]}" --entry-point=events --trigger-http \
      ${EVENT_SECRETS:+--set-secrets="$EVENT_SECRETS"} \
      --allow-unauthenticated --timeout=30 --max-instances=20
    ;;
  enqueue) # open: the Firebase ID token is what counts
    gcloud functions deploy outbox-enqueue "${common[@]}" --entry-point=enqueue --trigger-http \
      --allow-unauthenticated --timeout=30 --max-instances=20
    ;;
  reminders | runs) # open, in the same way; a reminder to 100,000 is a hundred commits
    gcloud functions deploy "outbox-$1" "${common[@]}" --entry-point="$1" --trigger-http \
      --allow-unauthenticated --timeout=60 --max-instances=20
    ;;
  sweep) # as the worker: it checks the token itself, and only Google's own services get as far
    gcloud functions deploy outbox-sweep "${common[@]}" --entry-point=sweep --trigger-http \
      --allow-unauthenticated --ingress-settings=internal-only --timeout=120 --max-instances=1
    ;;
  *)
    echo "there is no function $1" >&2
    exit 2
    ;;
  esac
}

[ $# -gt 0 ] || set -- on_outbox_created provider_webhook enqueue reminders runs
for name in "$@"; do deploy "$name"; done
