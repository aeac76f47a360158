"""The tools of our own loops: Spawn, all standard tools, and what models are told about each of them as JSON schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nightherd.model.agents.agent import Agent
from nightherd.model.children import TOOL, SpawnCall, may_spawn
from nightherd.model.inbox.review import ASK_PERSON
from nightherd.runtimes.tools.bash import Bash
from nightherd.runtimes.tools.files import Edit, Read, Write
from nightherd.runtimes.tools.search import Glob, Grep
from nightherd.runtimes.tools.tool import Tool, ToolContext, ToolOutcome, failed


class Spawn:
    """Implements the `Tool` protocol."""

    name = TOOL
    starts_processes = False
    is_read_only = False

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """The child's answer; a child that does not succeed is a call that failed."""
        agent, prompt = input.get("agent"), input.get("prompt")
        if not isinstance(agent, str) or not agent:
            return failed("'agent' is missing: the agent to ask")
        if not isinstance(prompt, str) or not prompt.strip():
            return failed("'prompt' is missing: what to ask of it")
        call = SpawnCall(call_id=context.tool_use_id, agent=agent, prompt=prompt)
        found = await context.spawn(call)
        if found.success:
            return ToolOutcome(result=found.answer or "")
        return failed(found.error or "the job did not succeed", found.answer)


class AskPerson:
    """Implements the `Tool` protocol. A person's answer comes from the review of the call, never from here."""

    name = ASK_PERSON
    starts_processes = False
    is_read_only = False

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Fail: a call that was reviewed has its result already."""
        return failed("no person can be asked from here")


def tools_for(agent: Agent, tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return `tools`, with those that only some agents have: Spawn and ask_person."""
    more: tuple[Tool, ...] = ((Spawn(),) if may_spawn(agent) else ()) + (
        (AskPerson(),) if agent.questions else ()
    )
    return (*tools, *more)


def standard_tools() -> tuple[Tool, ...]:
    """Bash, Read, Write, Edit, Glob and Grep."""
    return (Bash(), Read(), Write(), Edit(), Glob(), Grep())


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as a model sees it."""

    description: str
    input_schema: Mapping[str, Any]


def _takes(required: tuple[str, ...], **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(description: str) -> Mapping[str, Any]:
    return {"type": "string", "description": description}


def _count(description: str) -> Mapping[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description}


def _flag(description: str) -> Mapping[str, Any]:
    return {"type": "boolean", "description": description}


FILE_PATH = _text("The file, absolute or relative to the working directory.")

STANDARD: Mapping[str, Described] = {
    "Bash": Described(
        description=(
            "Run a command in the working directory. Returns what it prints, standard output and error as "
            "one text. A process left in the background goes on until the job ends."
        ),
        input_schema=_takes(
            ("command",),
            command=_text("The command, for bash."),
            timeout={
                "type": "integer",
                "minimum": 1,
                "maximum": 600_000,
                "description": "Milliseconds after which it is stopped; 120000 when absent.",
            },
            description=_text("What it does, in a few words, for those who read the record."),
        ),
    ),
    "Read": Described(
        description="Read a text file, or some of its lines. The text comes as it stands in the file.",
        input_schema=_takes(
            ("file_path",),
            file_path=FILE_PATH,
            offset=_count("The first line to read, counted from 1."),
            limit=_count("How many lines to read."),
        ),
    ),
    "Write": Described(
        description="Give a file its whole content. Missing directories are made, an old file is replaced.",
        input_schema=_takes(
            ("file_path", "content"), file_path=FILE_PATH, content=_text("All that it will hold.")
        ),
    ),
    "Edit": Described(
        description=(
            "Replace a text in a file. The text has to stand there exactly, and once, unless every "
            "occurrence is to be replaced."
        ),
        input_schema=_takes(
            ("file_path", "old_string", "new_string"),
            file_path=FILE_PATH,
            old_string=_text(
                "The text to replace, with enough of its surroundings to be found once."
            ),
            new_string=_text("The text to put there."),
            replace_all=_flag("Whether every occurrence is replaced."),
        ),
    ),
    "Spawn": Described(
        description=(
            "Have another agent of the fleet do a part of the work as a job of its own, and wait for it. "
            "Returns its answer. What it spends counts towards your own limits."
        ),
        input_schema=_takes(
            ("agent", "prompt"),
            agent=_text("The agent's name."),
            prompt=_text("What it is asked; it knows nothing of this conversation."),
        ),
    ),
    ASK_PERSON: Described(
        description=(
            "Ask a person a question and wait for the answer, which may take hours. Use it when you cannot decide "
            "yourself, and ask everything you need at once."
        ),
        input_schema=_takes(
            ("question",),
            question=_text("The question, with everything a person needs to answer it."),
            options={
                "type": "array",
                "items": {"type": "string"},
                "description": "Answers to choose from, if there are only some.",
            },
        ),
    ),
    "Glob": Described(
        description="Find files by their paths. Returns one path a line, relative to the working directory.",
        input_schema=_takes(
            ("pattern",),
            pattern=_text("What the paths look like: **/*.py, src/*.{js,ts}."),
            path=_text("The directory to look in; the working directory when absent."),
        ),
    ),
    "Grep": Described(
        description="Find lines in files by a regular expression of Python's kind.",
        input_schema=_takes(
            ("pattern",),
            pattern=_text("The regular expression."),
            path=_text("The file or directory to look in; the working directory when absent."),
            glob=_text("Which files to look into: *.py, src/**/*.md."),
            ignore_case=_flag("Whether capital letters do not matter."),
            mode={
                "type": "string",
                "enum": ["content", "files", "count"],
                "description": "Lines with file and number, files alone, or how many in each file.",
            },
        ),
    ),
}
"""By name, the tools of `toolbox.py`, and those that only some agents have (`tools_for`)."""
