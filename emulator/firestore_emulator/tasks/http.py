"""The HTTP side: health, the REST API, the certificates of the token issuer, and the reset."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_emulator.rpc.service import Service
from firestore_emulator.tasks.oidc import TokenIssuer
from firestore_emulator.tasks.rest import firebase_rest_of, rest_of

CERTS_PATH = "/oidc/certs"


def http_app(
    issuer: TokenIssuer, reset: Callable[[], Awaitable[None]], service: Service, functions: str | None
) -> Starlette:
    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def certs(request: Request) -> Response:
        return JSONResponse(issuer.jwks(), headers={"Cache-Control": "public, max-age=3600"})

    async def discovery(request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": issuer.issuer,
                "jwks_uri": f"{request.url.scheme}://{request.url.netloc}{CERTS_PATH}",
                "id_token_signing_alg_values_supported": ["RS256"],
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "claims_supported": ["iss", "aud", "sub", "email", "email_verified", "iat", "exp"],
            }
        )

    async def clear(request: Request) -> Response:
        await reset()
        return JSONResponse({})

    return Starlette(
        routes=[
            Route("/", health),
            Route("/healthz", health),
            Route(CERTS_PATH, certs),
            Route("/.well-known/openid-configuration", discovery),
            Route("/emulator/v1/reset", clear, methods=["POST"]),
            Route("/v2/{path:path}", rest_of(service)),
            Route("/projects/{path:path}", firebase_rest_of(service, functions)),
        ]
    )
