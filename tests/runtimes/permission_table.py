"""One table of permissions for every runtime: which call of which tool is made under which rules.

Each call would succeed in the place that `prepare` makes, so whether it succeeded says whether it was
allowed. `claude` is given where the real `claude` decides otherwise than our own loops do, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Try:
    """One call; `{work}` and `{beside}` in its input are directories."""

    tool: str
    input: Mapping[str, str]
    is_allowed: bool
    claude: bool | None = None

    def is_allowed_by_claude(self) -> bool:
        return self.is_allowed if self.claude is None else self.claude

    def filled(self, place: Path) -> dict[str, str]:
        """The input, with the directories of `place`."""
        return {
            name: text.replace("{work}", str(place / "work")).replace(
                "{beside}", str(place / "beside")
            )
            for name, text in self.input.items()
        }


@dataclass(frozen=True)
class Case:
    """Rules, and what they make of some calls."""

    name: str
    tries: tuple[Try, ...]
    rules: Mapping[str, Any] = field(default_factory=dict)

    def agent(self, place: Path) -> dict[str, Any]:
        """The rules as an agent's, with the directories of `place`."""
        added = [str(place / name) for name in self.rules.get("add_dirs", ())]
        return {"permission_mode": "acceptEdits", **self.rules, "add_dirs": tuple(added)}


def prepare(place: Path) -> None:
    """The files that the calls of the table are about."""
    for name in ("work/src", "beside"):
        (place / name).mkdir(parents=True, exist_ok=True)
    for name in ("work/a.txt", "work/b.txt", "work/src/in.txt", "beside/out.txt"):
        (place / name).write_text(f"{name}\n")


def bash(command: str, is_allowed: bool, claude: bool | None = None) -> Try:
    return Try("Bash", {"command": command}, is_allowed, claude)


def write(path: str, is_allowed: bool, claude: bool | None = None) -> Try:
    return Try("Write", {"file_path": path, "content": "new"}, is_allowed, claude)


def read(path: str, is_allowed: bool, claude: bool | None = None) -> Try:
    return Try("Read", {"file_path": path}, is_allowed, claude)


NEW = "{work}/new.txt"
A = "{work}/a.txt"
OUTSIDE = "{beside}/out.txt"

