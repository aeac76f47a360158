"""Every exception nightherd raises, in one tree.

```
NightherdError                       1   an operation failed
├── UsageError                       2   the request itself makes no sense
├── NotFoundError                    3   nothing by that name
│   ├── AgentNotFoundError
│   ├── JobNotFoundError
│   ├── SessionNotFoundError
│   └── AmbiguousIdError                 more than one by that prefix
├── ForbiddenError                   4   policy says no
├── RefusedError                     5   the state it is in does not allow it
│   ├── TransitionError                  a step the lifecycle's table does not have
│   ├── NotYetError                      the job has to wait: its session is busy, a limit is reached
│   └── FencedError                      another worker owns this execution now
├── ConfigError                     78   the configuration cannot be used
│   ├── ConfigNotFoundError              no fleet file
│   └── ConfigInvalidError               located problems, all of them
│       └── AgentBlockedError            the agent asks for protection that cannot be given
├── StateError                       1   the state directory cannot be used
│   ├── StateDirectoryCreateError
│   ├── StateDirectoryValidationError
│   ├── StateFileError
│   ├── AtomicWriteError
│   ├── SafeReadError
│   ├── SchemaVersionError          78   written by a newer nightherd
│   └── JournalError                     a journal line that cannot be read or written
├── RunnerError                      1   a job failed while it ran
│   ├── SDKInitializationError           the runtime could not begin: key, network, program, directory
│   ├── SDKStreamingError                it failed on the way: limits, connection, provider
│   ├── MalformedResponseError           it answered what nobody can read
│   └── JobTimeoutError            124   the job ran longer than it may
├── InvalidValueError                2   a duration, size, amount or id that does not parse
├── NoDaemonError                   69   nobody runs the fleet whom to ask
└── InterruptedRunError            130   a person pressed Ctrl-C
```

A class carries what every surface needs: its docstring is the default message, `exit_code` is what the
command line ends with, `http_status` what the API answers, `next_step` the thing to do when the one who
raises it knows no better `hint`.
Outcomes a caller plans for (suspended, refused by a guard, skipped) are values, not exceptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nightherd.model.problem import Problem


class NightherdError(Exception):
    """The operation failed."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    next_step: ClassVar[str | None] = None

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.hint = hint or type(self).next_step
        super().__init__(self.message)


class UsageError(NightherdError):
    """The request makes no sense as it stands."""

    exit_code = 2
    http_status = 400


class InvalidValueError(NightherdError, ValueError):
    """The value cannot be understood."""

    exit_code = 2
    http_status = 400


class NotFoundError(NightherdError):
    """There is nothing by that name."""

    exit_code = 3
    http_status = 404


class AgentNotFoundError(NotFoundError):
    """The fleet has no such agent."""

    next_step = "nightherd agent list"


class JobNotFoundError(NotFoundError):
    """There is no such job."""

    next_step = "nightherd jobs"


class SessionNotFoundError(NotFoundError):
    """There is no such session."""

    next_step = "nightherd session"


class AmbiguousIdError(NotFoundError):
    """More than one thing matches that prefix."""

    http_status = 409


class ForbiddenError(NightherdError):
    """Policy does not allow this."""

    exit_code = 4
    http_status = 403


class RefusedError(NightherdError):
    """The state it is in does not allow this."""

    exit_code = 5
    http_status = 409


class TransitionError(RefusedError):
    """The lifecycle has no such step."""

    def __init__(self, lifecycle: str, current: str, target: str) -> None:
        self.lifecycle = lifecycle
        self.current = current
        self.target = target
        super().__init__(f"a {lifecycle} that is {current} cannot become {target}")


class NotYetError(RefusedError):
    """The job has to wait its turn."""


class FencedError(RefusedError):
    """Another worker owns this execution now; nothing more may be written for it."""


class ConfigError(NightherdError):
    """The configuration cannot be used."""

    exit_code = 78
    http_status = 422
    next_step = "nightherd config check"


class ConfigNotFoundError(ConfigError):
    """No fleet file was found."""

    next_step = "nightherd init"


class ConfigInvalidError(ConfigError):
    """The configuration has mistakes; each is located in `problems`."""

    def __init__(
        self, problems: Sequence[Problem], message: str | None = None, *, hint: str | None = None
    ) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        plural = "" if count == 1 else "s"
        super().__init__(message or f"{count} problem{plural} in the configuration", hint=hint)


class AgentBlockedError(ConfigInvalidError):
    """The agent does not run: a setting that protects cannot be honoured."""

    def __init__(self, agent: str, problems: Sequence[Problem]) -> None:
        message = f"agent {agent!r} does not run: {problems[0].message}"
        super().__init__(problems, message, hint=f"nightherd config show {agent} --origin")


