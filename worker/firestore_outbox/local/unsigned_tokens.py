"""ID tokens as Google's emulator makes them: unsigned. Only a stack on a laptop believes them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jwt

TOKEN_SECONDS = 3600


def unsigned_token(uid: str, email: str, project: str, claims: Mapping[str, Any] | None = None) -> str:
    now = int(time.time())
    about = {
        "iss": f"https://securetoken.google.com/{project}",
        "aud": project,
        "sub": uid,
        "user_id": uid,
        "email": email,
        "auth_time": now,
        "iat": now,
        "exp": now + TOKEN_SECONDS,
        "firebase": {"identities": {}, "sign_in_provider": "password"},
        **(claims or {}),
    }
    return jwt.encode(about, "", algorithm="none")
