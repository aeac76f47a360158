"""Examiner: one examination at a time, for everyone who asks while it lasts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from nightherd.errors import NightherdError, message_of, unwrapped
from nightherd.web.health.doctor_process import Diagnosis

Examine = Callable[[bool], Awaitable[Diagnosis]]
"""Examines; whether every line is read."""
KEPT = timedelta(minutes=10)
"""How long a result is kept that nobody waited for any more."""


class Examination:
    """One examination: under way, or over with a result or an error."""

    def __init__(self, *, is_deep: bool) -> None:
        self.is_deep = is_deep
        self.over = anyio.Event()
        self.diagnosis: Diagnosis | None = None
        self.error: NightherdError | None = None
        self.is_taken = False

    def take(self) -> Diagnosis:
        """The result; raises what went wrong."""
        self.is_taken = True
        if self.diagnosis is None:
            raise self.error or NightherdError("the examination was interrupted")
        return self.diagnosis


class Examiner:
    """Starts an examination when none is under way that answers the question."""

    def __init__(self, examine: Examine, now: Callable[[], datetime]) -> None:
        self._examine = examine
        self._now = now
        self._last: Examination | None = None
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return None
        tasks.cancel_scope.cancel()
        return await tasks.__aexit__(kind, error, trace)

    async def diagnose(self, *, is_deep: bool, patience_s: float) -> Diagnosis | None:
        """What an examination found that ended after this call began, or that nobody has seen yet.

        None when that takes longer than `patience_s`; then the examination continues.
        """
        with anyio.move_on_after(patience_s):
            while True:
                examination = self._usable(is_deep=is_deep)
                await examination.over.wait()
                if examination.is_deep >= is_deep:
                    return examination.take()
        return None

    def _usable(self, *, is_deep: bool) -> Examination:
        """The examination to wait for: the one under way, an unseen result, or a new one."""
        last = self._last
        if last is not None and not last.over.is_set():
            return last
        if last is not None and last.is_deep >= is_deep and self._is_unseen(last):
            return last
        if self._tasks is None:
            raise NightherdError("the server is closing")
        self._last = Examination(is_deep=is_deep)
        self._tasks.start_soon(self._carry_out, self._last)
        return self._last

    def _is_unseen(self, examination: Examination) -> bool:
        found = examination.diagnosis
        return not examination.is_taken and found is not None and self._now() - found.as_of < KEPT

    async def _carry_out(self, examination: Examination) -> None:
        try:
            examination.diagnosis = await self._examine(examination.is_deep)
        except NightherdError as error:
            examination.error = error
        except Exception as error:  # noqa: BLE001 (an edge: whoever waits is told, the server continues)
            message = message_of(unwrapped(error))
            examination.error = NightherdError(f"the doctor could not examine: {message}")
        finally:
            examination.over.set()
