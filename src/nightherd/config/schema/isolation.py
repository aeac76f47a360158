"""`sandbox`: how the commands of a Claude agent are confined."""

from typing import Annotated, Literal

from pydantic import Field

from nightherd.config.schema.types import (
    Anything,
    Count,
    Environment,
    Filling,
    Flag,
    Model,
    Port,
    Size,
    Text,
    Texts,
    shaped,
)


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


Tmpfs = Annotated[
    str, shaped(r"/[^:]*(:.+)?", "a directory in memory; write /path or /path:options")
]
User = Annotated[str, shaped(r"[0-9]+(:[0-9]+)?", "a user; write UID or UID:GID")]
Volume = Annotated[
    str, shaped(r"[^:]+:/[^:]*(:(ro|rw))?", "a mount; write host:container or host:container:ro")
]
PortMap = Annotated[
    str, shaped(r"([0-9]{1,5}:)?[0-9]{1,5}", "a port; write host:container or container")
]


class AgentDocker(Model):
    """What any file may say about a container."""

    enabled: Flag = Field(False, description="Whether the agent runs in a container.")
    ephemeral: Flag = Field(True, description="Whether each job gets a new container.")
    memory: Size = Field("2g", description="Memory the container may use.", validate_default=True)
    cpu_shares: Count | None = Field(None, description="Share of processor time against others.")
    cpu_period: Count | None = Field(
        None, description="Length of a scheduling period, in microseconds."
    )
    cpu_quota: Count | None = Field(None, description="Processor time per period, in microseconds.")
    max_containers: Count = Field(5, description="Containers kept; older ones are removed.")
    workspace_mode: Literal["rw", "ro"] = Field(
        "rw", description="Whether the working directory may be written."
    )
    tmpfs: tuple[Tmpfs, ...] = Field(
        (), description="Directories in memory: /path or /path:options."
    )
    pids_limit: Count | None = Field(None, description="Processes the container may have.")
    labels: dict[str, Text] = Field({}, description="Labels for the container.")


class FleetDocker(AgentDocker):
    """What only the fleet file may say on top."""

    image: Filling | None = Field(None, description="Image to run.")
    network: Literal["none", "bridge", "host"] = Field(
        "bridge", description="Network it is attached to."
    )
    user: User | None = Field(None, description="UID or UID:GID it runs as.")
    volumes: tuple[Volume, ...] = Field((), description="Mounts: host:container, :ro or :rw.")
    env: Environment = Field({}, description="Variables for its environment.")
    ports: tuple[PortMap, ...] = Field((), description="Ports: host:container or container.")
    host_config: dict[str, Anything] | None = Field(
        None, description="Options handed to the engine as they are."
    )


FLEET_ONLY = frozenset(FleetDocker.model_fields) - frozenset(AgentDocker.model_fields)
"""Keys an agent's own file may not use."""