CASES = (
    Case(
        "default approves nothing",
        (
            # Claude lets every mode read in its directories, and run programs that only look.
            read(A, False, claude=True),
            bash("ls", False, claude=True),
            read(OUTSIDE, False),
            write(NEW, False),
            bash("mkdir made", False),
            bash("python3 -c 1", False),
        ),
        {"permission_mode": "default"},
    ),
    Case(
        "accepting edits approves files in the working directory",
        (
            read(A, True),
            write(NEW, True),
            bash("mkdir -p made/deep && cp a.txt made/deep", True),
            bash("mv a.txt c.txt", True),
            bash("rm b.txt", True),
            bash("python3 -c 1", False),
            read(OUTSIDE, False),
            write("{beside}/new.txt", False),
            bash("mkdir {beside}/made", False),
            bash("cp a.txt ../beside/copy.txt", False),
            # Only the programs that the table of modes names count as edits; Claude knows some more.
            bash("touch touched.txt", False, claude=True),
            bash("echo x > redirected.txt", False, claude=True),
            bash("ls", False, claude=True),
        ),
    ),
    Case(
        "added directories are the agent's own",
        (
            read(OUTSIDE, True),
            write("{beside}/new.txt", True),
            bash("mkdir {beside}/made", True),
            write("{work}/../elsewhere.txt", False),
        ),
        {"add_dirs": ("beside",)},
    ),
    Case(
        "bypassing approves everything",
        (
            write(NEW, True),
            bash("python3 -c 1", True),
            bash("echo $(ls) > listed.txt", True),
            bash("mkdir {beside}/made", True),
        ),
        {"permission_mode": "bypassPermissions"},
    ),
    Case(
        "planning runs nothing, whatever is allowed",
        (
            read(A, False, claude=True),
            bash("ls", False, claude=True),
            write(NEW, False),
            bash("mkdir made", False),
        ),
        {"permission_mode": "plan", "allowed_tools": ("Bash", "Write")},
    ),
    Case(
        "planning approves nothing by rules about commands",
        (
            bash("git init -q made", False),
            bash("git config --file made.txt a.b c", False),
            bash("python3 -c 1", False),
        ),
        {
            "permission_mode": "plan",
            "allowed_tools": ("Bash(git *)", "Bash(python3 *)", "Edit(**)"),
        },
    ),
    Case(
        "not asking is denying",
        (
            read(A, False, claude=True),
            write(NEW, False),
            bash("mkdir made", False),
            bash("python3 -c 1", True),
        ),
        {"permission_mode": "dontAsk", "allowed_tools": ("Bash(python3 *)",)},
    ),
    Case(
        "delegating approves what is named",
        (write(NEW, False), bash("python3 -c 1", True)),
        {"permission_mode": "delegate", "allowed_tools": ("Bash(python3 *)",)},
    ),
    Case(
        "allowed by name is approved in any form",
        (
            bash("python3 -c 1", True),
            bash("echo x > {beside}/written.txt; ls", True),
            write(NEW, True),
            read(OUTSIDE, True),
        ),
        {"permission_mode": "default", "allowed_tools": ("Bash", "Write", "Read")},
    ),
    Case(
        "a command rule approves every part of a command or none",
        (
            bash("python3 -c 1", True),
            bash("python3 -V; python3 -c 1 && python3 -V | python3 -c 1", True),
            bash("python3 -V && mkdir made", False),
            bash("python3 -V | mkdir made", False),
            bash("python3 -V; mkdir made", False),
            bash("python3 -c 1 > written.txt", False),
            bash("python3 -c 1 $(mkdir made)", False),
            bash("python3x -V || true", False),
        ),
        {"permission_mode": "default", "allowed_tools": ("Bash(python3 *)",)},
    ),
    Case(
        "a command rule has several spellings",
        (
            bash("mkdir one", True),
            bash("mkdir two", False),
            bash("touch three.txt", True),
            bash("python3 -c 1 && python3 -V", False),
            bash("python3 -V", True),
        ),
        {
            "permission_mode": "default",
            "allowed_tools": ("Bash(mkdir one)", "Bash(touch:*)", "Bash(* -V)"),
        },
    ),
    Case(
        "a file rule approves the files that it fits",
        (
            write("{work}/src/made.txt", True),
            write("{work}/src/deep/made.txt", True),
            write(NEW, False),
            read(OUTSIDE, True),
        ),
        {"permission_mode": "default", "allowed_tools": ("Edit(src/**)", "Read(//**/beside/*)")},
    ),
    Case(
        "denying wins over everything",
        (
            bash("mkdir made", False),
            bash("ls && mkdir made", False),
            bash("echo $(mkdir made)", False),
            bash("for i in 1; do mkdir made; done", False),
            bash("ls", True),
            write("{work}/src/made.txt", False),
            write(NEW, True),
            read(A, False),
        ),
        {
            "permission_mode": "bypassPermissions",
            "allowed_tools": ("Bash(mkdir *)", "Read"),
            "denied_tools": ("Bash(mkdir *)", "Edit(src/**)", "Read(a.txt)"),
        },
    ),
    Case(
        "a tool can be denied as a whole",
        (bash("ls", False), write(NEW, True)),
        {"permission_mode": "bypassPermissions", "denied_tools": ("Bash",)},
    ),
    Case(
        "everything can be denied",
        (bash("ls", False), write(NEW, False)),
        {"permission_mode": "bypassPermissions", "denied_tools": ("*",)},
    ),
    Case(
        "tools restricts to those that are named",
        (bash("ls", False), write(NEW, True)),
        {
            "permission_mode": "bypassPermissions",
            "allowed_tools": ("Bash",),
            "tools": ("Write", "Read"),
        },
    ),
    Case(
        "no tools are none",
        (bash("ls", False), write(NEW, False)),
        {"permission_mode": "bypassPermissions", "tools": ()},
    ),
    Case(
        "capabilities bind whatever else allows",
        (bash("ls", False), write(NEW, True)),
        {
            "permission_mode": "bypassPermissions",
            "required_caps": ("nightherd.tool.Write", "nightherd.tool.Read"),
        },
    ),
    Case(
        "capabilities approve nothing by themselves",
        (bash("python3 -c 1", False), write(NEW, True)),
        {"required_caps": ("nightherd.tool.*",)},
    ),
    Case(
        "an agent held to no capability does nothing",
        (bash("ls", False), write(NEW, False)),
        {"permission_mode": "bypassPermissions", "required_caps": ()},
    ),
)
