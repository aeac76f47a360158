"""Signatures of webhooks: the Standard Webhooks scheme both ways, and GitHub's for what comes in.

A signature is over the bytes as they travelled, and compared in constant time.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable

SECRET_PREFIX = "whsec_"  # noqa: S105 - how such secrets begin, not one of them
GITHUB_PREFIX = "sha256="
VERSION = "v1"


def standard_key(secret: str) -> bytes:
    """The key behind a secret: `whsec_` and base64 as the scheme has it, else the text itself."""
    if secret.startswith(SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def sign_standard(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` of a message."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.digest(standard_key(secret), signed, "sha256")
    return f"{VERSION},{base64.b64encode(digest).decode()}"


def is_standard(
    secrets: Iterable[str], signatures: str, message_id: str, timestamp: int, body: bytes
) -> bool:
    """Whether one of the signatures, which stand apart by spaces, was made with one of `secrets`."""
    given = [one.encode(errors="replace") for one in signatures.split(" ") if one]
    return any(
        hmac.compare_digest(one, sign_standard(secret, message_id, timestamp, body).encode())
        for secret in secrets
        for one in given
    )


def sign_github(secret: str, body: bytes) -> str:
    """The `X-Hub-Signature-256` of a body."""
    return GITHUB_PREFIX + hmac.digest(secret.encode(), body, "sha256").hex()


def is_github(secrets: Iterable[str], signature: str, body: bytes) -> bool:
    """Whether the signature was made with one of `secrets`."""
    given = signature.encode(errors="replace")
    return any(hmac.compare_digest(given, sign_github(secret, body).encode()) for secret in secrets)
