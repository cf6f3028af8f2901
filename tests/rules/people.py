"""Who asks: people with a token of their own, on Google's Python client.

The client sends `Bearer owner` to an emulator, which no rule applies to. A person's client sends their token instead;
the emulator takes an unsigned one and believes it.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport
from grpc import aio

OWNER = "olga"
AGENT = "ann"
COLLEAGUE = "bob"
"""Another agent."""
VIEWER = "vic"
GUEST = "gus"
"""A member whose role is none of the three."""
ROLELESS = "rob"
"""A member document without a role."""
STRANGER = "sam"
"""An owner, but of another account."""
NEWCOMER = "nell"
"""A token, and no account at all."""
SIGNED_OUT = None
"""No token."""

ROLES = {OWNER: "owner", AGENT: "agent", COLLEAGUE: "agent", VIEWER: "viewer", GUEST: "guest"}


def api_on(channel: aio.Channel) -> FirestoreAsyncClient:
    """One for a channel: making it adds interceptors to the channel, which nothing takes away again."""
    return FirestoreAsyncClient(transport=FirestoreGrpcAsyncIOTransport(channel=channel))


class People:
    """Clients for a project, one for each person."""

    def __init__(self, api: FirestoreAsyncClient, project: str) -> None:
        self._api = api
        self._project = project

    def client_of(self, person: str | None) -> AsyncClient:
        return self._client(None if person is None else _token(person))

    def server_side(self) -> AsyncClient:
        """Past the rules, as the worker is."""
        return self._client("owner")

    def _client(self, bearer: str | None) -> AsyncClient:
        client = AsyncClient(project=self._project, credentials=AnonymousCredentials())
        client._firestore_api_internal = self._api
        metadata = [("google-cloud-resource-prefix", client._database_string)]
        client._rpc_metadata_internal = metadata + ([] if bearer is None else [("authorization", f"Bearer {bearer}")])
        return client


def _token(uid: str) -> str:
    claims = {"sub": uid, "user_id": uid, "iat": 0, "exp": 2**40}
    return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{_encoded(claims)}."


def _encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
