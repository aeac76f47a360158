"""The one room that names concrete adapters.

Everything is named by dotted path and imported on first use, the modules of this room too: a command that
only reads never loads what writing, running or serving needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightherd.wiring.care import (
        doctor_checks,
        night_checks,
        noted_damage,
        open_desk,
        open_retelling,
        rebuild_database,
    )
    from nightherd.wiring.loading import load
    from nightherd.wiring.memories import (
        known_secrets,
        load_persistence,
        open_feed,
        open_job_list,
        open_journals,
        open_log,
        open_reader,
        open_record,
        open_storeroom,
        open_threads,
        random_text,
        system_clock,
    )
    from nightherd.wiring.mirrors import (
        kept_transcript,
        open_mirror,
        refresh_mirror,
        write_output_log,
    )
    from nightherd.wiring.runtimes import (
        EXTRAS,
        RUNTIMES,
        TRANSCRIBED,
        can_run,
        check_runtime,
        runtime_for,
    )
    from nightherd.wiring.stale_mirror import refresh_stale_mirror
    from nightherd.wiring.workshops import (
        lease_terms,
        make_shift,
        open_workshop,
        rescue_terms,
        rescuer,
    )

__all__ = [
    "EXTRAS",
    "RUNTIMES",
    "TRANSCRIBED",
    "can_run",
    "check_runtime",
    "doctor_checks",
    "kept_transcript",
    "known_secrets",
    "lease_terms",
    "load",
    "load_persistence",
    "make_shift",
    "night_checks",
    "noted_damage",
    "open_desk",
    "open_feed",
    "open_job_list",
    "open_journals",
    "open_log",
    "open_mirror",
    "open_reader",
    "open_record",
    "open_retelling",
    "open_storeroom",
    "open_threads",
    "open_workshop",
    "random_text",
    "rebuild_database",
    "refresh_mirror",
    "refresh_stale_mirror",
    "rescue_terms",
    "rescuer",
    "runtime_for",
    "system_clock",
    "write_output_log",
]

_HOMES = {
    "EXTRAS": "nightherd.wiring.runtimes",
    "RUNTIMES": "nightherd.wiring.runtimes",
    "TRANSCRIBED": "nightherd.wiring.runtimes",
    "can_run": "nightherd.wiring.runtimes",
    "check_runtime": "nightherd.wiring.runtimes",
    "doctor_checks": "nightherd.wiring.care",
    "night_checks": "nightherd.wiring.care",
    "kept_transcript": "nightherd.wiring.mirrors",
    "lease_terms": "nightherd.wiring.workshops",
    "load": "nightherd.wiring.loading",
    "load_persistence": "nightherd.wiring.memories",
    "make_shift": "nightherd.wiring.workshops",
    "noted_damage": "nightherd.wiring.care",
    "open_desk": "nightherd.wiring.care",
    "open_feed": "nightherd.wiring.memories",
    "open_job_list": "nightherd.wiring.memories",
    "open_journals": "nightherd.wiring.memories",
    "known_secrets": "nightherd.wiring.memories",
    "open_log": "nightherd.wiring.memories",
    "open_mirror": "nightherd.wiring.mirrors",
    "open_reader": "nightherd.wiring.memories",
    "open_record": "nightherd.wiring.memories",
    "open_retelling": "nightherd.wiring.care",
    "open_storeroom": "nightherd.wiring.memories",
    "open_threads": "nightherd.wiring.memories",
    "open_workshop": "nightherd.wiring.workshops",
    "random_text": "nightherd.wiring.memories",
    "rebuild_database": "nightherd.wiring.care",
    "refresh_mirror": "nightherd.wiring.mirrors",
    "refresh_stale_mirror": "nightherd.wiring.stale_mirror",
    "rescue_terms": "nightherd.wiring.workshops",
    "rescuer": "nightherd.wiring.workshops",
    "runtime_for": "nightherd.wiring.runtimes",
    "system_clock": "nightherd.wiring.memories",
    "write_output_log": "nightherd.wiring.mirrors",
}


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(home), name)
