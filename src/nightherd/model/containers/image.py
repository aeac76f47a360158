"""ImageReport: what an image must have to run agents, and what it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

OLDEST_PYTHON = (3, 9)
"""The keeper inside a container runs on the image's own python3."""
FLEET_LABEL = "nightherd.fleet"
"""Which fleet a container belongs to."""
EXECUTION_LABEL = "nightherd.execution"
VERSION_LABEL = "nightherd.version"
"""Which nightherd built an image."""
CLAUDE_LABEL = "nightherd.claude"
"""Which claude an image has."""


class ClaudeSource(StrEnum):
    """Where the `claude` of an image comes from."""

    BUNDLED = "bundled"
    """Copied from the Claude Agent SDK of this machine."""
    NPM = "npm"
    """Installed while the image is built."""
    NONE = "none"
    """None, or the one of the base image."""


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an image needs."""

    name: str
    is_met: bool
    is_required: bool
    found: str | None = None
    """What the image has, in words."""
    note: str | None = None
    """What it is for, or what is wrong with it."""


class ImageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one image needs and has."""

    image: str
    image_id: str
    size_bytes: int
    requirements: tuple[Requirement, ...]
    skew: str | None = None
    """How the image differs from this machine; None when it does not."""

    @property
    def is_usable(self) -> bool:
        """Return whether nothing that is required is missing."""
        return all(one.is_met for one in self.requirements if one.is_required)


def requirements(facts: Mapping[str, str], *, needs_claude: bool) -> Iterator[Requirement]:
    """Return what an image needs, and whether the `facts` that a container of it told meet it.

    Facts are `python3`, `sh`, `bash`, `git`, `rg` and `claude` (paths), the same with `.version`, `uid`, `user` (a user
    that is not root, as `name (uid)`), `certificates` (a path) and `python3.lacks` (what the keeper cannot import).
    """
    yield _python(facts)
    shell = facts.get("bash") or facts.get("sh")
    yield Requirement(
        name="sh", is_met=shell is not None, is_required=True, found=shell, note=_unless(shell, SH)
    )
    yield _program(facts, "git", GIT, is_required=True)
    yield _program(facts, "rg", RG, is_required=False)
    yield _program(facts, "claude", CLAUDE, is_required=needs_claude)
    yield _user(facts)
    found = facts.get("certificates")
    yield Requirement(
        name="certificates",
        is_met=found is not None,
        is_required=needs_claude,
        found=found,
        note=_unless(found, CERTIFICATES),
    )


SH = "runs the commands of agents; without a shell, nothing else can be checked"
GIT = "agents work in clones"
RG = "optional: makes searching faster"
CLAUDE = "runs agents of the runtimes cli and sdk"
CERTIFICATES = "without CA certificates, no TLS connection can be verified; install ca-certificates"
NO_USER = "optional: a name for the agent's user in /etc/passwd, which ssh needs; agents do not run as root"


def claude_skew(image: str | None, host: str | None) -> str | None:
    """Return how the `claude` of an image differs from this machine's; None when it does not, or one is unknown."""
    if image is None or host is None or image == host:
        return None
    return f"the image has claude {image}, this machine has {host}: sessions that move between them may behave differently"


def _unless(found: str | None, note: str) -> str | None:
    return note if found is None else None


def _program(
    facts: Mapping[str, str], name: str, purpose: str, *, is_required: bool
) -> Requirement:
    found, version = facts.get(name), facts.get(f"{name}.version")
    # A program that cannot say its version lacks a library, or is for another machine.
    is_met = found is not None and version is not None
    note = purpose if found is None else None if is_met else f"{found} does not run in this image"
    return Requirement(
        name=name,
        is_met=is_met,
        is_required=is_required,
        found=f"{version} ({found})" if is_met else None,
        note=note,
    )


def _python(facts: Mapping[str, str]) -> Requirement:
    oldest = ".".join(map(str, OLDEST_PYTHON))
    seen = _program(facts, "python3", f"runs the keeper; {oldest} or newer", is_required=True)
    lacks = facts.get("python3.lacks")
    if seen.is_met and lacks:
        too_small = f"the keeper needs all of Python's standard library, not a minimal one: {lacks}"
        return msgspec.structs.replace(seen, is_met=False, note=too_small)
    parts = facts.get("python3.version", "").split(".")[:2]
    if not seen.is_met or not all(part.isdigit() for part in parts):
        return seen
    is_new = tuple(map(int, parts)) >= OLDEST_PYTHON
    note = None if is_new else f"{oldest} or newer is needed"
    return msgspec.structs.replace(seen, is_met=is_new, note=note)


def _user(facts: Mapping[str, str]) -> Requirement:
    own = facts.get("uid")
    found = facts.get("user") or (f"uid {own}" if own not in (None, "0") else None)
    return Requirement(
        name="user",
        is_met=found is not None,
        is_required=False,
        found=found,
        note=_unless(found, NO_USER),
    )
