"""Protected paths: files that no agent may change with file tools, whatever its permission mode.

Changing them changes what agents may do: the state directory, every file the fleet is loaded from, the
`.env` beside each, programs of hooks, MCP servers and setup commands, and the files by which Claude is given hooks, servers and
permissions. An agent with a shell can still change them; that is detected, not prevented (model/permissions/grants.py).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase

import msgspec
from msgspec.structs import replace

from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.agents.mcp import McpServer
from nightherd.model.hooks import ShellCommand
from nightherd.model.permissions.file_command import Changed
from nightherd.model.permissions.shell_command import read_command
from nightherd.model.workspaces.policy import WorkspacePolicy

DOTENV = ".env"
CLAUDE_DIRECTORY = ".claude"
CLAUDE_ENTRIES = ("settings*.json", "hooks", "skills", "agents", "commands")
"""What is protected in a `.claude`, wherever it stands; directories with all that is in them."""
CLAUDE_SERVERS = ".mcp.json"
_CLAUDE = re.compile(
    r"(.*/)?(\.claude/(settings[^/]*\.json|(hooks|skills|agents|commands)(/.*)?)|\.mcp\.json)",
    re.IGNORECASE | re.DOTALL,
)
_GLOB = re.compile(r"[*?\[]")


class ProtectedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet protects, as absolute paths."""

    files: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    """With all that is in them."""
    programs: tuple[str, ...] = ()
    """Words of commands that may be files: protected where a file is there."""


def protected_paths(fleet: Fleet, state_dir: str) -> ProtectedPaths:
    """What the agents of `fleet`, whose state is in `state_dir`, may not change."""
    agents = fleet.agents.values()
    files = dict.fromkeys((fleet.file, *fleet.files))
    beside = dict.fromkeys(posixpath.join(posixpath.dirname(file), DOTENV) for file in files)
    return ProtectedPaths(
        files=(*files, *beside),
        directories=(
            state_dir,
            *dict.fromkeys(plugin.path for agent in agents for plugin in agent.plugins),
        ),
        programs=tuple(dict.fromkeys(path for agent in agents for path in _programs(agent))),
    )


def also_in(paths: ProtectedPaths, root: str, directory: str) -> ProtectedPaths:
    """Return what is protected for a job that works in `directory`, which was made from `root`.

    A hook that is named by a relative path runs there, so the program is protected there too.
    """
    if root == directory:
        return paths
    moved = (
        posixpath.join(directory, posixpath.relpath(program, root))
        for program in paths.programs
        if _is_within(posixpath.normpath(program), root)
    )
    return replace(paths, programs=(*paths.programs, *moved))


def _programs(agent: Agent) -> Iterator[str]:
    """The words of its hooks', servers' and setup commands, as paths from where they are run.

    None for an agent with a container: all of these run in it, where they can do no more than the agent itself.
    """
    if agent.container is not None:
        return
    for server in agent.mcp_servers:
        for word in _words_of(server):
            yield posixpath.join(agent.working_directory, word)
    for hook in agent.hooks:
        if isinstance(hook.action, ShellCommand):
            yield from _words_in(hook.action.command, agent.working_directory)
    yield from _words_of_setup(agent.workspace, agent.working_directory)
    for schedule in agent.schedules.values():
        if schedule.workspace is not None:
            directory = schedule.working_directory or agent.working_directory
            yield from _words_of_setup(schedule.workspace, directory)


def _words_of_setup(policy: WorkspacePolicy, directory: str) -> Iterator[str]:
    """The words of setup commands, but for the files that an agent is meant to change."""
    for command in policy.setup:
        changing = {posixpath.join(directory, name) for name in command.files}
        for path in _words_in(command.run, directory):
            if posixpath.normpath(path) not in changing:
                yield path


def _words_in(command: str, directory: str) -> Iterator[str]:
    for simple in read_command(command).simples:
        for word in simple.words:
            yield posixpath.join(directory, word.text)


def _words_of(server: McpServer) -> tuple[str, ...]:
    return () if server.command is None else (server.command, *server.args)


