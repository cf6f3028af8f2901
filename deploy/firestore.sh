#!/usr/bin/env bash
# Security rules, indexes, exemptions and the TTL policy, as firebase.json names them. Needs Node. Rules are replaced as a
# whole; indexes that the file does not name stay (no --force).
source "$(dirname "$0")/names.sh"

npx --yes firebase-tools@15.34.2 deploy --only firestore --project="$PROJECT_ID" --non-interactive
