"""Runs git so that nothing an agent can write decides what runs on this machine. All commands of git start here."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nightherd.errors import StateError, WorkspaceError
from nightherd.host.machine import EXECUTION_MARK
from nightherd.model.jobs.retry import can_pass
from nightherd.workspaces.environment import Place as Place
from nightherd.workspaces.environment import environment
from nightherd.workspaces.processes import Output as Output
from nightherd.workspaces.processes import finish, kill

TIMEOUT_S = 600.0
"""How long a command may take. Hashing and checking out large trees is slow on slow disks."""
SHORT_S = 60.0
"""The same for commands that touch no files."""
FULL = re.compile(
    rb"No space left on device|Disk quota exceeded|Out of diskspace"
    # Git does not always say why; what it may not write it says otherwise.
    rb"|unable to write (?:file|new index|loose object)|[Cc]ouldn't write '|write error|failed to write"
)
"""What git says about a full disk."""
PASSING = re.compile(rb"\.lock': File exists|Could not resolve host|Connection (timed out|refused|reset)"
                     rb"|Cannot allocate memory|Too many open files")  # fmt: skip
URL_USER = re.compile(r"(?<=://)[^/@\s'\"]+@")
LONGEST_REASON = 2_000
CONFIGURED_HOOKS = (2, 54)
"""The first version that runs hooks which a configuration file names."""
LEAST_VERSION = (2, 33)
"""The first version whose worktrees and settings are enough: older ones run hooks in spite of us."""
UNKNOWN_VERSION = (0, 0)
VERSION = re.compile(rb"git version (\d+)\.(\d+)")

Argument = str | bytes | Path


class Git:
    """Runs git commands. Safe to share between threads."""

    def __init__(
        self,
        *,
        program: str = "git",
        mask: Callable[[str], str] = str,
        mark: str | None = None,
        holding: Sequence[int] = (),
        is_stopped: Callable[[], bool] | None = None,
    ) -> None:
        self._versions: list[tuple[int, int]] = []
        self._program, self._mask, self._mark = program, mask, mark
        self._holding = tuple(holding)
        self._is_stopped = is_stopped

    def holding(self, *descriptors: int) -> Git:
        """Return the same whose commands inherit these files. A lock is then held until the last of them ends."""
        return self._with(descriptors, self._is_stopped)

    def stopping(self, is_stopped: Callable[[], bool]) -> Git:
        """Return the same whose commands are killed, with `WorkspaceError`, soon after that is true."""
        return self._with(self._holding, is_stopped)

    def _with(self, holding: Sequence[int], is_stopped: Callable[[], bool] | None) -> Git:
        same = Git(
            program=self._program,
            mask=self._mask,
            mark=self._mark,
            holding=holding,
            is_stopped=is_stopped,
        )
        same._versions = self._versions
        return same

    def check_stopped(self) -> None:
        """Raise `WorkspaceError` when no command may run any more."""
        if self._is_stopped is not None and self._is_stopped():
            raise WorkspaceError("it was stopped", can_pass=True)

    def run(
        self,
        place: Place,
        *arguments: Argument,
        data: bytes | None = None,
        timeout: float = TIMEOUT_S,
        needs_credentials: bool = False,
        variables: Mapping[str, str] | None = None,
        doing: str | None = None,
    ) -> bytes:
        """Return the command's output; `WorkspaceError` unless it ends with 0.

        `data` is its input, `variables` are set in its environment, `doing` begins the error's message.
        """
        done = self.attempt(
            place,
            *arguments,
            data=data,
            timeout=timeout,
            needs_credentials=needs_credentials,
            variables=variables,
        )
        if done.status != 0:
            raise self.error(done, place, arguments, doing)
        return done.out

    def attempt(
        self,
        place: Place,
        *arguments: Argument,
        data: bytes | None = None,
        timeout: float = TIMEOUT_S,
        needs_credentials: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> Output:
        """Return how the command ended; `WorkspaceError` only when it cannot be started."""
        environment = self._environment(place, needs_credentials=needs_credentials)
        environment.update(variables or {})
        check = None if self._is_stopped is None else self.check_stopped
        return finish(self._start(place, arguments, environment), data, timeout, check)

    def attempt_together(
        self, *commands: tuple[Place, Sequence[Argument]], timeout: float = TIMEOUT_S
    ) -> list[Output]:
        """Run commands without input at the same time; return how each ended."""
        started: list[subprocess.Popen[bytes]] = []
        outputs: list[Output] = []
        try:
            for place, arguments in commands:
                environment = self._environment(place, needs_credentials=False)
                started.append(self._start(place, arguments, environment))
            outputs.extend(finish(process, None, timeout) for process in started)
        finally:
            for process in started[len(outputs) :]:
                kill(process)
        return outputs

    def in_repository(
        self,
        common_dir: str,
        *arguments: Argument,
        data: bytes | None = None,
        timeout: float = SHORT_S,
        doing: str | None = None,
    ) -> bytes:
        """Run a command that resolves names or moves refs in a repository of the user; never one that reads files."""
        place = Place(git_dir=common_dir)
        return self.run(place, *arguments, data=data, timeout=timeout, doing=doing)

    def error(
        self, done: Output, place: Place, arguments: Sequence[Argument], doing: str | None = None
    ) -> WorkspaceError:
        """Return the error that says why the command failed, and what to do if that is known."""
        if done.is_timed_out:
            message = (
                f"git {_verb(arguments)} took too long in '{place.work_tree or place.git_dir}'"
            )
            return WorkspaceError(message, can_pass=True)
        # Masked before it is cut: half a secret would not be recognised.
        said = self._mask(URL_USER.sub("", done.err.decode(errors="replace").strip()))
        reason = said[-LONGEST_REASON:] or f"git ended with {done.status}"
        where = place.work_tree or place.directory or place.git_dir
        message = f"{doing or f'git {_verb(arguments)} failed'} in '{where}': {reason}"
        if FULL.search(done.err):
            return WorkspaceError(message, hint="free some space on the disk", can_pass=True)
        is_passing = done.status < 0 or PASSING.search(done.err) is not None
        return WorkspaceError(message, can_pass=is_passing)

    def _start(
        self, place: Place, arguments: Sequence[Argument], environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        directory = place.directory or place.work_tree or place.git_dir
        try:
            return subprocess.Popen(
                [self._program, *arguments],
                cwd=directory,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=self._holding,
            )
        except FileNotFoundError as error:
            if directory is not None and not Path(directory).is_dir():
                raise WorkspaceError(f"there is no directory '{directory}'") from error
            hint = "install git and make sure that it is on PATH"
            raise WorkspaceError("workspaces need git, which is not there", hint=hint) from error
        except OSError as error:
            message = f"git cannot be started in '{directory}': {error}"
            raise WorkspaceError(
                message, can_pass=not isinstance(error, PermissionError)
            ) from error

    def _environment(self, place: Place, *, needs_credentials: bool) -> dict[str, str]:
        hooks = () if place.is_ours else self._hooks(place)
        variables = environment(place, needs_credentials=needs_credentials, hooks=hooks)
        if self._mark is not None:
            variables[EXECUTION_MARK] = self._mark
        return variables

    def _hooks(self, place: Place) -> Sequence[str]:
        """The hooks that a repository's configuration names, for versions of git that run those."""
        version = self._version()
        if UNKNOWN_VERSION < version < LEAST_VERSION:
            needed, present = (".".join(map(str, numbers)) for numbers in (LEAST_VERSION, version))
            message = f"workspaces need git {needed} or newer, and this is git {present}"
            raise WorkspaceError(message, hint="update git, or use mode: shared")
        if version < CONFIGURED_HOOKS:
            return ()
        arguments = ("config", "--name-only", "-z", "--get-regexp", r"^hook\.")
        done = finish(self._start(place, arguments, environment(place)), None, SHORT_S)
        return sorted({key.removeprefix("hook.").rpartition(".")[0] for key in split(done.out)})

    def _version(self) -> tuple[int, int]:
        if not self._versions:
            place = Place(directory="/")
            done = finish(self._start(place, ("version",), environment(place)), None, SHORT_S)
            version = VERSION.match(done.out)
            self._versions.append(
                (int(version[1]), int(version[2])) if version else UNKNOWN_VERSION
            )
        return self._versions[0]


def failure(error: OSError | StateError, doing: str) -> WorkspaceError:
    """Return the error for what the machine refused: `doing` says what could not be done."""
    is_passing = error.can_pass if isinstance(error, StateError) else can_pass(error)
    reason = str(error) if isinstance(error, StateError) or not error.strerror else error.strerror
    hint = "free some space on the disk" if is_passing and "pace" in reason else None
    return WorkspaceError(f"{doing}: {reason}", hint=hint, can_pass=is_passing)


def split(output: bytes) -> list[str]:
    """Return the fields of NUL-separated output; bytes that are not UTF-8 become surrogates, as in file names."""
    return [os.fsdecode(field) for field in output.split(b"\0")[:-1]]


def _verb(arguments: Sequence[Argument]) -> str:
    """The command's name: arguments may hold what nobody should read."""
    return next((word for word in arguments if isinstance(word, str) and word[:1] != "-"), "")