class Protection(msgspec.Struct, frozen=True, kw_only=True):
    """Protected paths on one machine: every name under which they are known there."""

    files: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()
    real_path: Callable[[str], str] = posixpath.normpath
    shares_file: Callable[[str, Iterable[str]], bool] = lambda path, others: False
    """Whether the file at a path is one of the others by another name (a hard link)."""
    is_directory: Callable[[str], bool] = lambda path: False

    def covers(self, changed: Changed, base: str) -> bool:
        """Whether a change, named from the directory `base`, changes what is protected."""
        if changed.is_pattern:
            names = self._patterns(changed.path, base)
            return any(self._hits_pattern(name, is_tree=changed.is_tree) for name in names)
        path = posixpath.normpath(posixpath.join(base, changed.path))
        is_tree = changed.is_tree or (changed.may_rename and not self.is_directory(path))
        return any(self._hits(name, is_tree=is_tree) for name in self._names(path))

    def _names(self, path: str) -> set[str]:
        """As written, the link itself, and what it leads to."""
        parent, name = posixpath.split(path)
        itself = posixpath.join(self.real_path(parent), name)
        return {path, itself, self.real_path(itself)}

    def _patterns(self, path: str, base: str) -> set[str]:
        """The pattern from the root, as written and with the links before it followed."""
        parts = path.split("/")
        first = next((at for at, part in enumerate(parts) if _GLOB.search(part)), len(parts))
        start = posixpath.normpath(
            posixpath.join(base, "/".join(parts[:first]) or "/" * path.startswith("/"))
        )
        rest = "/".join(parts[first:])
        return {
            posixpath.join(_GLOB.sub(r"[\g<0>]", known), rest)
            for known in (start, self.real_path(start))
        }

    def _hits(self, path: str, *, is_tree: bool) -> bool:
        if _CLAUDE.fullmatch(path) or path in self.files:
            return True
        if any(_is_within(path, directory) for directory in self.directories):
            return True
        if is_tree:
            is_above = any(_is_within(one, path) for one in (*self.files, *self.directories))
            return is_above or posixpath.basename(path).lower() == CLAUDE_DIRECTORY
        return self.shares_file(path, self.files)

    def _hits_pattern(self, path: str, *, is_tree: bool) -> bool:
        parts = path.split("/")
        return _hits_claude(parts, is_tree=is_tree) or any(
            _hits_parts(parts, one.split("/"), is_above=is_tree, is_within=one in self.directories)
            for one in (*self.files, *self.directories)
        )


NAMES_ONLY = Protection()
"""Protects Claude's files by their names, and nothing else: for a run that belongs to no fleet."""


def on_this_machine(
    paths: ProtectedPaths,
    *,
    real_path: Callable[[str], str],
    is_file: Callable[[str], bool],
    shares_file: Callable[[str, Iterable[str]], bool],
    is_directory: Callable[[str], bool],
) -> Protection:
    """`paths` with links followed; of the programs, those that are files."""
    files = present_files(paths, is_file)
    return Protection(
        files=frozenset(
            name for file in files for name in (posixpath.normpath(file), real_path(file))
        ),
        directories=frozenset(
            name
            for directory in paths.directories
            for name in (posixpath.normpath(directory), real_path(directory))
        ),
        real_path=real_path,
        shares_file=shares_file,
        is_directory=is_directory,
    )


def present_files(paths: ProtectedPaths, is_file: Callable[[str], bool]) -> tuple[str, ...]:
    """The protected files: also those that are not there yet, but programs only where they are files."""
    return (
        *paths.files,
        *(program for program in paths.programs if "\0" not in program and is_file(program)),
    )


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _hits_claude(parts: list[str], *, is_tree: bool) -> bool:
    """Whether a pattern may mean one of Claude's files, or a directory that holds some."""
    if _fits(parts[-1], CLAUDE_SERVERS):
        return True
    for place, part in enumerate(parts):
        if not _fits(part, CLAUDE_DIRECTORY):
            continue
        rest = parts[place + 1 :]
        if not rest:
            return is_tree
        names = ("settings.json", "settings.local.json", *CLAUDE_ENTRIES[1:])
        if any(_fits(rest[0], name) for name in names):
            return True
    return False


def _hits_parts(parts: list[str], protected: list[str], *, is_above: bool, is_within: bool) -> bool:
    """Whether the pattern means the protected path; or a directory above it, or a place in it, where that counts."""
    if len(parts) < len(protected) and not is_above:
        return False
    if len(parts) > len(protected) and not is_within:
        return False
    return all(_fits(part, name) for part, name in zip(parts, protected, strict=False))


def _fits(pattern: str, name: str) -> bool:
    """Whether the shell's `pattern` may mean `name`; a star does not stand for a leading dot."""
    if name.startswith(".") and not pattern.startswith("."):
        return False
    return fnmatchcase(name, pattern)
