# Sourced by every script here: names, addresses and settings that they share. PROJECT_ID must be set; REGION may be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${PROJECT_ID:?set PROJECT_ID to the id of the Google Cloud project}"
REGION="${REGION:-us-central1}" # of Cloud Run, Cloud Tasks and the functions
FIRESTORE_LOCATION="${FIRESTORE_LOCATION:-$REGION}" # a region, or nam5 or eur3; a database stays where it was made
DATABASE="${OUTBOX_DATABASE:-(default)}" # another name needs "database" beside "rules" in firebase.json too
PROJECT_NUMBER="${PROJECT_NUMBER:-$(gcloud projects describe "$PROJECT_ID" --format='value(projectNumber)')}"
export CLOUDSDK_CORE_PROJECT="$PROJECT_ID" CLOUDSDK_CORE_DISABLE_PROMPTS=1

MODULES=/workspace/worker # where the functions find firestore_outbox
[ ! -f deploy/own.sh ] || source deploy/own.sh # a project that installs the distribution has its own (outbox init)

REPOSITORY=outbox
QUEUE=outbox-lanes
LANE_QUEUES="${LANE_QUEUES:-1}" # 500 tasks a second each; the second is outbox-lanes-1, and so on
RECEIPT_QUEUE=outbox-receipts
lane_queues() { echo "$QUEUE"; for number in $(seq 1 $((LANE_QUEUES - 1))); do echo "$QUEUE-$number"; done; }
WORKER=outbox-worker
CONSOLE=outbox-console
SWEEP_JOB=outbox-sweep
DEPLOY_TRIGGER=outbox-deploy
MEDIA_BUCKET="$PROJECT_ID-outbox-media"

# Known before the first deployment, so that the worker can be told its own address: it is the audience of its callers.
WORKER_URL="https://$WORKER-$PROJECT_NUMBER.$REGION.run.app"
CONSOLE_URL="https://$CONSOLE-$PROJECT_NUMBER.$REGION.run.app"

# How much at once. An instance keeps one request open for its busy lanes, and answers the others within a second.
WORKER_INSTANCES="${WORKER_INSTANCES:-20}"
WORKER_CONCURRENCY=80

account() { echo "$1@$PROJECT_ID.iam.gserviceaccount.com"; }
WORKER_ACCOUNT="$(account outbox-worker)"       # the worker runs as it
FUNCTIONS_ACCOUNT="$(account outbox-functions)" # the functions run as it
CONSOLE_ACCOUNT="$(account outbox-console)"     # the console runs as it
TASKS_ACCOUNT="$(account outbox-tasks)"         # whose tokens Cloud Tasks and Cloud Scheduler show; it has no rights
EVENTS_ACCOUNT="$(account outbox-events)"       # as which Eventarc calls on_outbox_created
DEPLOY_ACCOUNT="$(account outbox-deploy)"       # as which Cloud Build runs cloudbuild.yaml
SIGN_IN_ROLE=outboxConsoleSignIn # what the console may do in Firebase Auth

# Settings of the worker, the functions and the console, by the names of worker/firestore_outbox/settings.py.
SETTINGS="OUTBOX_PROJECT=$PROJECT_ID,OUTBOX_LOCATION=$REGION,OUTBOX_QUEUE=$QUEUE"
SETTINGS+=",OUTBOX_QUEUES=$LANE_QUEUES,OUTBOX_RECEIPT_QUEUE=$RECEIPT_QUEUE"
SETTINGS+=",OUTBOX_WORKER_URL=$WORKER_URL,OUTBOX_SERVICE_ACCOUNT=$TASKS_ACCOUNT"
SETTINGS+=",OUTBOX_WEBHOOK_URL=https://$REGION-$PROJECT_ID.cloudfunctions.net/outbox-webhook"
SETTINGS+=",OUTBOX_CREDENTIALS_SECRETS=projects/$PROJECT_ID,OUTBOX_MEDIA_BUCKET=$MEDIA_BUCKET"
[ "$DATABASE" = '(default)' ] || SETTINGS+=",OUTBOX_DATABASE=$DATABASE"
SETTINGS+="${EXTRA_SETTINGS:+,$EXTRA_SETTINGS}" # yours, such as EXTRA_SETTINGS=OUTBOX_GLOBAL_PER_SECOND=80
# EXTRA_SECRETS: your settings that are secret, as VARIABLE=outbox-setting-NAME:latest with commas between them, from
# Secret Manager. Worker and functions may read secrets whose names begin so.
