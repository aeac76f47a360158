"""Constants of a conversation: instructions, tools, settings. Each is written once and named by its hash."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from nightherd.model.system import Context

INSTRUCTIONS = "instructions"
"""What the model is told before everything else."""
TOOLS = "tools"
"""Names, descriptions and input schemas of the tools it is offered."""
SETUP = "setup"
"""What a request is made with: model, settings, versions, and the other constants by hash."""

HASH_DIGITS = 16


def constant(kind: str, body: Any) -> Context:
    """The constant, named by what it is and says: the same body always gets the same name."""
    written = msgspec.json.encode([kind, body], order="sorted")
    return Context(hash=hashlib.sha256(written).hexdigest()[:HASH_DIGITS], kind=kind, body=body)
