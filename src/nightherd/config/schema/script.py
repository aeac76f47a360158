"""`script`: what a scripted agent plays, step by step. Each step has exactly one verb."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from nightherd.config.schema.types import (
    Anything,
    Duration,
    Filling,
    Flag,
    Inputs,
    Model,
    Money,
    Text,
    Timeout,
    Whole,
    refuse,
    shaped,
)
from nightherd.config.wording import listed
from nightherd.model.agents.mcp import PREFIX as MCP_PREFIX
from nightherd.model.units import MicroUsd

VERBS = ("say", "think", "tool", "sleep", "usage", "fail", "end", "repeat")
TOOLS = ("Bash", "Read", "Write", "Edit", "Glob", "Grep", "Spawn", "ask_person")
ToolName = Literal["Bash", "Read", "Write", "Edit", "Glob", "Grep", "Spawn", "ask_person"]


class BashInput(Model):
    """What Bash takes."""

    command: Filling = Field(description="Command to run.")
    timeout: Timeout | None = Field(
        None, description="How long it may take: a duration, or milliseconds."
    )


class ReadInput(Model):
    """What Read takes."""

    file_path: Filling = Field(description="File to read.")
    offset: Whole | None = Field(None, description="First line to read.")
    limit: Whole | None = Field(None, description="Most lines to read.")


class WriteInput(Model):
    """What Write takes."""

    file_path: Filling = Field(description="File to write.")
    content: Text = Field(description="What it will hold.")


class EditInput(Model):
    """What Edit takes."""

    file_path: Filling = Field(description="File to change.")
    old_string: Filling = Field(description="Text to replace.")
    new_string: Text = Field(description="Text to put there.")
    replace_all: Flag = Field(False, description="Whether every occurrence is replaced.")


class GlobInput(Model):
    """What Glob takes."""

    pattern: Filling = Field(description="What the paths look like.")
    path: Filling | None = Field(None, description="Directory to look in.")


class GrepInput(Model):
    """What Grep takes."""

    pattern: Filling = Field(description="Regular expression for lines.")
    path: Filling | None = Field(None, description="File or directory to look in.")
    glob: Filling | None = Field(None, description="Which files to look into.")
    ignore_case: Flag = Field(False, description="Whether capital letters do not matter.")
    mode: Literal["content", "files", "count"] = Field(
        "content", description="What is shown: lines, files, or how many in each."
    )


class AskInput(Model):
    """What a person is asked."""

    question: Filling = Field(description="The question.")
    options: tuple[Filling, ...] | None = Field(None, description="Answers to choose from.")


class SpawnInput(Model):
    """What Spawn takes."""

    agent: Filling = Field(description="Agent to ask.")
    prompt: Filling = Field(description="What to ask of it.")


class SayStep(Model):
    """Answer with a text."""

    say: Text = Field(description="Answer with this text.")
    over: Duration | None = Field(
        None, description="Time over which the text arrives word by word."
    )


class ThinkStep(Model):
    """Think aloud."""

    think: Text = Field(description="Think this aloud before the answer.")


class BashStep(Model):
    """Run a command."""

    tool: Literal["Bash"] = Field(description="Run a command.")
    input: BashInput = Field(description="What to run.")


class ReadStep(Model):
    """Read a file."""

    tool: Literal["Read"] = Field(description="Read a file.")
    input: ReadInput = Field(description="What to read.")


class WriteStep(Model):
    """Write a file."""

    tool: Literal["Write"] = Field(description="Write a file.")
    input: WriteInput = Field(description="What to write.")


class EditStep(Model):
    """Change a file."""

    tool: Literal["Edit"] = Field(description="Change a file.")
    input: EditInput = Field(description="What to change.")


class GlobStep(Model):
    """Find files."""

    tool: Literal["Glob"] = Field(description="Find files.")
    input: GlobInput = Field(description="What to find.")


class GrepStep(Model):
    """Find lines in files."""

    tool: Literal["Grep"] = Field(description="Find lines in files.")
    input: GrepInput = Field(description="What to find.")


class SpawnStep(Model):
    """Have another agent do something."""

    tool: Literal["Spawn"] = Field(description="Have another agent do something.")
    input: SpawnInput = Field(description="Who, and what.")


class AskStep(Model):
    """Ask a person."""

    tool: Literal["ask_person"] = Field(description="Ask a person and wait for the answer.")
    input: AskInput = Field(description="What to ask.")


class McpStep(Model):
    """Call a tool of an MCP server."""

    tool: Annotated[
        str,
        shaped(
            r"mcp__[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__[A-Za-z0-9_-]+",
            "a tool of an MCP server; write mcp__SERVER__TOOL",
        ),
    ] = Field(description="Call a tool of an MCP server.")
    input: Inputs = Field({}, description="What the tool takes.")


class SleepStep(Model):
    """Take time."""

    sleep: Duration = Field(description="Take this long.")


class ScriptUsage(Model):
    """Tokens and money of a turn."""

    input_tokens: Whole = Field(0, description="Tokens read.")
    output_tokens: Whole = Field(0, description="Tokens written.")
    cache_creation_input_tokens: Whole = Field(0, description="Tokens put into the cache.")
    cache_read_input_tokens: Whole = Field(0, description="Tokens read from the cache.")
    cost_usd: Money = Field(MicroUsd(0), description="Dollars spent.")


class UsageStep(Model):
    """Report what the turn used."""

    usage: ScriptUsage = Field(description="Report this for the turn.")


class Failure(Model):
    """How the job fails."""

    code: Filling = Field("scripted_failure", description="Error code.")
    message: Text = Field("the script failed here", description="Error message.")
    recoverable: Flag = Field(False, description="Whether trying again may help.")
    retry_after: Duration | None = Field(None, description="When trying again may help.")


class FailStep(Model):
    """End with an error."""

    fail: Failure = Field(description="End with this error.")


class EndStep(Model):
    """End the job."""

    end: Flag = Field(
        description="End the job here; the next job of the session plays on after it."
    )

    @model_validator(mode="after")
    def is_an_end(self) -> Self:
        """`end: false` would be no step."""
        if not self.end:
            raise refuse("incomplete", "expected true: a step that ends nothing is none", key="end")
        return self


class RepeatStep(Model):
    """Play steps several times."""

    repeat: Annotated[Whole, Field(ge=1, le=1_000_000)] = Field(
        description="Play the steps this often."
    )
    steps: tuple[AnyStep, ...] = Field(min_length=1, description="Steps to repeat.")


class OtherStep(Model):
    """A step that is none of the above: only says what is wrong with it."""

    say: Anything = Field(None, description="Answer with this text.")
    over: Anything = Field(None, description="Time over which the text arrives word by word.")
    think: Anything = Field(None, description="Think this aloud before the answer.")
    tool: ToolName | None = Field(None, description="Tool to call.")
    input: Anything = Field(None, description="What the tool takes.")
    sleep: Anything = Field(None, description="Take this long.")
    usage: Anything = Field(None, description="Report this for the turn.")
    fail: Anything = Field(None, description="End with this error.")
    end: Anything = Field(None, description="End the job here.")
    repeat: Anything = Field(None, description="Play the steps this often.")
    steps: Anything = Field(None, description="Steps to repeat.")

    @model_validator(mode="after")
    def one_verb(self) -> Self:
        """Refuse what no step model took; a wrong tool name was refused by its field."""
        verbs = [verb for verb in VERBS if verb in self.model_fields_set]
        if len(verbs) > 1:
            message = f"a step has one verb; this one has {listed(verbs)}"
            raise refuse("incomplete", message, key=verbs[1])
        raise refuse("incomplete", f"a step needs one of {listed(VERBS)}")


def kind_of(value: Any) -> str:
    """Which model describes this step, so that one mistake is one problem."""
    if not isinstance(value, dict):
        return "(other)"
    verbs = [verb for verb in VERBS if verb in value]
    if len(verbs) != 1:
        return "(other)"
    if verbs[0] != "tool":
        return f"({verbs[0]})"
    if isinstance(value["tool"], str) and value["tool"].startswith(MCP_PREFIX):
        return "(mcp)"
    return f"({value['tool']})" if value["tool"] in TOOLS else "(other)"


AnyStep = Annotated[
    Annotated[SayStep, Tag("(say)")]
    | Annotated[ThinkStep, Tag("(think)")]
    | Annotated[BashStep, Tag("(Bash)")]
    | Annotated[ReadStep, Tag("(Read)")]
    | Annotated[WriteStep, Tag("(Write)")]
    | Annotated[EditStep, Tag("(Edit)")]
    | Annotated[GlobStep, Tag("(Glob)")]
    | Annotated[GrepStep, Tag("(Grep)")]
    | Annotated[SpawnStep, Tag("(Spawn)")]
    | Annotated[AskStep, Tag("(ask_person)")]
    | Annotated[McpStep, Tag("(mcp)")]
    | Annotated[SleepStep, Tag("(sleep)")]
    | Annotated[UsageStep, Tag("(usage)")]
    | Annotated[FailStep, Tag("(fail)")]
    | Annotated[EndStep, Tag("(end)")]
    | Annotated[RepeatStep, Tag("(repeat)")]
    | Annotated[OtherStep, Tag("(other)")],
    Discriminator(kind_of),
]
Steps = tuple[AnyStep, ...]
