"""Constants of a conversation: instructions, tools, settings. Each is written once and named by its hash."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import Any

import msgspec
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from nightherd.model.agents.agent import Agent
from nightherd.model.journal.system import Context
from nightherd.runtimes.native.toolset import Toolset

INSTRUCTIONS = "instructions"
"""The instructions at the beginning of every conversation."""
TOOLS = "tools"
"""Names, descriptions and input schemas of the tools it is offered."""
SETUP = "setup"
"""What a request is made with: model, settings, versions, and the other constants by hash."""

HASH_DIGITS = 16


def constant(kind: str, body: Any) -> Context:
    """The constant, named by what it is and says: the same body always gets the same name."""
    written = msgspec.json.encode([kind, body], order="sorted")
    return Context(hash=hashlib.sha256(written).hexdigest()[:HASH_DIGITS], kind=kind, body=body)


LIBRARY = "pydantic-ai-slim"

UNATTENDED = """\
You are an agent that works by itself: nobody is there to answer questions or to approve anything.
Your working directory is {directory}. Use your tools to look and to act; do not guess what you can find out.
A call that is denied stays denied: go on in another way, or say why you cannot.
When the work is done, end with a short account of what you did and of what is left."""
"""What an agent without a `system_prompt` is told."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions, and the constants that are put on record."""

    instructions: str
    constants: tuple[Context, ...]

    @property
    def hash(self) -> str:
        """The name of the whole: the last of the constants, which names the others."""
        return self.constants[-1].hash

    @property
    def size_bytes(self) -> int:
        """How much of a request it takes up, about."""
        return sum(len(msgspec.json.encode(one.body)) for one in self.constants)


def setup_of(agent: Agent, model: Model, toolset: Toolset, settings: ModelSettings) -> Setup:
    """What requests to `model` are made with."""
    instructions = agent.system_prompt or UNATTENDED.format(directory=agent.working_directory)
    text = constant(INSTRUCTIONS, instructions)
    tools = constant(TOOLS, toolset.described)
    whole = constant(
        SETUP,
        {
            "model": model.model_id,
            "settings": dict(settings),
            INSTRUCTIONS: text.hash,
            TOOLS: tools.hash,
            LIBRARY: version(LIBRARY),
        },
    )
    return Setup(instructions=instructions, constants=(text, tools, whole))
