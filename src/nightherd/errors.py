"""Every exception nightherd raises, in one tree.

```
NightherdError                       1   an operation failed
├── UsageError                       2   the request is wrong
│   └── InvalidInputsError               inputs that the workflow does not take
├── NotFoundError                    3   nothing has that name
│   ├── AgentNotFoundError
│   ├── JobNotFoundError
│   ├── SessionNotFoundError
│   ├── WorkspaceNotFoundError
│   └── AmbiguousIdError                 several ids have that prefix
├── ForbiddenError                   4   policy does not allow it
├── RefusedError                     5   the current state does not allow it
│   ├── TransitionError                  a status change that the lifecycle does not have
│   ├── NotYetError                      the job has to wait: its session is busy, a limit is reached
│   ├── FencedError                      another worker owns this execution now
│   └── ContainerEngineError             the container engine cannot be found or reached
├── ConfigError                     78   the configuration cannot be used
│   ├── ConfigNotFoundError              no fleet file
│   └── ConfigInvalidError               located problems, all of them
│       └── AgentBlockedError            a protective setting of the agent cannot be honoured
├── StateError                       1   the state directory cannot be used
│   ├── StateDirectoryCreateError
│   ├── StateDirectoryValidationError
│   ├── StateFileError
│   ├── AtomicWriteError
│   ├── SafeReadError
│   ├── SchemaVersionError          78   written by a newer nightherd
│   └── JournalError                     a journal line that cannot be read or written
├── RunnerError                      1   a job failed while it ran
│   ├── SDKInitializationError           the runtime could not start: key, network, program, directory
│   ├── SDKStreamingError                it failed while running: limits, connection, provider
│   ├── MalformedResponseError           its response could not be parsed
│   └── JobTimeoutError            124   the job exceeded its time limit
├── ChatRefusedError                 1   a chat platform refuses the bot for good
├── WorkSourceError                  1   a tracker of issues cannot be asked, or refuses
├── WorkspaceError                   1   a workspace cannot be made, snapshotted, merged or removed
├── InvalidValueError                2   a duration, size, amount or id that does not parse
├── NoDaemonError                   69   no daemon runs the fleet
└── InterruptedRunError            130   Ctrl-C was pressed
```

A class carries what every surface needs: its docstring is the default message, `exit_code` is the exit code of
the command line, `http_status` the status of the API's response.
An error says what to do in two ways. `hint` is words that fit every surface. `next_step` is an `Action` that each
surface spells its own way: a command, a request, or a value to act on; `alternatives` are steps that help as well.
Outcomes a caller plans for (suspended, refused by a guard, skipped) are values, not exceptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypedDict, Unpack

from nightherd.next_step import Action, NextStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nightherd.model.problem import Problem


class _Advice(TypedDict, total=False):
    hint: str | None
    next_step: NextStep | None
    alternatives: Sequence[NextStep]


class _Details(_Advice, total=False):
    path: str | None
    code: str | None


class NightherdError(Exception):
    """The operation failed."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    usual_step: ClassVar[NextStep | None] = None
    """What to do when the raiser gives neither a hint nor a step."""

    def __init__(
        self, message: str | None = None, *, hint: str | None = None,
        next_step: NextStep | None = None, alternatives: Sequence[NextStep] = (),
    ) -> None:  # fmt: skip
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.hint = hint
        self.next_step = next_step
        self.alternatives = tuple(alternatives)
        if hint is None and next_step is None:
            self.next_step = type(self).usual_step
        super().__init__(self.message)


class UsageError(NightherdError):
    """The request is not valid."""

    exit_code = 2
    http_status = 400


class InvalidInputsError(UsageError):
    """The workflow does not take these inputs."""

    http_status = 422


class ChatRefusedError(NightherdError):
    """A chat platform refuses the bot for good: its token was revoked, or it lacks a permission."""


