"""`sandbox`: how the commands of a Claude agent are confined."""

from __future__ import annotations

from pydantic import Field

from nightherd.config.schema.types import Flag, Model, Port, Texts


class SandboxNetwork(Model):
    """What confined commands may connect to."""

    allow_unix_sockets: Texts | None = Field(
        None, alias="allowUnixSockets", description="Sockets they may use."
    )
    allow_all_unix_sockets: Flag | None = Field(
        None, alias="allowAllUnixSockets", description="Whether they may use any socket."
    )
    allow_local_binding: Flag | None = Field(
        None, alias="allowLocalBinding", description="Whether they may listen on the local host."
    )
    http_proxy_port: Port | None = Field(
        None, alias="httpProxyPort", description="Port of an HTTP proxy for them."
    )
    socks_proxy_port: Port | None = Field(
        None, alias="socksProxyPort", description="Port of a SOCKS proxy for them."
    )


class Sandbox(Model):
    """How commands are confined."""

    enabled: Flag = Field(False, description="Whether commands are confined.")
    auto_allow_bash_if_sandboxed: Flag | None = Field(
        None,
        alias="autoAllowBashIfSandboxed",
        description="Whether confined commands need no approval.",
    )
    excluded_commands: Texts | None = Field(
        None, alias="excludedCommands", description="Commands that are not confined."
    )
    allow_unsandboxed_commands: Flag | None = Field(
        None,
        alias="allowUnsandboxedCommands",
        description="Whether a command may ask to run unconfined.",
    )
    network: SandboxNetwork | None = Field(None, description="What they may connect to.")
