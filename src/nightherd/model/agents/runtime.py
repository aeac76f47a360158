"""Runtime capabilities: what a runtime can do, as data that can be read without the vendor's package.

Configuration checks, limits, sessions and commands read these values; none of them knows a runtime by its name.
The defaults are what is safe to assume of a runtime that declares nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NewType

import msgspec

from nightherd.errors import InvalidValueError

RuntimeName = NewType("RuntimeName", str)
"""What `runtime:` in a fleet file says."""


class LoginKind(StrEnum):
    """Which account or key the requests of an agent are charged to."""

    NONE = "none"
    """No account, or one that nightherd cannot identify: rate limits of one agent stop no other."""
    CLAUDE = "claude"
    """The login of Claude Code: a subscription, an API key or a cloud provider."""
    PROVIDER_KEY = "provider_key"
    """The API key of the provider that the agent's `model` names."""


class CostSource(StrEnum):
    """Where the cost of an answer comes from."""

    UNKNOWN = "unknown"
    """The cost is not counted: an agent with a dollar limit does not run."""
    REPORTED = "reported"
    """The runtime's events say it."""
    MODEL_PRICE = "model_price"
    """The runtime multiplies tokens by the price of the model, which has to be known."""


class RuntimeCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime's name, and what it can do."""

    name: RuntimeName
    package: str | None = None
    """The package that has to be installed for it."""
    extra: str | None = None
    """The extra of nightherd that brings the package."""

    needs_claude: bool = False
    """Runs a `claude` program, which has to be installed and logged in."""
    wants_api_key: bool = False
    """Claude is meant to be logged in with an API key, not with a subscription."""
    login: LoginKind = LoginKind.NONE
    cost: CostSource = CostSource.UNKNOWN

    uses_model: bool = True
    """Asks a model; a script does not."""
    needs_model: bool = False
    """An agent has to name its `model`, unless it has a `script`."""
    takes_script: bool = False
    """Plays the agent's `script`."""
    needs_script: bool = False

    asks_before_turns: bool = False
    """Asks `RuntimeRequest.may_spend` before every model call; else it is interrupted after the turn that was too much."""
    records_every_step: bool = False
    """Stops at each trigger point of checkpoints, so that every turn can be a checkpoint."""
    repeats_calls: bool = False
    """Makes calls again that were cut off (`RuntimeRequest.repeat`)."""
    checks_every_call: bool = False
    """Looks at each tool call with its arguments, so that `required_caps` may name single calls and tools of servers."""
    checks_tools: bool = False
    """Keeps the agent to its permission mode, tools and capabilities."""
    asks_people: bool = False
    """Asks `RuntimeRequest.review` about calls that a person decides; else no agent may need one."""

    keeps_transcript: bool = False
    """Resumes from a transcript of its own, by `runtime_session_id`; else from `RuntimeRequest.history`."""
    resumes: frozenset[RuntimeName] = frozenset()
    """Other runtimes whose sessions it can resume: they keep the same transcripts."""
    takeover_program: str | None = None
    """The program in which a person continues a session: `PROGRAM --resume ID`."""
    compact_prompt: str | None = None
    """The prompt that makes it compact its conversation."""
    summarises: bool = False
    """Can be asked for a summary outside of the conversation."""

    takes_servers: bool = False
    """Offers the tools of `mcp_servers` and of injected servers to the agent."""
    supports_sandbox: bool = False
    supports_plugins: bool = False
    supports_subagents: bool = False
    supports_setting_sources: bool = False

    def can_resume(self, runtime_type: str) -> bool:
        """Return whether it can resume a session that a runtime of this name began."""
        return runtime_type == self.name or runtime_type in self.resumes


class KnownRuntimes(msgspec.Struct, frozen=True, kw_only=True):
    """The runtimes that agents can name."""

    find: Callable[[str], RuntimeCapabilities | None]
    """Returns what the runtime by that name can do; `RefusedError` when it is registered and cannot be loaded."""
    names: Callable[[], Sequence[str]]
    """All names; slow the first time."""

    def get(self, name: str) -> RuntimeCapabilities:
        """Return what the runtime by that name can do; `InvalidValueError` when there is none."""
        capabilities = self.find(name)
        if capabilities is None:
            raise InvalidValueError(f"{name!r} is not one of {', '.join(self.names())}")
        return capabilities
