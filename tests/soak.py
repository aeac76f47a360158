"""How long a test that could go on for ever goes on: briefly in `make test`, for long in `make soak`."""

from __future__ import annotations

import os

VARIABLE = "NIGHTHERD_SOAK"
"""Set and not empty: the long numbers, everywhere."""


def often(usual: int, *, soak: int) -> int:
    """`usual`, or `soak` when this run is one."""
    return soak if os.environ.get(VARIABLE) else usual
