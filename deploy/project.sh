#!/usr/bin/env bash
# Once for a project, by its owner: services, database, queue, accounts and their rights. Running it again is harmless.
source "$(dirname "$0")/names.sh"

exists() { "$@" >/dev/null 2>&1; }

gcloud services enable \
  artifactregistry.googleapis.com cloudbuild.googleapis.com cloudfunctions.googleapis.com \
  cloudscheduler.googleapis.com cloudtasks.googleapis.com eventarc.googleapis.com firebaserules.googleapis.com \
  firestore.googleapis.com iamcredentials.googleapis.com pubsub.googleapis.com run.googleapis.com \
  secretmanager.googleapis.com storage.googleapis.com

exists gcloud firestore databases describe --database='(default)' ||
  gcloud firestore databases create --database='(default)' --location="$FIRESTORE_LOCATION" --type=firestore-native \
    --delete-protection
exists gcloud artifacts repositories describe "$REPOSITORY" --location="$REGION" ||
  gcloud artifacts repositories create "$REPOSITORY" --location="$REGION" --repository-format=docker
exists gcloud storage buckets describe "gs://$MEDIA_BUCKET" ||
  gcloud storage buckets create "gs://$MEDIA_BUCKET" --location="$REGION" --uniform-bucket-level-access \
    --public-access-prevention
bash deploy/queue.sh

for name in worker functions tasks events deploy; do
  exists gcloud iam service-accounts describe "$(account "outbox-$name")" ||
    gcloud iam service-accounts create "outbox-$name" --display-name="Outbox $name"
done

# What each may do, and no more. The account of tasks and of the scheduler is only a name to show: it may do nothing.
may() { # may ACCOUNT ROLE [CONDITION]: in the whole project, for there is nothing smaller to allow it on
  gcloud projects add-iam-policy-binding "$PROJECT_ID" --member="serviceAccount:$1" --role="$2" \
    --condition="${3:-None}" --format=none
}
may_act_as() { # may_act_as ACCOUNT OTHER
  gcloud iam service-accounts add-iam-policy-binding "$2" --member="serviceAccount:$1" \
    --role=roles/iam.serviceAccountUser --format=none
}
own_secrets="title=outbox-secrets,expression=resource.name.startsWith(\"projects/$PROJECT_NUMBER/secrets/outbox-account-\")"
for runner in "$WORKER_ACCOUNT" "$FUNCTIONS_ACCOUNT"; do
  may "$runner" roles/datastore.user
  may "$runner" roles/secretmanager.secretAccessor "$own_secrets"
  may_act_as "$runner" "$TASKS_ACCOUNT" # to ask for tasks that carry its token
  gcloud tasks queues add-iam-policy-binding "$QUEUE" --location="$REGION" --member="serviceAccount:$runner" \
    --role=roles/cloudtasks.enqueuer --format=none
  for role in objectViewer objectCreator; do
    gcloud storage buckets add-iam-policy-binding "gs://$MEDIA_BUCKET" --member="serviceAccount:$runner" \
      --role="roles/storage.$role" --format=none
  done
done
# Providers fetch files by signed addresses, and an instance has no key to sign with but its own account.
gcloud iam service-accounts add-iam-policy-binding "$WORKER_ACCOUNT" --member="serviceAccount:$WORKER_ACCOUNT" \
  --role=roles/iam.serviceAccountTokenCreator --format=none

may "$EVENTS_ACCOUNT" roles/eventarc.eventReceiver

for role in cloudbuild.builds.builder cloudfunctions.developer cloudscheduler.admin cloudtasks.queueAdmin \
  datastore.indexAdmin firebaserules.admin run.admin serviceusage.serviceUsageConsumer; do
  may "$DEPLOY_ACCOUNT" "roles/$role"
done
for other in "$WORKER_ACCOUNT" "$FUNCTIONS_ACCOUNT" "$TASKS_ACCOUNT" "$EVENTS_ACCOUNT" "$DEPLOY_ACCOUNT"; do
  may_act_as "$DEPLOY_ACCOUNT" "$other"
done
