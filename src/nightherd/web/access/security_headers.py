"""Headers by which browsers protect their users: what a page may load and run, and who may embed or read an answer."""

from __future__ import annotations

from collections.abc import Iterable

Header = tuple[bytes, bytes]

PAGE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'self'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types nightherd dompurify",
    )
)
"""Of the dashboard's page: everything comes from this server, and no text becomes a script."""
WORKER_POLICY = "default-src 'none'; img-src 'self'; frame-ancestors 'none'"
"""Of the service worker: it loads nothing but the icon of its notifications."""
ANSWER_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
"""Of every other answer: opened as a page, it loads and runs nothing."""

EVERY_ANSWER = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": ANSWER_POLICY,
    "cache-control": "no-store",
}
"""What an answer has unless it says otherwise."""
_ENCODED = {name.encode(): value.encode() for name, value in EVERY_ANSWER.items()}


def with_security_headers(headers: Iterable[Header]) -> list[Header]:
    """`headers`, and those of `EVERY_ANSWER` that are not among them."""
    given = list(headers)
    names = {name.lower() for name, _ in given}
    return [*given, *(one for one in _ENCODED.items() if one[0] not in names)]
