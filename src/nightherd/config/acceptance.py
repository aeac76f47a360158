"""Acceptance: the grants a person has accepted, on record in the state directory, and a fleet held to them."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import msgspec

from nightherd.decoding import decode_json
from nightherd.errors import StateError, StateFileError
from nightherd.files.atomic import atomic_write_json
from nightherd.files.permission import state_file_error
from nightherd.model.agents.agent import Fleet
from nightherd.model.permissions.fingerprint import fingerprint
from nightherd.model.permissions.grants import FleetGrants, grants_of, may_write
from nightherd.model.permissions.restrain import restrained
from nightherd.model.permissions.widening import (
    AUTO,
    Widening,
    narrowed,
    widenings,
    with_settings_of,
)
from nightherd.next_step import Action, NextStep

RECORD = "accepted.json"
VERSION = 1


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What was accepted of one fleet file, and when."""

    at: datetime
    grants: FleetGrants
    is_exposed: bool = False
    """Whether an agent could write the fleet's files at some time since a person accepted them.

    An agent that narrows itself could have written more before: only a person ends this.
    """


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file: fleet files by their path from the state directory, so that both can be moved together."""

    version: int = VERSION
    fleets: dict[str, Accepted] = {}


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet as it may be run now."""

    fleet: Fleet
    """Without what waits for a person."""
    pending: tuple[Widening, ...] = ()
    """What its files grant beyond that."""
    accepted: tuple[Widening, ...] = ()
    """What was accepted just now."""
    subject: str = ""
    """The fleet file, by its path from the state directory."""
    key: str = ""
    """Of what waits: the same as long as the files grant the same and the same is accepted."""

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
    subject = subject_of(state_dir, file)
    try:
        known = _read_accepted(state_dir, file)
    except StateFileError:
        if not is_accepted:
            raise
        known = None
    now = Accepted(at=at, grants=wanted)
    if known is None:
        _record(state_dir, file, now, known=None, must=is_accepted)
        return Admission(fleet=fleet, subject=subject)
    home = str(file.parent)
    found = widenings(known.grants, wanted, home)
    base = wanted if is_accepted else admissible(fleet, known, wanted)
    pending = widenings(base, wanted, home)
    if not is_accepted:
        now = msgspec.structs.replace(now, is_exposed=_is_exposed(fleet, known))
    if not pending:
        _record(state_dir, file, now, known=known, must=is_accepted)
        return Admission(fleet=fleet, accepted=found, subject=subject)
    now = msgspec.structs.replace(now, grants=narrowed(base, wanted, home))
    _record(state_dir, file, now, known=known, must=False)
    taken = tuple(one for one in found if one not in pending)
    return Admission(
        fleet=restrained(fleet, base, before),
        pending=pending,
        accepted=taken,
        subject=subject,
        key=_key(subject, known if _is_same(now, known) else now, wanted),
    )


def _is_same(accepted: Accepted, known: Accepted) -> bool:
    """Whether it is what is on record, whenever it was."""
    return msgspec.structs.replace(accepted, at=known.at) == known


def _key(subject: str, accepted: Accepted, wanted: FleetGrants) -> str:
    """A text for what waits. What was accepted once and taken back is another one: it is asked about again."""
    return fingerprint([subject, accepted.at.isoformat(), msgspec.to_builtins(wanted)])


def ensure_recorded(fleet: Fleet, state_dir: Path, at: datetime) -> None:
    """Record what `fleet` grants as accepted, where nothing is on record yet."""
    file = Path(fleet.file)
    if _read_accepted(state_dir, file) is None:
        _record(state_dir, file, Accepted(at=at, grants=grants_of(fleet)), known=None, must=False)


def _record(
    state_dir: Path, file: Path, accepted: Accepted, *, known: Accepted | None, must: bool
) -> None:
    """Record what is accepted unless it is on record. A disk that is full holds up no narrowing."""
    if known is not None and _is_same(accepted, known):
        return
    try:
        _write_accepted(state_dir, file, accepted)
    except StateError:
        if must:
            raise


def pending_of(fleet: Fleet, state_dir: Path) -> tuple[Widening, ...]:
    """What waits for a person; looks only, and records nothing."""
    known, wanted = _read_accepted(state_dir, Path(fleet.file)), grants_of(fleet)
    if known is None:
        return ()
    return widenings(admissible(fleet, known, wanted), wanted, str(Path(fleet.file).parent))


def in_effect(fleet: Fleet, state_dir: Path) -> Fleet:
    """Return the fleet without what waits for a person; looks only, and records nothing."""
    known, wanted = _read_accepted(state_dir, Path(fleet.file)), grants_of(fleet)
    if known is None:
        return fleet
    base = admissible(fleet, known, wanted)
    is_held = widenings(base, wanted, str(Path(fleet.file).parent))
    return restrained(fleet, base, None) if is_held else fleet


def admissible(fleet: Fleet, known: Accepted, wanted: FleetGrants) -> FleetGrants:
    """What may take effect without a person.

    That is everything where `reload` is not `ask` and agents cannot have written the fleet's files; but for Claude's
    settings in working directories, which agents can write.
    """
    if known.grants.reload == AUTO:
        return wanted
    if _is_exposed(fleet, known) and any(_is_writable(file) for file in _files(fleet)):
        return known.grants
    return with_settings_of(known.grants, wanted)


def _is_exposed(fleet: Fleet, known: Accepted) -> bool:
    """Whether an agent can write the fleet's files, or could since a person accepted them."""
    home = str(Path(fleet.file).parent)
    return known.is_exposed or any(
        _is_writable(file) and may_write(known.grants, home, file) for file in _files(fleet)
    )


def _files(fleet: Fleet) -> tuple[str, ...]:
    return tuple(dict.fromkeys((fleet.file, *fleet.files)))


def _is_writable(file: str) -> bool:
    """Whether this user, who is the agents' user too, can change or replace the file; an owner can always."""
    return any(os.access(one, os.W_OK) or _is_own(one) for one in (file, str(Path(file).parent)))


def _is_own(path: str) -> bool:
    try:
        return os.stat(path).st_uid == os.geteuid()  # noqa: PTH116
    except OSError:
        return False


def _read_accepted(state_dir: Path, file: Path) -> Accepted | None:
    """What was accepted of the fleet file; None when nothing ever was."""
    return _read(state_dir).fleets.get(subject_of(state_dir, file))


def _write_accepted(state_dir: Path, file: Path, accepted: Accepted) -> None:
    """Record what is accepted of the fleet file from now on."""
    try:
        record = _read(state_dir)
    except StateFileError:
        record = Record()  # a person replaces what cannot be read; the others are asked again
    fleets = {**record.fleets, subject_of(state_dir, file): accepted}
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise state_file_error(error, state_dir, "write") from error
    atomic_write_json(state_dir / RECORD, msgspec.to_builtins(Record(fleets=fleets)))


def _read(state_dir: Path) -> Record:
    path = state_dir / RECORD
    try:
        return decode_json(path.read_bytes(), Record)
    except FileNotFoundError:
        return Record()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StateFileError(
            f"cannot read the accepted configuration {path}: {error}",
            path=str(path),
            operation="read",
            next_step=NextStep(Action.ACCEPT_CONFIG),
        ) from error


def subject_of(state_dir: Path, file: Path) -> str:
    """The fleet file as records and the inbox name it: its path from the state directory."""
    return os.path.relpath(os.path.realpath(file), os.path.realpath(state_dir))
