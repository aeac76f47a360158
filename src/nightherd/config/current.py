"""The fleet's files as they are now: read again only when one of them looks different."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from nightherd.config.load import CheckedFleet, LoadedFleet
from nightherd.config.persistence import PROJECT_FILE
from nightherd.errors import NightherdError
from nightherd.model.problem import Place, Problem, Severity

DOTENV = ".env"
MOST_READS = 3
"""How often files that are written while they are read are read again for one answer."""
Stamp = tuple[tuple[str, int, int, int], ...]
"""What a set of files looked like: name, inode, size and time of each."""


def watched_files(checked: CheckedFleet, state_dir: Path) -> tuple[str, ...]:
    """Everything that a fleet was read from, and the files and directories that may be there the next time."""
    # How a project's state is written may be said at any time.
    schema = str(state_dir / PROJECT_FILE)
    files = {**dict.fromkeys(with_dotenv(checked.files)), schema: None}
    return (*files, *checked.directories, *checked.settings_files)


def with_dotenv(files: Iterable[str]) -> tuple[str, ...]:
    """The files, and the `.env` that may stand beside each."""
    found = dict.fromkeys(files)
    beside = {str(Path(file).parent / DOTENV): None for file in found}
    return tuple({**found, **beside})


def stamp_of(files: Iterable[str]) -> Stamp:
    """What the files look like now; one that is not there looks like nothing."""
    stamps = []
    for file in files:
        try:
            found = os.stat(file)  # noqa: PTH116 (a thousand of them every second)
        except OSError:
            stamps.append((file, 0, 0, 0))
        else:
            stamps.append((file, found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(stamps)


class ConfigReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the files say."""

    loaded: LoadedFleet | None
    """The fleet as the files last said without errors; None when they never did."""
    is_valid: bool
    """Whether that is what they say now."""
    problems: tuple[Problem, ...]
    files: tuple[str, ...]
    """The files that were read."""


class CurrentConfig:
    """What the files of one fleet say. Threads may share it: they wait for each other."""

    def __init__(
        self,
        check: Callable[[], CheckedFleet],
        file: Path,
        files: Iterable[str],
        state_dir: Path,
    ) -> None:
        """`files` are those that the fleet is known to be read from."""
        self.file = file
        self._check = check
        self._state_dir = state_dir
        self._watched: tuple[str, ...] = with_dotenv(files)
        self._stamp: Stamp = ()
        self._reading: ConfigReading | None = None
        self._lock = threading.Lock()

    def read(self) -> ConfigReading:
        """What the files say now; errors in them are values."""
        with self._lock:
            for _ in range(MOST_READS):
                stamp = stamp_of(self._watched)
                if self._reading is not None and stamp == self._stamp:
                    break
                self._reading = self._read_again(stamp)
            assert self._reading is not None  # noqa: S101 (read above)
            return self._reading

    def _read_again(self, stamp: Stamp) -> ConfigReading:
        """Read the files, which looked like `stamp` before: one that is written meanwhile is read once more."""
        loaded = None if self._reading is None else self._reading.loaded
        try:
            checked = self._check()
        except NightherdError as error:
            self._stamp = stamp
            place = Place(file=str(self.file), line=1, column=1)
            problem = Problem(place=place, message=error.message, severity=Severity.ERROR)
            return ConfigReading(loaded=loaded, is_valid=False, problems=(problem,), files=())
        seen = {one[0]: one for one in stamp}
        self._watched = watched_files(checked, self._state_dir)
        is_new = any(file not in seen for file in checked.files)
        # What a file that was not watched looked like before it was read is not known.
        after = () if is_new else stamp_of(self._watched)
        self._stamp = tuple(seen.get(one[0], one) for one in after)
        return ConfigReading(
            loaded=checked.loaded or loaded,
            is_valid=checked.loaded is not None,
            problems=checked.problems,
            files=checked.files,
        )
