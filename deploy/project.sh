#!/usr/bin/env bash
# Once for a project, by its owner: services, database, queue, accounts and their rights. Running it again is harmless.
source "$(dirname "$0")/names.sh"

exists() { "$@" >/dev/null 2>&1; }

gcloud services enable \
  artifactregistry.googleapis.com cloudbuild.googleapis.com cloudfunctions.googleapis.com \
  cloudscheduler.googleapis.com cloudtasks.googleapis.com eventarc.googleapis.com fcm.googleapis.com firebaserules.googleapis.com \
  firestore.googleapis.com iamcredentials.googleapis.com identitytoolkit.googleapis.com pubsub.googleapis.com run.googleapis.com \
  secretmanager.googleapis.com storage.googleapis.com

exists gcloud firestore databases describe --database="$DATABASE" ||
  gcloud firestore databases create --database="$DATABASE" --location="$FIRESTORE_LOCATION" --type=firestore-native \
    --delete-protection
exists gcloud artifacts repositories describe "$REPOSITORY" --location="$REGION" ||
  gcloud artifacts repositories create "$REPOSITORY" --location="$REGION" --repository-format=docker
exists gcloud storage buckets describe "gs://$MEDIA_BUCKET" ||
  gcloud storage buckets create "gs://$MEDIA_BUCKET" --location="$REGION" --uniform-bucket-level-access \
    --public-access-prevention
for name in worker functions console tasks events deploy; do
  exists gcloud iam service-accounts describe "$(account "outbox-$name")" ||
    gcloud iam service-accounts create "outbox-$name" --display-name="Outbox $name"
done
bash deploy/queue.sh # and who may add tasks to them

# What each may do, and no more. The account of tasks and of the scheduler is only a name to show: it may do nothing.
may() { # may ACCOUNT ROLE [CONDITION]: in the whole project, for there is nothing smaller to allow it on
  gcloud projects add-iam-policy-binding "$PROJECT_ID" --member="serviceAccount:$1" --role="$2" \
    --condition="${3:-None}" --format=none
}
may_act_as() { # may_act_as ACCOUNT OTHER
  gcloud iam service-accounts add-iam-policy-binding "$2" --member="serviceAccount:$1" \
    --role=roles/iam.serviceAccountUser --format=none
}
may_in_bucket() { # may_in_bucket ACCOUNT ROLE
  gcloud storage buckets add-iam-policy-binding "gs://$MEDIA_BUCKET" --member="serviceAccount:$1" \
    --role="roles/storage.$2" --format=none
}
own_secrets="title=outbox-secrets,expression=resource.name.startsWith(\"projects/$PROJECT_NUMBER/secrets/outbox-account-\")"
own_secrets+=" || resource.name.startsWith(\"projects/$PROJECT_NUMBER/secrets/outbox-setting-\")" # EXTRA_SECRETS
for runner in "$WORKER_ACCOUNT" "$FUNCTIONS_ACCOUNT"; do
  may "$runner" roles/datastore.user
  may "$runner" roles/secretmanager.secretAccessor "$own_secrets"
  may_act_as "$runner" "$TASKS_ACCOUNT" # to ask for tasks that carry its token
  for role in objectViewer objectCreator; do may_in_bucket "$runner" "$role"; done
done
# Providers and apps fetch files by signed addresses, and an instance has no key to sign with but its own account.
for signer in "$WORKER_ACCOUNT" "$FUNCTIONS_ACCOUNT"; do
  gcloud iam service-accounts add-iam-policy-binding "$signer" --member="serviceAccount:$signer" \
    --role=roles/iam.serviceAccountTokenCreator --format=none
done

# The console reads files to say which are missing, and secrets to ask the provider whether they work. Of Firebase Auth it
# needs three rights: to make a session cookie, to look whether it was revoked, and to revoke. Google's role for them could
# also delete users.
sign_in=(--title="Outbox console: sign-in" --stage=GA
  --permissions=firebaseauth.users.createSession,firebaseauth.users.get,firebaseauth.users.update)
if exists gcloud iam roles describe "$SIGN_IN_ROLE" --project="$PROJECT_ID"; then
  gcloud iam roles update "$SIGN_IN_ROLE" --project="$PROJECT_ID" "${sign_in[@]}" --format=none
else
  gcloud iam roles create "$SIGN_IN_ROLE" --project="$PROJECT_ID" "${sign_in[@]}" --format=none
fi
may "$CONSOLE_ACCOUNT" roles/datastore.user
may "$CONSOLE_ACCOUNT" roles/secretmanager.secretAccessor "$own_secrets"
may "$CONSOLE_ACCOUNT" "projects/$PROJECT_ID/roles/$SIGN_IN_ROLE"
may_act_as "$CONSOLE_ACCOUNT" "$TASKS_ACCOUNT"
may_in_bucket "$CONSOLE_ACCOUNT" objectViewer

may "$WORKER_ACCOUNT" roles/firebasecloudmessaging.admin # notifications on members' devices
may "$EVENTS_ACCOUNT" roles/eventarc.eventReceiver

for role in cloudbuild.builds.builder cloudfunctions.developer cloudscheduler.admin cloudtasks.queueAdmin \
  datastore.indexAdmin firebaserules.admin run.admin serviceusage.serviceUsageConsumer; do
  may "$DEPLOY_ACCOUNT" "roles/$role"
done
for other in "$WORKER_ACCOUNT" "$FUNCTIONS_ACCOUNT" "$CONSOLE_ACCOUNT" "$TASKS_ACCOUNT" "$EVENTS_ACCOUNT" "$DEPLOY_ACCOUNT"; do
  may_act_as "$DEPLOY_ACCOUNT" "$other"
done
