#!/usr/bin/env bash
# functions.sh [NAME...]: the functions, by default all but `sweep`, which is for workers that pull, and
# `on_event_created` and `events`, which are for your own handlers (docs/deploy.md), and `open_messages`, which is for
# sealed accounts (docs/privacy.md), and `billing_webhook`, which is for plans that are sold (docs/billing.md).
source "$(dirname "$0")/names.sh"

# Only the folder of the source file is where Python looks for modules, and ours stand beside it. Not installed: the
# builder keeps what it installed for a day, and would serve yesterday's code.
common=(
  --gen2 --region="$REGION" --runtime=python311 --source=. --ignore-file=deploy/functions.gcloudignore
  --set-build-env-vars=GOOGLE_FUNCTION_SOURCE=functions/main.py
  --build-service-account="projects/$PROJECT_ID/serviceAccounts/$DEPLOY_ACCOUNT"
  --service-account="$FUNCTIONS_ACCOUNT"
  --cpu=1 --memory=512Mi --concurrency=80 --min-instances=0
  ${EXTRA_SECRETS:+"--set-secrets=$EXTRA_SECRETS"}
  --set-env-vars="PYTHONPATH=$MODULES,$SETTINGS"
)

on_created() { # on_created FUNCTION ENTRY_POINT DOCUMENTS: called for each new document of the pattern
  gcloud functions deploy "$1" "${common[@]}" --entry-point="$2" \
    --trigger-event-filters=type=google.cloud.firestore.document.v1.created \
    --trigger-event-filters="database=$DATABASE" \
    --trigger-event-filters-path-pattern="document=$3" \
    --trigger-location="$FIRESTORE_LOCATION" --trigger-service-account="$EVENTS_ACCOUNT" --retry \
    --no-allow-unauthenticated --ingress-settings=internal-only --timeout=60 --max-instances=20
  gcloud functions add-invoker-policy-binding "$1" --region="$REGION" --member="serviceAccount:$EVENTS_ACCOUNT"
}

deploy() {
  case "$1" in
  on_outbox_created) # it sends messages that come alone: its timeout is OUTBOX_FUNCTION_SECONDS, above the longest call
    on_created outbox-on-created on_outbox_created 'outbox/{requestId}'
    ;;
  on_cancel_created) on_created outbox-on-cancel on_cancel_created 'cancels/{requestId}' ;;
  on_event_created) # for your own handlers: events that clients and backends write (docs/handlers.md)
    on_created outbox-on-event on_event_created 'inbox/{lane}/events/{eventId}'
    ;;
  on_reminder_created) # reminders that clients write (docs/fan-out.md)
    on_created outbox-on-reminder on_reminder_created 'reminders/{reminderId}'
    ;;
  on_request_created) # what members ask of runs and reminders
    on_created outbox-on-request on_request_created '{collection}/{id}/requests/{requestId}'
    ;;
  provider_webhook) # open: the provider's signature is what counts
    gcloud functions deploy outbox-webhook "${common[@]}" --entry-point=provider_webhook --trigger-http \
      --allow-unauthenticated --timeout=30 --max-instances=20
    ;;
  events) # for your own handlers, open: the scheme of OUTBOX_EVENTS is what counts (docs/handlers.md)
    gcloud functions deploy outbox-events "${common[@]}" --entry-point=events --trigger-http \
      --allow-unauthenticated --timeout=30 --max-instances=20
    ;;
  enqueue) # open: the Firebase ID token is what counts
    gcloud functions deploy outbox-enqueue "${common[@]}" --entry-point=enqueue --trigger-http \
      --allow-unauthenticated --timeout=30 --max-instances=20
    ;;
  accounts | reminders | runs) # open, in the same way; a reminder to 100,000 is a hundred commits
    gcloud functions deploy "outbox-$1" "${common[@]}" --entry-point="$1" --trigger-http \
      --allow-unauthenticated --timeout=60 --max-instances=20
    ;;
  files) # open in the same way: uploads of apps, and addresses of files; the bytes go to Cloud Storage directly
    gcloud functions deploy outbox-files "${common[@]}" --entry-point=files --trigger-http \
      --allow-unauthenticated --timeout=30 --max-instances=20
    ;;
  open_messages) # for sealed accounts, open in the same way (docs/privacy.md)
    gcloud functions deploy outbox-open "${common[@]}" --entry-point=open_messages --trigger-http \
      --allow-unauthenticated --timeout=30 --max-instances=20
    ;;
  billing_webhook) # for plans that are sold, open: Stripe's signature is what counts (docs/billing.md)
    gcloud functions deploy outbox-billing "${common[@]}" --entry-point=billing_webhook --trigger-http \
      --allow-unauthenticated --timeout=60 --max-instances=5
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

[ $# -gt 0 ] || set -- on_outbox_created on_cancel_created on_reminder_created on_request_created \
  provider_webhook enqueue reminders runs accounts files
for name in "$@"; do deploy "$name"; done
