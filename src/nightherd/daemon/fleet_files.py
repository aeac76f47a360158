"""The fleet's files: loaded whole or not at all, and looked at for changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import replace

from nightherd.config.acceptance import RECORD, Admission
from nightherd.config.current import Stamp, stamp_of, watched_files
from nightherd.config.discovery import STATE_DIRECTORY
from nightherd.config.load import CheckedFleet
from nightherd.config.report import problem_data
from nightherd.engine.inbox.reloads import HeldReload
from nightherd.errors import ConfigInvalidError, NightherdError
from nightherd.model.agents.agent import Fleet, get_agent
from nightherd.model.problem import Severity
from nightherd.wiring.fleets import check_fleet
from nightherd.wiring.reloads import admit_answered, ask_about, held_by
from nightherd.wiring.stores import system_clock


class Loading(msgspec.Struct, frozen=True, kw_only=True):
    """The result of loading: a fleet, or what is wrong. `stamp` is what the files looked like before."""

    fleet: Fleet | None
    problems: list[dict[str, Any]]
    """What is wrong where there is no fleet; else what some of its agents do not run for."""
    files: tuple[str, ...]
    stamp: Stamp
    pending: tuple[str, ...] = ()
    """What the files grant that waits for a person; the fleet is without it."""
    accepted: tuple[str, ...] = ()
    """What they grant that was not on record, and took effect without a person."""
    held: HeldReload | None = None
    """What the inbox has to ask about; None where there is no fleet."""


class FleetFiles:
    """One fleet file and everything it names; only `agents` of it when some are given.

    How its state is written is said in `state_dir`, else in the state directory beside the file.
    """

    def __init__(
        self,
        file: Path,
        environ: Mapping[str, str],
        agents: Iterable[str] = (),
        *,
        state_dir: Path | None = None,
    ) -> None:
        self.file = file
        self._environ = environ
        self._agents = tuple(agents)
        self._state_dir = state_dir or file.parent / STATE_DIRECTORY
        self._last: Fleet | None = None
        """The whole fleet as it was last in effect."""

    @property
    def is_whole(self) -> bool:
        """Whether every agent counts."""
        return not self._agents

    def load(self, before: Loading) -> Loading:
        """Read everything again, after `before`; what is wrong is said, never raised."""
        stamp = stamp_of(before.files)
        try:
            checked = self._checked()
            return self._loading(checked, stamp)
        except NightherdError as error:
            return self._failure(before, error.message, stamp)
        except Exception as error:  # noqa: BLE001 (an edge: no file, whatever is in it, ends what runs)
            return self._failure(before, f"{type(error).__name__}: {error}", stamp)

    def _checked(self) -> CheckedFleet:
        place = self.file.parent
        return check_fleet(self.file, environ=self._environ, cwd=place, state_dir=self._state_dir)

    def _failure(self, before: Loading, message: str, stamp: Stamp) -> Loading:
        problem = {"file": self.file.name, "line": 1, "column": 1, "message": message}
        return replace(before, fleet=None, problems=[problem], stamp=stamp)

    def load_first(self) -> Loading:
        """The same at the start, where what is wrong ends it: `ConfigError`, with every problem located."""
        checked = self._checked()
        if checked.loaded is None:
            errors = [problem for problem in checked.problems if problem.severity is Severity.ERROR]
            raise ConfigInvalidError(errors)
        return self._loading(checked, ())

    def _loading(self, checked: CheckedFleet, stamp: Stamp) -> Loading:
        cwd = self.file.parent
        # A person may accept what waits in another command.
        record = str(self._state_dir / RECORD)
        files = (*watched_files(checked, self._state_dir), record)
        errors = [
            problem for problem in checked.problems if problem.severity is not Severity.NOTICE
        ]
        admission = self._admitted(checked)
        # What was seen before reading counts: a file written meanwhile is read once more.
        seen = {
            one[0]: one for one in stamp if one[0] != record
        }  # which was perhaps written just now
        return Loading(
            fleet=None if admission is None else self._chosen(admission.fleet, checked),
            problems=[problem_data(error, cwd=cwd) for error in errors],
            files=files,
            stamp=tuple(seen.get(one[0], one) for one in stamp_of(files)),
            pending=() if admission is None else tuple(one.text for one in admission.pending),
            accepted=() if admission is None else tuple(one.text for one in admission.accepted),
            held=None if admission is None else held_by(admission),
        )

    def _admitted(self, checked: CheckedFleet) -> Admission | None:
        """The fleet without what waits for a person; None for one that cannot be used."""
        if checked.loaded is None:
            return None
        found = admit_answered(
            checked.loaded.fleet,
            self._state_dir,
            at=system_clock().now(),
            before=self._last,
        )
        self._last = found.fleet
        return found

    def _chosen(self, fleet: Fleet, checked: CheckedFleet) -> Fleet:
        if not self._agents:
            return fleet
        declared = {} if checked.loaded is None else checked.loaded.fleet.agents
        names = [get_agent(declared, name).name for name in self._agents]
        return replace(
            fleet, agents={name: fleet.agents[name] for name in names if name in fleet.agents}
        )


async def ask_about_held(loading: Loading, state_dir: Path, report: Callable[[str], None]) -> None:
    """Bring the inbox up to date with what waits for a person; that it cannot be done stops nothing."""
    if loading.held is None:
        return
    try:
        await ask_about(loading.held, state_dir)
    except NightherdError as error:
        report(f"the inbox does not say what waits for a person: {error.message}")


LOOK_S = 1.0
"""How often the files are looked at."""


class Watch:
    """The files of one fleet, and what they were last found to say. For one who waits at a time."""

    def __init__(self, files: FleetFiles, loading: Loading) -> None:
        self._files = files
        self._loading = loading
        self._hangup = threading.Event()
        self._limiter = anyio.CapacityLimiter(1)

    def ask(self) -> None:
        """Load them now, whatever they look like."""
        self._hangup.set()

    async def next(self) -> Loading:
        """Wait for a change; the result of loading then."""
        try:
            # Files may be slow to look at, and the event loop need not wake up for what has not changed.
            await to_thread.run_sync(
                self._wait_for_change, abandon_on_cancel=True, limiter=self._limiter
            )
        except BaseException:
            self._hangup.set()  # nothing waits any more: the thread ends as well
            raise
        self._hangup.clear()
        self._loading = await to_thread.run_sync(self._files.load, self._loading)
        return self._loading

    def _wait_for_change(self) -> None:
        while not self._hangup.wait(LOOK_S):
            if stamp_of(self._loading.files) != self._loading.stamp:
                return
