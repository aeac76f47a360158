"""Browser sessions: who is logged in to the dashboard. Only hashes of their secrets are kept."""

from __future__ import annotations

from datetime import datetime

import msgspec


class BrowserSession(msgspec.Struct, frozen=True, kw_only=True):
    """One browser that logged in. A request shows its cookie and the secret that its page keeps."""

    id: str
    """SHA-256 of the cookie, in hex."""
    secret_hash: str
    """SHA-256 of the page's secret, in hex."""
    person: str
    token_hash: str | None = None
    """Hash of the token it logged in with: a revoked or replaced token ends it. None after a login code."""
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None


class AddBrowserSession(msgspec.Struct, frozen=True, kw_only=True):
    """Log a browser in."""

    session: BrowserSession


class EndBrowserSessions(msgspec.Struct, frozen=True, kw_only=True):
    """Log browsers out. Those that are logged out already stay as they are."""

    ids: tuple[str, ...]
    at: datetime
