"""SettingsRef: where the settings of an execution are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd.decoding import convert


class SettingsRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The blob with the settings of an execution (model/jobs/settings.py). Executions with the same settings share it."""

    sha256: str
    size: int
    text: str | None = None
    """Only in exports: in a journal it is a blob."""


def settings_ref(extra: Mapping[str, Any] | None) -> SettingsRef | None:
    """Return what an `execution_started` line says about settings; None for a line that does not, as older ones."""
    said = (extra or {}).get("settings")
    try:
        return None if said is None else convert(said, SettingsRef)
    except msgspec.ValidationError:
        return None