class WorkSourceError(NightherdError):
    """A tracker of issues cannot be asked, or refuses."""

    def __init__(self, message: str | None = None, *, kind: str = "unavailable", wait_s: float | None = None) -> None:  # fmt: skip
        self.kind, self.wait_s = kind, wait_s
        super().__init__(message)


class WorkspaceError(NightherdError):
    """A workspace cannot be made, snapshotted, merged or removed."""

    def __init__(self, message: str | None = None, *, can_pass: bool = False, **advice: Unpack[_Advice]) -> None:  # fmt: skip
        self.can_pass = can_pass
        """Whether trying again later may help: a full disk, a network that is down."""
        super().__init__(message, **advice)


class InvalidValueError(NightherdError, ValueError):
    """The value is not valid."""

    exit_code = 2
    http_status = 400


class NotFoundError(NightherdError):
    """Nothing has that name."""

    exit_code = 3
    http_status = 404


class AgentNotFoundError(NotFoundError):
    """The fleet has no such agent."""

    usual_step = NextStep(Action.LIST_AGENTS)


class JobNotFoundError(NotFoundError):
    """There is no such job."""

    usual_step = NextStep(Action.LIST_JOBS)


class SessionNotFoundError(NotFoundError):
    """There is no such session."""

    usual_step = NextStep(Action.LIST_SESSIONS)


class WorkspaceNotFoundError(NotFoundError):
    """There is no such workspace."""

    usual_step = NextStep(Action.LIST_WORKSPACES)


class AmbiguousIdError(NotFoundError):
    """Several ids have that prefix."""

    http_status = 409


class ForbiddenError(NightherdError):
    """Policy does not allow this."""

    exit_code = 4
    http_status = 403


class RefusedError(NightherdError):
    """The current state does not allow this."""

    exit_code = 5
    http_status = 409


class TransitionError(RefusedError):
    """The lifecycle does not allow this change."""

    def __init__(self, lifecycle: str, current: str, target: str) -> None:
        self.lifecycle, self.current, self.target = lifecycle, current, target
        super().__init__(f"a {lifecycle} that is {current} cannot become {target}")


class NotYetError(RefusedError):
    """The job has to wait."""


class FencedError(RefusedError):
    """Another worker owns this execution now; nothing more may be written for it."""


class ContainerEngineError(RefusedError):
    """The container engine cannot be found or reached."""


class ConfigError(NightherdError):
    """The configuration cannot be used."""

    exit_code = 78
    http_status = 422
    usual_step = NextStep(Action.CHECK_CONFIG)


class ConfigNotFoundError(ConfigError):
    """No fleet file was found."""

    usual_step = NextStep(Action.CREATE_FLEET)


class ConfigInvalidError(ConfigError):
    """The configuration has errors; `problems` has each with its place."""

    def __init__(
        self, problems: Sequence[Problem], message: str | None = None, **advice: Unpack[_Advice]
    ) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        text = message or f"{count} problem{'' if count == 1 else 's'} in the configuration"
        super().__init__(text, **advice)


class AgentBlockedError(ConfigInvalidError):
    """The agent cannot run: a protective setting cannot be honoured."""

    def __init__(self, agent: str, problems: Sequence[Problem]) -> None:
        message = f"agent {agent!r} cannot run: {problems[0].message}"
        super().__init__(problems, message, next_step=NextStep(Action.SHOW_CONFIG, agent=agent))


PASSING_CODES = frozenset(("ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM", "BUSY"))


class StateError(NightherdError):
    """The state directory cannot be used."""

    def __init__(
        self, message: str | None = None, *, path: str | None = None, code: str | None = None, **advice: Unpack[_Advice]
    ) -> None:  # fmt: skip
        self.path, self.code = path, code
        super().__init__(message, **advice)

    @property
    def can_pass(self) -> bool:
        """Return whether a retry may succeed without a repair, as with a full disk."""
        return self.code in PASSING_CODES


class StateDirectoryCreateError(StateError):
    """The state directory cannot be created."""


