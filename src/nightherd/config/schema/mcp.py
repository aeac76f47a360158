"""`mcp_servers` and `plugins`: where an agent's extra tools come from."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nightherd.config.schema.types import (
    Environment,
    Filling,
    Flag,
    Model,
    Text,
    Texts,
    Timeout,
    refuse,
)


class McpServer(Model):
    """One MCP server: a process to start, or an address to connect to."""

    type: Literal["stdio", "sse", "http"] | None = Field(
        None, description="Transport of the server; http if there is a url, else stdio."
    )
    command: Filling | None = Field(None, description="Program to start.")
    args: Texts = Field((), description="Its arguments.")
    env: Environment = Field({}, description="Variables for its environment.")
    url: Filling | None = Field(None, description="Address to connect to.")
    headers: Environment = Field({}, description="HTTP headers to send.")
    timeout: Timeout | None = Field(
        None, description="How long a call may take: a duration, or milliseconds."
    )
    always_load: Flag | None = Field(
        None,
        alias="alwaysLoad",
        description="Whether its tools are offered from the first turn on.",
    )

    @model_validator(mode="after")
    def command_or_url(self) -> Self:
        """Either a process or an address, and the type that goes with it."""
        if (self.command is None) == (self.url is None):
            has = "both" if self.command is not None else "neither"
            raise refuse(
                "incomplete", f"an MCP server has either 'command' or 'url'; this has {has}"
            )
        if self.type is not None and (self.type == "stdio") != (self.command is not None):
            wanted = "command" if self.type == "stdio" else "url"
            raise refuse(
                "incomplete", f"an MCP server of type {self.type} needs {wanted!r}", key="type"
            )
        return self


class Plugin(Model):
    """One plugin directory."""

    type: Literal["local"] = Field("local", description="Where it comes from.")
    path: Filling = Field(description="Its directory.")
    skip_mcp_discovery: Flag = Field(
        False, alias="skipMcpDiscovery", description="Whether its own MCP servers are left alone."
    )


def from_path(value: object) -> object:
    """A bare text is the plugin's directory."""
    return {"path": value} if isinstance(value, str) else value


AnyPlugin = Annotated[Plugin, BeforeValidator(from_path, json_schema_input_type=Text | Plugin)]
