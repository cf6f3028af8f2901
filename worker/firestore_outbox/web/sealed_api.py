"""`POST /v1/messages:open`: what members of a sealed account read, after the same check that the rules make.

The body is `{accountId, messages: [{messageId, parts}]}` with the parts as the message documents have them, at most 100
messages. The answer has the same messages with clear parts; a part that does not open stays `sealed`, with the reason
as its `error`. The caller has the ciphertext already, so the call reads the member's document and nothing else.

    400  the body is at fault; `error` says where         401  no Firebase ID token, or none that we believe
    403  not a member of the account                      503  Firestore or Cloud KMS: try again
"""

from __future__ import annotations

from typing import Any

from firestore_outbox import log
from firestore_outbox.accounts.roles import Action
from firestore_outbox.errors import Unavailable
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.messages import faults
from firestore_outbox.messages.limits import MAX_PARTS
from firestore_outbox.sealing.service import Sealing
from firestore_outbox.web.auth import User
from firestore_outbox.web.http_api import Answer, BadBody, NotAllowed, allow, fields_of, refusal

MAX_BODY_BYTES = 4 * 1024 * 1024
MOST_MESSAGES = 100


class SealedApi:
    def __init__(self, gateway: Gateway, sealing: Sealing | None) -> None:
        self._gateway = gateway
        self._sealing = sealing

    async def post(self, user: User, body: bytes) -> Answer:
        account_id = None
        try:
            fields = fields_of(body, required=("accountId", "messages"), optional=())
            account_id = str(fields["accountId"])
            messages = _messages(fields["messages"])
            await allow(self._gateway, user, account_id, Action.READ)
            if self._sealing is None:
                return refusal(503, "no key service is configured here")
            opened = [
                {"messageId": name, "parts": await self._sealing.open_parts(account_id, name, parts)}
                for name, parts in messages
            ]
            return Answer(200, {"messages": opened})
        except BadBody as error:
            return refusal(400, str(error))
        except NotAllowed as error:
            return refusal(403, str(error))
        except Unavailable as error:
            if account_id is not None:
                log.key_unavailable(account_id, error)
            return refusal(503, "the messages cannot be opened at the moment; try again")


def _messages(given: object) -> list[tuple[str, list[dict[str, Any]]]]:
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_MESSAGES:
        raise BadBody(f"messages must be a list of 1 to {MOST_MESSAGES} messages")
    found = []
    for number, one in enumerate(given):
        name, parts = (one.get("messageId"), one.get("parts")) if isinstance(one, dict) else (None, None)
        if not isinstance(name, str):
            raise BadBody(f"messages[{number}].messageId {faults.NO_TEXT}")
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts) or len(parts) > MAX_PARTS:
            raise BadBody(f"messages[{number}].parts {faults.PARTS}")
        found.append((name, parts))
    return found