class StateDirectoryValidationError(StateError):
    """The state directory is incomplete."""

    def __init__(self, message: str | None = None, *, missing_paths: Sequence[str] = ()) -> None:
        self.missing_paths = tuple(missing_paths)
        super().__init__(message)


class StateFileError(StateError):
    """A state file cannot be read or written."""

    def __init__(self, message: str | None = None, *, operation: str = "read", **more: Unpack[_Details]) -> None:  # fmt: skip
        self.operation = operation
        super().__init__(message, **more)


class AtomicWriteError(StateError):
    """A file could not be replaced; the old one is untouched."""

    def __init__(self, message: str | None = None, *, temp_path: str | None = None, **more: Unpack[_Details]) -> None:  # fmt: skip
        self.temp_path = temp_path
        super().__init__(message, **more)


class SafeReadError(StateError):
    """A file could not be read, even after retries."""


class SchemaVersionError(StateError):
    """The state directory was written by a newer nightherd."""

    exit_code = 78


class JournalError(StateError):
    """The journal cannot be read or written."""


class RunnerError(NightherdError):
    """The job failed while it ran."""

    def __init__(
        self, message: str | None = None, *, code: str | None = None, job_id: str | None = None,
        agent_name: str | None = None, hint: str | None = None,
    ) -> None:  # fmt: skip
        self.code, self.job_id, self.agent_name = code, job_id, agent_name
        super().__init__(message, hint=hint)


class SDKInitializationError(RunnerError):
    """The runtime could not start."""

    def is_missing_api_key(self) -> bool:
        """Return whether credentials are missing or rejected."""
        return self.code in ("missing_api_key", "auth_failed")

    def is_network_error(self) -> bool:
        """Return whether the provider could not be reached."""
        return self.code == "network"


class SDKStreamingError(RunnerError):
    """The run failed."""

    def is_rate_limited(self) -> bool:
        """Return whether the provider limits requests."""
        return self.code in ("rate_limited", "overloaded")

    def is_connection_error(self) -> bool:
        """Return whether the connection was lost."""
        return self.code in ("network", "stalled", "killed")

    def is_recoverable(self) -> bool:
        """Return whether a retry may succeed."""
        return self.is_rate_limited() or self.is_connection_error() or self.code == "server_error"


class MalformedResponseError(RunnerError):
    """The runtime's response cannot be parsed."""

    def __init__(
        self, message: str | None = None, *, raw_response: object = None, expected: str | None = None,
        code: str | None = None, job_id: str | None = None, agent_name: str | None = None,
    ) -> None:  # fmt: skip
        self.raw_response, self.expected = raw_response, expected
        super().__init__(message, code=code, job_id=job_id, agent_name=agent_name)


class JobTimeoutError(RunnerError):
    """The job exceeded its time limit."""

    exit_code = 124
    http_status = 504


class NoDaemonError(NightherdError):
    """No daemon runs the fleet."""

    exit_code = 69
    http_status = 503
    usual_step = NextStep(Action.START_DAEMON)


class InterruptedRunError(NightherdError):
    """Interrupted."""

    exit_code = 130
    http_status = 499


def unwrapped(error: BaseException) -> BaseException:
    """Return the error inside exception groups."""
    return unwrapped(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def message_of(error: BaseException) -> str:
    """Return an error's message; for a foreign error also its class."""
    if isinstance(error, NightherdError):
        return error.message
    return str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"


def code_of(error: NightherdError | type[NightherdError]) -> str:
    """Return the error's name for programs: `JobNotFoundError` is `job_not_found`."""
    kind = error if isinstance(error, type) else type(error)
    words = kind.__name__.removesuffix("Error")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in words)[1:]


def exit_code_for(code: str) -> int:
    """Return the exit code of the error with this name; 1 for an unknown name."""
    return next((kind.exit_code for kind in _family(NightherdError) if code_of(kind) == code), 1)


def _family(kind: type[NightherdError]) -> Iterator[type[NightherdError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _family(below)
