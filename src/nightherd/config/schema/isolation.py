"""`sandbox`: how the commands of a Claude agent are confined; `docker`: the container that an agent runs in."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from nightherd.config.schema.types import (
    LARGEST_COUNT,
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
    reading,
    refuse,
    typed,
)
from nightherd.errors import InvalidValueError
from nightherd.model.containers.hosts import parse_allowed_host
from nightherd.model.containers.mounts import parse_port, parse_tmpfs, parse_user, parse_volume
from nightherd.model.containers.policy import DEFAULT_IMAGE, DEFAULT_PIDS


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


SMALLEST_MEMORY = 6 * 1024**2
"""What the engine needs at least."""


def enough_memory(size: int) -> int:
    """A size that a container can be made with; 0 would be no limit."""
    if size < SMALLEST_MEMORY:
        raise refuse("bad_size", "a container needs at least 6m of memory")
    return size


def spelled(
    parse: Callable[[str], object], pattern: str, *, numbers: bool = False
) -> BeforeValidator:
    """The validator of texts that `parse` understands, which stay as they are; `pattern` is their form for editors."""

    def read(text: str) -> str:
        parse(text)
        return text

    described: Any = Annotated[str, Field(pattern=pattern)]
    return BeforeValidator(
        reading("shape", read, numbers=numbers),
        json_schema_input_type=described | int if numbers else described,
    )


def check_label(name: str) -> str:
    """A name for a label that is not one of ours."""
    if not name or name.startswith(OWN_LABELS):
        raise InvalidValueError(f"{name!r} is not free: labels of ours begin with {OWN_LABELS!r}")
    return name


def check_socket(text: str) -> str:
    """Where an engine listens: a path, or a unix:// address."""
    path = text.removeprefix(UNIX)
    is_relative = text.startswith(UNIX) and not path.startswith("/")
    if "://" in path or not path or is_relative or "\0" in path:
        raise InvalidValueError(f"{text!r} is not a socket; write a path or unix:///path")
    return text


OWN_LABELS = "nightherd."
UNIX = "unix://"
Memory = Annotated[Size, AfterValidator(enough_memory)]
Tmpfs = Annotated[str, spelled(parse_tmpfs, "^/[^:]*(:.+)?$")]
User = Annotated[str, spelled(parse_user, "^[0-9]+(:[0-9]+)?$", numbers=True)]
Volume = Annotated[str, spelled(parse_volume, "^(/.*|[^:]+):/[^:]*(:(ro|rw))?$")]
PortMap = Annotated[str, spelled(parse_port, "^([0-9]{1,5}:)?[0-9]{1,5}$", numbers=True)]
Host = Annotated[str, spelled(parse_allowed_host, r"^(\*\.)?[A-Za-z0-9_.-]+(:[0-9]{1,5})?$")]
Socket = Annotated[str, spelled(check_socket, "^(unix:///)?[^:]+$")]
Label = Annotated[str, BeforeValidator(reading("shape", check_label), json_schema_input_type=str)]
Shares = Annotated[int, Field(ge=2, le=262_144)]
Period = Annotated[int, Field(ge=1_000, le=1_000_000)]
Quota = Annotated[int, Field(ge=1_000, le=LARGEST_COUNT)]
CpuShares = Annotated[Shares, BeforeValidator(typed, json_schema_input_type=Shares)]
CpuPeriod = Annotated[Period, BeforeValidator(typed, json_schema_input_type=Period)]
CpuQuota = Annotated[Quota, BeforeValidator(typed, json_schema_input_type=Quota)]


class AgentDocker(Model):
    """What any file may say about a container."""

    enabled: Flag = Field(False, description="Whether the agent runs in a container.")
    ephemeral: Flag = Field(True, description="Whether each job gets a new container.")
    memory: Memory = Field(
        "2g", description="Memory the container may use; it has no swap.", validate_default=True
    )
    cpu_shares: CpuShares | None = Field(
        None, description="Share of processor time against others; 1024 by default."
    )
    cpu_period: CpuPeriod | None = Field(
        None, description="Length of a scheduling period, in microseconds; 100000 by default."
    )
    cpu_quota: CpuQuota | None = Field(
        None,
        description="Processor time per period, in microseconds; by default that of all cores.",
    )
    max_containers: Count = Field(5, description="Idle containers kept; older ones are removed.")
    workspace_mode: Literal["rw", "ro"] = Field(
        "rw", description="Whether the working directory may be written."
    )
    tmpfs: tuple[Tmpfs, ...] = Field(
        (), description="Directories in memory: /path or /path:options."
    )
    pids_limit: Count = Field(
        DEFAULT_PIDS, description="Processes and threads the container may have."
    )
    labels: dict[Label, Text] = Field({}, description="Labels for the container.")


class FleetDocker(AgentDocker):
    """What only the fleet file may say on top."""

    image: Filling = Field(
        DEFAULT_IMAGE, description="Image to run; it must exist on this machine."
    )
    socket: Socket | None = Field(
        None, description="Where the engine listens: a path or unix:///path; else it is searched."
    )
    network: Literal["none", "bridge", "host", "egress"] = Field(
        "bridge",
        description="What it can reach: nothing, the engine's network, all that the host can, or only allowed_hosts.",
    )
    allowed_hosts: tuple[Host, ...] = Field(
        (), description="Hosts of network egress: host, host:port or *.host; port 443 by default."
    )
    private_hosts: tuple[Host, ...] = Field(
        (),
        description="Hosts of network egress that may have an address of a private network; as allowed_hosts.",
    )
    user: User | None = Field(
        None, description="UID or UID:GID it runs as; by default one that is not root."
    )
    volumes: tuple[Volume, ...] = Field(
        (), description="Mounts: host:container, with :ro or :rw; host is relative to this file."
    )
    env: Environment = Field({}, description="Variables for the environment of agents in it.")
    ports: tuple[PortMap, ...] = Field(
        (), description="Ports on the loopback interface: host:container or container."
    )
    host_config: dict[str, Anything] = Field(
        {}, description="Options handed to the engine as they are, over all others."
    )
    allow_unsafe: Flag = Field(
        False,
        description="Whether user, volumes and host_config may undo hardening; said at every start.",
    )


FLEET_ONLY = frozenset(FleetDocker.model_fields) - frozenset(AgentDocker.model_fields)
"""Keys an agent's own file may not use."""
