"""The system's cryptographic random source."""

from __future__ import annotations

import secrets

from nightherd.model.ids import ALPHABET


def random_text(length: int) -> str:
    """`length` characters of the id alphabet, unpredictable."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))