PASSING_CODES = frozenset(("ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM", "BUSY"))


class StateError(NightherdError):
    """The state directory cannot be used."""

    def __init__(
        self,
        message: str | None = None,
        *,
        path: str | None = None,
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.path = path
        self.code = code
        super().__init__(message, hint=hint)

    @property
    def can_pass(self) -> bool:
        """Whether the same may work later without anything being repaired: a full disk, say."""
        return self.code in PASSING_CODES


class StateDirectoryCreateError(StateError):
    """The state directory cannot be created."""


class StateDirectoryValidationError(StateError):
    """The state directory is not whole."""

    def __init__(self, message: str | None = None, *, missing_paths: Sequence[str] = ()) -> None:
        self.missing_paths = tuple(missing_paths)
        super().__init__(message)


class StateFileError(StateError):
    """A state file cannot be read or written."""

    def __init__(
        self,
        message: str | None = None,
        *,
        path: str | None = None,
        operation: str = "read",
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.operation = operation
        super().__init__(message, path=path, code=code, hint=hint)


class AtomicWriteError(StateError):
    """A file could not be replaced; the old one is untouched."""

    def __init__(
        self,
        message: str | None = None,
        *,
        path: str | None = None,
        temp_path: str | None = None,
        code: str | None = None,
    ) -> None:
        self.temp_path = temp_path
        super().__init__(message, path=path, code=code)


class SafeReadError(StateError):
    """A file could not be read, also after retries."""


class SchemaVersionError(StateError):
    """The state directory was written by a newer nightherd."""

    exit_code = 78


class JournalError(StateError):
    """The journal cannot be read or written."""


class RunnerError(NightherdError):
    """The job failed while it ran."""

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        job_id: str | None = None,
        agent_name: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.code = code
        self.job_id = job_id
        self.agent_name = agent_name
        super().__init__(message, hint=hint)


class SDKInitializationError(RunnerError):
    """The runtime could not begin."""

    def is_missing_api_key(self) -> bool:
        """Whether there are no credentials, or none that are accepted."""
        return self.code in ("missing_api_key", "auth_failed")

    def is_network_error(self) -> bool:
        """Whether the provider could not be reached."""
        return self.code == "network"


class SDKStreamingError(RunnerError):
    """The run failed on the way."""

    def is_rate_limited(self) -> bool:
        """Whether the provider wants fewer requests."""
        return self.code in ("rate_limited", "overloaded")

    def is_connection_error(self) -> bool:
        """Whether the connection was lost."""
        return self.code in ("network", "stalled", "killed")

    def is_recoverable(self) -> bool:
        """Whether the same may succeed later."""
        return self.is_rate_limited() or self.is_connection_error() or self.code == "server_error"


class MalformedResponseError(RunnerError):
    """The runtime answered what nobody can read."""

    def __init__(
        self,
        message: str | None = None,
        *,
        raw_response: object = None,
        expected: str | None = None,
        code: str | None = None,
        job_id: str | None = None,
        agent_name: str | None = None,
    ) -> None:
        self.raw_response = raw_response
        self.expected = expected
        super().__init__(message, code=code, job_id=job_id, agent_name=agent_name)


class JobTimeoutError(RunnerError):
    """The job ran longer than it may."""

    exit_code = 124
    http_status = 504


class NoDaemonError(NightherdError):
    """No process runs the fleet."""

    exit_code = 69
    http_status = 503
    next_step = "nightherd start --detach"


class InterruptedRunError(NightherdError):
    """Interrupted."""

    exit_code = 130
    http_status = 499


def unwrapped(error: BaseException) -> BaseException:
    """What went wrong, without the wrapping of task groups."""
    return unwrapped(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def message_of(error: BaseException) -> str:
    """What an error says; one that is not ours with its kind."""
    if isinstance(error, NightherdError):
        return error.message
    return str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"


def code_of(error: NightherdError | type[NightherdError]) -> str:
    """The error's name for programs: `JobNotFoundError` is `job_not_found`."""
    kind = error if isinstance(error, type) else type(error)
    words = kind.__name__.removesuffix("Error")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in words)[1:]


def exit_code_for(code: str) -> int:
    """What the command line ends with for the error of this name; 1 for a name that is none of ours."""
    return next((kind.exit_code for kind in _family(NightherdError) if code_of(kind) == code), 1)


def _family(kind: type[NightherdError]) -> Iterator[type[NightherdError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _family(below)
