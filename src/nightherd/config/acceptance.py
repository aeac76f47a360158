"""Acceptance: the grants a person has accepted, on record in the state directory, and a fleet held to them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from nightherd.errors import StateError, StateFileError
from nightherd.files.atomic import atomic_write_json
from nightherd.files.permission import state_file_error
from nightherd.model.agent import Fleet
from nightherd.model.grants import FleetGrants, grants_of, may_write
from nightherd.model.known import known
from nightherd.model.restrain import restrained
from nightherd.model.widening import AUTO, Widening, narrowed, widenings, with_settings_of

RECORD = "accepted.json"
VERSION = 1
ACCEPT = "nightherd reload --accept"


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What was accepted of one fleet file, and when."""

    at: datetime
    grants: FleetGrants


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file: fleet files by their path from the state directory, so that both can be moved together."""

    version: int = VERSION
    fleets: dict[str, Accepted] = {}


KNOWN = known(Accepted, Record, FleetGrants)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A fleet as it may be run now."""

    fleet: Fleet
    """Without what waits for a person."""
    pending: tuple[Widening, ...] = ()
    """What its files grant beyond that."""
    accepted: tuple[Widening, ...] = ()
    """What was accepted just now."""

    @property
    def pending_texts(self) -> list[str]:
        """For people, and for status."""
        return [one.text for one in self.pending]


def admit(
    fleet: Fleet,
    state_dir: Path,
    *,
    at: datetime,
    before: Fleet | None = None,
    is_accepted: bool = False,
) -> Admission:
    """Hold the fleet to what was accepted. Where nothing was, all of it is, and is recorded.

    `is_accepted`: a person accepts all of it now. Narrowing is recorded at once. `StateFileError` when the record
    cannot be read, `AtomicWriteError` when what a person accepts cannot be recorded.
    """
    wanted, file = grants_of(fleet), Path(fleet.file)
    try:
        accepted = read_accepted(state_dir, file)
    except StateFileError:
        if not is_accepted:
            raise
        accepted = None
    if accepted is None:
        _record(state_dir, file, wanted, at, known=None, must=is_accepted)
        return Admission(fleet=fleet)
    home = str(file.parent)
    found = widenings(accepted, wanted, home)
    base = wanted if is_accepted else admissible(fleet, accepted, wanted)
    pending = widenings(base, wanted, home)
    if not pending:
        _record(state_dir, file, wanted, at, known=accepted, must=is_accepted)
        return Admission(fleet=fleet, accepted=found)
    _record(state_dir, file, narrowed(base, wanted, home), at, known=accepted, must=False)
    taken = tuple(one for one in found if one not in pending)
    return Admission(fleet=restrained(fleet, base, before), pending=pending, accepted=taken)


def ensure_recorded(fleet: Fleet, state_dir: Path, at: datetime) -> None:
    """Record what `fleet` grants as accepted, where nothing is on record yet."""
    if read_accepted(state_dir, Path(fleet.file)) is None:
        _record(state_dir, Path(fleet.file), grants_of(fleet), at, known=None, must=False)


def _record(
    state_dir: Path,
    file: Path,
    grants: FleetGrants,
    at: datetime,
    *,
    known: FleetGrants | None,
    must: bool,
) -> None:
    """Record the grants unless they are on record. A disk that is full holds up no narrowing."""
    if grants == known:
        return
    try:
        write_accepted(state_dir, file, grants, at)
    except StateError:
        if must:
            raise


def pending_of(fleet: Fleet, state_dir: Path) -> tuple[Widening, ...]:
    """What waits for a person; looks only, and records nothing."""
    accepted, wanted = read_accepted(state_dir, Path(fleet.file)), grants_of(fleet)
    if accepted is None:
        return ()
    return widenings(admissible(fleet, accepted, wanted), wanted, str(Path(fleet.file).parent))


def admissible(fleet: Fleet, accepted: FleetGrants, wanted: FleetGrants) -> FleetGrants:
    """What may take effect without a person.

    That is everything where nobody said `ask` and agents cannot have written the fleet's files; but for Claude's
    settings in working directories, which agents can write.
    """
    if accepted.reload == AUTO:
        return wanted
    home = str(Path(fleet.file).parent)
    places = dict.fromkeys((fleet.file, *fleet.files))
    if any(_is_writable(one) and may_write(accepted, home, one) for one in places):
        return accepted
    return with_settings_of(accepted, wanted)


def _is_writable(file: str) -> bool:
    """Whether this user, who is the agents' user too, can change or replace the file."""
    return os.access(file, os.W_OK) or os.access(os.path.dirname(file), os.W_OK)  # noqa: PTH120


def read_accepted(state_dir: Path, file: Path) -> FleetGrants | None:
    """What was accepted of the fleet file; None when nothing ever was."""
    found = _read(state_dir).fleets.get(_name(state_dir, file))
    return None if found is None else found.grants


def write_accepted(state_dir: Path, file: Path, grants: FleetGrants, at: datetime) -> None:
    """Record what is accepted of the fleet file from now on."""
    try:
        record = _read(state_dir)
    except StateFileError:
        record = Record()  # a person replaces what cannot be read; the others are asked again
    fleets = {**record.fleets, _name(state_dir, file): Accepted(at=at, grants=grants)}
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise state_file_error(error, state_dir, "write") from error
    atomic_write_json(state_dir / RECORD, msgspec.to_builtins(Record(fleets=fleets)))


def _read(state_dir: Path) -> Record:
    path = state_dir / RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except FileNotFoundError:
        return Record()
    except (OSError, msgspec.MsgspecError) as error:
        raise StateFileError(
            f"cannot read what was accepted, {path}: {error}",
            path=str(path),
            operation="read",
            hint=ACCEPT,
        ) from error


def _name(state_dir: Path, file: Path) -> str:
    return os.path.relpath(os.path.realpath(file), os.path.realpath(state_dir))
