#!/usr/bin/env bash
# trigger.sh REPOSITORY [BRANCH]: deploy each push to BRANCH (main) with cloudbuild.yaml. REPOSITORY is the resource name of a
# repository that Cloud Build is connected to: projects/P/locations/R/connections/NAME/repositories/REPO (docs/deploy.md).
source "$(dirname "$0")/names.sh"

: "${1:?name the repository: projects/P/locations/R/connections/NAME/repositories/REPO}"
trigger=(
  --region="$REGION" --repository="$1" --branch-pattern="^${2:-main}\$" --build-config=cloudbuild.yaml
  --service-account="projects/$PROJECT_ID/serviceAccounts/$DEPLOY_ACCOUNT"
)
substitutions="_REGION=$REGION,_FIRESTORE_LOCATION=$FIRESTORE_LOCATION"
if gcloud builds triggers describe "$DEPLOY_TRIGGER" --region="$REGION" >/dev/null 2>&1; then
  gcloud builds triggers update github "$DEPLOY_TRIGGER" "${trigger[@]}" --update-substitutions="$substitutions"
else
  gcloud builds triggers create github --name="$DEPLOY_TRIGGER" "${trigger[@]}" --substitutions="$substitutions"
fi
