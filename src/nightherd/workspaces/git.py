"""Runs git so that nothing an agent can write decides what runs on this machine.

The environment is built from scratch. Hooks, fsmonitor and lazy fetches are off for every call, whatever a
repository's configuration says. Where credentials are needed, the user's own configuration is read as well.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from nightherd.errors import StateError, WorkspaceError
from nightherd.host.machine import EXECUTION_MARK
from nightherd.model.jobs.retry import can_pass

TIMEOUT_S = 600.0
"""How long a command may take. Hashing and checking out large trees is slow on slow disks."""
SHORT_S = 60.0
"""The same for commands that touch no files."""
STOP_S = 0.2
"""How often a command that may be stopped is looked at."""
OVERRIDES = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # Safe here: nothing that a repository's configuration names is executed.
    "safe.directory": "*",
    # Hooks in configuration files, git 2.54 and later.
    "hook.reference-transaction.enabled": "false",
    "hook.post-checkout.enabled": "false",
    "hook.post-index-change.enabled": "false",
}
ALLOWED_PROTOCOLS = "file:git:http:https:ssh"
CREDENTIAL_VARIABLES = (
    *("HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSL_CERT_FILE", "SSL_CERT_DIR", "KRB5CCNAME"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
"""What git, ssh and credential helpers read. No `GIT_*`: those of a shell are for another repository."""
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

Argument = str | bytes | Path


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Which repository, files and index a command works on. All paths are absolute."""

    git_dir: str | None = None
    """None only to look for the repository that `directory` is in."""
    work_tree: str | None = None
    index: str | None = None
    objects: str | None = None
    """Another directory of objects than that of `git_dir`; its own alternates apply."""
    alternates: Sequence[str] = ()
    """More directories of objects to read from."""
    directory: str | None = None
    """Where the command runs; None for the work tree, else `git_dir`."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a command left: its exit status, minus a signal's number when it was killed, and its output."""

    status: int
    out: bytes
    err: bytes
    is_timed_out: bool = False
    """Whether it was killed because it took too long."""


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
        return Git(
            program=self._program,
            mask=self._mask,
            mark=self._mark,
            holding=holding,
            is_stopped=is_stopped,
        )

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
        return _finish(self._start(place, arguments, environment), data, timeout, check)

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
            outputs.extend(_finish(process, None, timeout) for process in started)
        finally:
            for process in started[len(outputs) :]:
                _kill(process)
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
        variables = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CONFIG_COUNT": str(len(OVERRIDES)),
        }
        for number, (key, value) in enumerate(OVERRIDES.items()):
            variables[f"GIT_CONFIG_KEY_{number}"] = key
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        if needs_credentials:
            known = {name: os.environ[name] for name in CREDENTIAL_VARIABLES if name in os.environ}
            variables |= {**known, "GIT_ALLOW_PROTOCOL": ALLOWED_PROTOCOLS}
        else:
            variables |= {
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                # An object that a partial clone lacks is an error here, not a request that a repository words.
                "GIT_NO_LAZY_FETCH": "1",
                "GIT_ALLOW_PROTOCOL": "none",
            }
        if self._mark is not None:
            variables[EXECUTION_MARK] = self._mark
        named = {
            "GIT_DIR": place.git_dir,
            "GIT_WORK_TREE": place.work_tree,
            "GIT_INDEX_FILE": place.index,
            "GIT_OBJECT_DIRECTORY": place.objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, place.alternates)) or None,
        }
        return variables | {name: value for name, value in named.items() if value is not None}


def _finish(
    process: subprocess.Popen[bytes],
    data: bytes | None,
    timeout: float,
    check: Callable[[], None] | None = None,
) -> Output:
    """How the command ended. It is killed when it takes too long, or when `check` raises."""
    is_timed_out = False
    try:
        if check is None:
            out, err = process.communicate(data or b"", timeout)
        else:
            out, err = _communicate(process, data or b"", timeout, check)
    except subprocess.TimeoutExpired:
        is_timed_out = True
        out, err = _kill(process)
    except BaseException:
        _kill(process)
        raise
    return Output(status=process.returncode, out=out, err=err, is_timed_out=is_timed_out)


def _communicate(
    process: subprocess.Popen[bytes], data: bytes, timeout: float, check: Callable[[], None]
) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + timeout
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        try:
            return process.communicate(data, min(left, STOP_S))
        except subprocess.TimeoutExpired:
            check()
            if left == 0:
                raise
            data = b""  # the first call goes on with all of it


def _kill(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """End a command with everything that it started: its own group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()


def failure(error: OSError | StateError, doing: str) -> WorkspaceError:
    """Return the error for what the machine refused: `doing` says what could not be done."""
    is_passing = error.can_pass if isinstance(error, StateError) else can_pass(error)
    reason = str(error) if isinstance(error, StateError) or not error.strerror else error.strerror
    hint = "free some space on the disk" if is_passing and "pace" in reason else None
    return WorkspaceError(f"{doing}: {reason}", hint=hint, can_pass=is_passing)


def split(output: bytes) -> list[str]:
    """Return the fields of NUL-separated output; bytes that are not UTF-8 become surrogates, as in file names."""
    return [os.fsdecode(field) for field in output.split(b"\0")[:-1]]


def _quoted(path: str) -> str:
    """A directory in a list of alternates, which are separated by colons."""
    if ":" not in path and not path.startswith('"'):
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _verb(arguments: Sequence[Argument]) -> str:
    """The command's name: arguments may hold what nobody should read."""
    return next((word for word in arguments if isinstance(word, str) and word[:1] != "-"), "")
