"""Finding: a result of the checks of a state directory and of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.model.agents.runtime import RuntimeCapabilities
from nightherd.model.containers.engine_traits import (
    UNLIMITED_REMEDY,
    Users,
    traits_of,
    unlimited_text,
)
from nightherd.model.containers.image import CLAUDE_LABEL, claude_skew
from nightherd.model.containers.podman import is_podman
from nightherd.model.containers.policy import DEFAULT_IMAGE
from nightherd.model.schedules.clock_jump import JUMP
from nightherd.next_step import Action, NextStep


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works now, but needs attention."""
    PROBLEM = "problem"
    """Something is wrong now."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing found; `remedy` says in words what repairs it, `is_fixable` whether `doctor --fix` does."""

    check: str
    level: Level
    message: str
    path: str | None = None
    job_id: str | None = None
    remedy: str | None = None
    next_step: NextStep | None = None
    """The step that the remedy ends with, or that is all of it."""
    row: tuple[str, str] | None = None
    """Table and key of the row it is about."""
    is_fixable: bool = False
    is_fixed: bool = False


OLDEST_TESTED = (2, 1, 100)
"""The oldest version of Claude Code that the tests run."""
FAULTS: dict[tuple[int, ...], str] = {
    (
        2,
        1,
        100,
    ): "it reports a rate limit as a plain failure, and costs of background sub-agents wrongly"
}
"""What is known to be wrong with a version, although it runs."""
CLEANUP_DAYS = 30
"""After how many days Claude deletes a transcript unless its settings say otherwise."""
NAMED = 5


class ClaudeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the `claude` that agents of one runtime are run by."""

    program: str | None
    """None when there is none."""
    version: str | None
    login: str | None
    """How it is logged in, in words; None when no login was found."""
    is_subscription: bool = False
    cleanup_days: int = CLEANUP_DAYS
    settings_file: str | None = None
    """Where `cleanup_days` comes from; None for Claude's own default."""


class ImageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the labels of an image say that `nightherd container build` has made; None for what they do not."""

    claude: str | None = None
    """The version of its `claude`."""

    @classmethod
    def of(cls, image: Mapping[str, Any]) -> ImageFacts:
        """Return the facts in the engine's answer to `/images/NAME/json`."""
        labels = (image.get("Config") or {}).get("Labels") or {}
        version = parse_version(str(labels.get(CLAUDE_LABEL, "")))
        return cls(claude=".".join(map(str, version)) if version is not None else None)


class EngineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a container engine says about itself."""

    socket: str
    name: str
    """`Docker`, `Podman`."""
    version: str
    cgroup_version: str | None
    is_rootless: bool
    images: Mapping[str, ImageFacts | None] = msgspec.field(default_factory=dict)
    """Those that were asked about; None for one that it has not."""
    remaps_users: bool = False
    unlimited: tuple[str, ...] = ()
    """What it cannot limit."""

    @classmethod
    def of(cls, socket: str, version: Mapping[str, Any], info: Mapping[str, Any]) -> EngineFacts:
        """Return the facts in the engine's answers to `/version` and `/info`."""
        cgroup = info.get("CgroupVersion")
        traits = traits_of(info)
        return cls(
            socket=socket,
            name="Podman" if is_podman(version) else "Docker",
            version=str(version.get("Version", "of unknown version")),
            cgroup_version=str(cgroup) if cgroup else None,
            is_rootless=traits.users is Users.ROOTLESS,
            remaps_users=traits.users is Users.REMAPPED,
            unlimited=traits.unlimited,
        )


def parse_version(text: str) -> tuple[int, ...] | None:
    """The version in what `claude --version` prints."""
    matched = re.search(r"\b(\d+)\.(\d+)\.(\d+)\b", text)
    return tuple(int(part) for part in matched.groups()) if matched is not None else None


def version_fault(text: str | None) -> str | None:
    """What is wrong with this version of `claude`; None when nothing is known to be."""
    version = parse_version(text or "")
    if version is None:
        return "it does not report its version"
    if version < OLDEST_TESTED:
        oldest = ".".join(str(part) for part in OLDEST_TESTED)
        return f"versions older than {oldest} are not tested with nightherd"
    return FAULTS.get(version)


def claude_findings(
    facts: ClaudeFacts, agents: Sequence[str], runtime: RuntimeCapabilities
) -> Iterator[Finding]:
    """Whether the agents named can be run by this `claude` tonight."""
    who = named(agents)
    if facts.program is None:
        yield _finding(
            Level.WARNING,
            "claude",
            f"{who} ({runtime.name}): there is no `claude` on PATH",
            "install Claude Code, or put `claude` on the PATH of the worker",
        )
        return
    yield _finding(
        Level.OK, "claude", f"{who} ({runtime.name}): claude {facts.version} at {facts.program}"
    )
    fault = version_fault(facts.version)
    if fault is not None:
        yield _finding(
            Level.WARNING,
            "claude",
            f"claude {facts.version or 'of unknown version'}: {fault}",
            "install a newer Claude Code",
        )
    yield from login_findings(facts, who, runtime)
    yield from _cleanup_findings(facts)


def runtime_finding(
    runtime: str, agents: Sequence[str], refusal: tuple[str, str | None] | None
) -> Finding:
    """Say whether the runtime of the agents named is installed."""
    who = named(agents)
    if refusal is None:
        return _finding(Level.OK, "runtimes", f"{who}: runtime {runtime} is installed")
    message, remedy = refusal
    return _finding(Level.WARNING, "runtimes", f"{who}: {message}", remedy)


