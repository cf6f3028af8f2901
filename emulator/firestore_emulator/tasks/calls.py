"""The HTTP request of one attempt, with the headers that production adds."""

from __future__ import annotations

from firestore_emulator.outgoing import HttpCall
from firestore_emulator.tasks import names, protos
from firestore_emulator.tasks.attempts import Claim
from firestore_emulator.tasks.oidc import TokenIssuer


def call_of(claim: Claim, issuer: TokenIssuer) -> HttpCall:
    request = claim.request
    headers = dict(request.headers)
    headers["X-CloudTasks-QueueName"] = names.queue_id(claim.queue_name)
    headers["X-CloudTasks-TaskName"] = claim.task_id
    headers["X-CloudTasks-TaskRetryCount"] = str(claim.retries)
    headers["X-CloudTasks-TaskExecutionCount"] = str(claim.executions)
    headers["X-CloudTasks-TaskETA"] = f"{claim.schedule_us // 1_000_000}.{claim.schedule_us % 1_000_000:06d}"
    if claim.previous_status is not None:
        headers["X-CloudTasks-TaskPreviousResponse"] = str(claim.previous_status)
        headers["X-CloudTasks-TaskRetryReason"] = ""  # production sends it, and leaves it empty for HTTP targets
    kind = request.WhichOneof("authorization_header")
    if kind == "oidc_token":
        token = issuer.id_token(request.oidc_token.service_account_email, request.oidc_token.audience or request.url)
        headers["Authorization"] = f"Bearer {token}"
    elif kind == "oauth_token":
        headers["Authorization"] = f"Bearer {issuer.access_token(request.oauth_token.service_account_email)}"
    return HttpCall(
        method=protos.METHODS[request.http_method],
        url=request.url,
        headers=headers,
        body=request.body,
        deadline=claim.deadline,
    )
