"""Reading a `state.yaml`, ours or another program's: checked against the format, defaults filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from nightherd.decoding import convert
from nightherd.errors import StateFileError
from nightherd.files.reading import ReadFailed, safe_read_yaml


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True):
    """Where one schedule of an agent stands."""

    status: Literal["idle", "running", "disabled"] = "idle"
    last_run_at: str | None = None
    next_run_at: str | None = None
    last_error: str | None = None


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """Where one agent stands."""

    status: Literal["idle", "running", "error"] = "idle"
    current_job: str | None = None
    last_job: str | None = None
    next_schedule: str | None = None
    next_trigger_at: str | None = None
    container_id: str | None = None
    error_message: str | None = None
    schedules: dict[str, ScheduleState] = {}


class FleetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet itself."""

    started_at: str | None = None


class FleetState(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file. One that is missing or empty is an empty state."""

    fleet: FleetInfo = FleetInfo()
    agents: dict[str, AgentState] = {}


def read_fleet_state(path: Path) -> FleetState:
    """The state in `path`; empty when it is not there. `StateFileError` when it is corrupt or no such state.

    Nothing is repaired or replaced here: a file that cannot be understood stays as it is.
    """
    result = safe_read_yaml(path)
    if isinstance(result, ReadFailed):
        if result.error.code == "ENOENT":
            return FleetState()
        raise _unusable(path, result.error.message, result.error.code) from result.error
    try:
        return convert({} if result.data is None else result.data, FleetState)
    except msgspec.ValidationError as error:
        raise _unusable(path, f"'{path}' is not a fleet state: {error}", "INVALID") from error


def _unusable(path: Path, message: str, code: str | None) -> StateFileError:
    hint = "fix the file, or delete it: it is derived and will be written again"
    return StateFileError(message, path=str(path), operation="read", code=code, hint=hint)