def engine_finding(engine: EngineFacts | tuple[str, str | None], agents: Sequence[str]) -> Finding:
    """Say which container engine the agents named use; a problem when there is none."""
    who = named(agents)
    if isinstance(engine, tuple):
        message, remedy = engine
        return _finding(Level.PROBLEM, "containers", f"{who}: {message}", remedy)
    cgroup = f", cgroup v{engine.cgroup_version}" if engine.cgroup_version is not None else ""
    kind = "rootless" if engine.is_rootless else "as root"
    text = f"{who}: {engine.name} {engine.version} at {engine.socket}, {kind}{cgroup}"
    if engine.remaps_users:
        remedy = "switch it off, or use a rootless engine"
        return _finding(
            Level.PROBLEM, "containers", f"{text}: userns-remap is not supported", remedy
        )
    if engine.unlimited:
        text = f"{text}: {unlimited_text(engine.unlimited)}"
        return _finding(Level.WARNING, "containers", text, UNLIMITED_REMEDY)
    return _finding(Level.OK, "containers", text)


def image_finding(
    image: str, facts: ImageFacts | None, agents: Sequence[str], host_claude: str | None
) -> Finding:
    """Say whether the engine has the image of the agents named, and a `claude` like that of this machine, where one is needed."""
    who = named(agents)
    if facts is None:
        remedy = (
            None
            if image == DEFAULT_IMAGE
            else f"docker pull {image}, or build it with the tag {image}"
        )
        text = f"{who}: the container engine has no image {image}"
        return _finding(Level.PROBLEM, "containers", text, remedy, NextStep(Action.BUILD_IMAGE))
    skew = claude_skew(facts.claude, host_claude)
    if skew is not None:
        remedy = None if image == DEFAULT_IMAGE else f"build it again with the tag {image}"
        text, step = f"{who}: {image}: {skew}", NextStep(Action.BUILD_IMAGE)
        return _finding(Level.WARNING, "containers", text, remedy, step)
    return _finding(Level.OK, "containers", f"{who}: image {image}")


def login_findings(facts: ClaudeFacts, who: str, runtime: RuntimeCapabilities) -> Iterator[Finding]:
    if facts.login is None:
        yield _finding(
            Level.WARNING,
            "claude",
            f"{who} ({runtime.name}): no Claude login was found",
            "run `claude` and log in, or export ANTHROPIC_API_KEY",
        )
        return
    yield _finding(Level.OK, "claude", f"login: {facts.login}")
    if runtime.wants_api_key and facts.is_subscription:
        yield _finding(
            Level.WARNING,
            "claude",
            f"{who}: the Agent SDK is intended for API keys, not for subscriptions",
            "use `runtime: cli`, or export ANTHROPIC_API_KEY",
        )


def _cleanup_findings(facts: ClaudeFacts) -> Iterator[Finding]:
    where = f" ({facts.settings_file})" if facts.settings_file is not None else ""
    if facts.cleanup_days < CLEANUP_DAYS:
        yield _finding(
            Level.WARNING,
            "claude",
            f"Claude deletes its transcripts after {facts.cleanup_days} days{where}",
            "raise cleanupPeriodDays; sessions that nightherd ran are kept in its own copies",
        )
    else:
        text = f"Claude deletes its transcripts after {facts.cleanup_days} days{where}"
        yield _finding(Level.OK, "claude", f"{text}; nightherd keeps its own copies")


def clock_findings(
    now: datetime, last_recorded: datetime | None, is_synchronised: bool | None
) -> Iterator[Finding]:
    """Whether schedules can go by the clock. `is_synchronised` is None when it is unknown."""
    # Another process may write while this one looks.
    if last_recorded is not None and last_recorded - now > JUMP:
        yield _finding(
            Level.PROBLEM,
            "clock",
            f"the clock says {now:%Y-%m-%d %H:%M} UTC, and the state directory was last written"
            f" at {last_recorded:%Y-%m-%d %H:%M} UTC",
            "set the clock; schedules fire by it",
        )
    if is_synchronised is False:
        yield _finding(
            Level.WARNING,
            "clock",
            "the clock is not synchronised",
            "timedatectl set-ntp true; schedules fire by the clock",
        )


def git_findings(version: str | None) -> Iterator[Finding]:
    """Whether there is a git."""
    if version is None:
        yield _finding(Level.WARNING, "git", "there is no git on PATH", "install git")
    else:
        yield _finding(Level.OK, "git", version)


def key_finding(agent: str, model: str | None, message: str, remedy: str | None) -> Finding:
    """A native agent whose model cannot be asked."""
    what = f"{agent} ({model})" if model else agent
    return _finding(Level.WARNING, "keys", f"{what}: {message}", remedy)


def named(agents: Sequence[str]) -> str:
    """Their names; of many, the first few."""
    more = f" and {len(agents) - NAMED} more" if len(agents) > NAMED else ""
    return f"{', '.join(agents[:NAMED])}{more}"


def _finding(
    level: Level,
    check: str,
    message: str,
    remedy: str | None = None,
    next_step: NextStep | None = None,
) -> Finding:
    return Finding(check=check, level=level, message=message, remedy=remedy, next_step=next_step)
