"""Every key of the shipped `state_schema.yaml`: what a project changes by it, shown by what then happens.

For each key another value is laid over the shipped one. The same thing is done under both: documents are written
and read, jobs run to their four ends, bookmarks are planned away. What comes of it has to differ.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from msgspec.structs import replace

from config.test_persistence_file import OTHERS
from engine.bench import AGENT, Bench
from engine.limits.turns import used
from nightherd.config.persistence import PROJECT_FILE, SHIPPED, load_persistence
from nightherd.engine.chat.retention import count_forgettable
from nightherd.errors import InvalidValueError, NightherdError
from nightherd.mirror.threads import ThreadArchive, ThreadStateFiles
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.script import Fail, Say, Spend, UseTool, compile_script
from nightherd.model.change import Answer, Change, SaveCheckpoint
from nightherd.model.chat.message import MessageStatus
from nightherd.model.checkpoints.checkpoint import Checkpoint, checkpoint_id
from nightherd.model.checkpoints.persistence import Persistence
from nightherd.model.checkpoints.retention import next_step, plan
from nightherd.model.checkpoints.state_document import check_state, read_state
from nightherd.model.checkpoints.state_schema import types_of
from nightherd.model.jobs.job import ExitReason, JobStatus
from nightherd.model.journal.event import Event, SystemEvent, ToolResultEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.limits.limits import Limits
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.testing.chat_values import said
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.state_values import BEGINNING, submit
from nightherd.triggers.chat.kept_files import KeptFiles
from surfaces.drivers import Cli

JOB = "job-2026-03-01-abc123"
STATE = Path(".nightherd")
KeyPath = tuple[str, ...]

SAMPLES: tuple[Any, ...] = ("else", "2026-03-01T12:00:00+00:00", 7, 7.5, True, None, [], {})
"""One value of each kind, to see what a schema says about it."""


def leaves(document: Mapping[str, Any], path: KeyPath = ()) -> Iterator[KeyPath]:
    for key, value in document.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


DOCUMENT: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())


def at(document: Any, path: KeyPath) -> Any:
    for key in path:
        document = document[key]
    return document


# Another value for each key


def other(path: KeyPath, value: Any) -> Any:
    """What a project says instead."""
    match path[-1], value:
        case "description", _:
            return "Something else"
        case "enabled", bool():
            return not value
        case "priority", int():
            return 9 if value >= 10 else 10
        case "required", list():
            return [*value, "messages"]
        case "type", _:
            return ["string" if value == "boolean" else "boolean"]
        case "enum", list():
            return ["else"]
        case "format", _:
            return None
        case "default", _:
            return "9.0.0" if path[-2] == "version" else {"else": 1}
        case _:
            return OTHERS[path[-1]]


def laid_over(path: KeyPath) -> dict[str, Any]:
    """The project's file that says it."""
    value: Any = other(path, at(DOCUMENT, path))
    if path[-1] == "enabled" and at(DOCUMENT, path[:-1]).get("priority") == 10:
        path, value = path[:-1], {"enabled": False, "priority": 9}  # a ten cannot be switched off
    for key in reversed(path):
        value = {key: value}
    return {"extends": "nightherd/state_schema.yaml", **value}


# What happens under it


def example(schema: Mapping[str, Any]) -> Any:
    """A value of the kind that the shipped schema wants."""
    kind = types_of(schema)[0]
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {name: example(inner) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema["items"])]
    if schema.get("format") == "date-time":
        return SAMPLES[1]
    return {"string": "x", "integer": 1, "number": 1.5, "boolean": True}[kind]


STATE_SCHEMA = DOCUMENT["state"]["schema"]
WHOLE: dict[str, Any] = {**example(STATE_SCHEMA), "thread_id": JOB, "version": "1.1.0"}


def place_of(path: KeyPath) -> list[str | int]:
    """Where in a document the part of the schema is that a key of it stands in."""
    inner = iter(path[2:-1])
    return [next(inner) if key == "properties" else 0 for key in inner]


def with_value(place: Sequence[str | int], value: Any) -> Any:
    changed = copy.deepcopy(WHOLE)
    if not place:
        return value
    target: Any = changed
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return changed


def said_about(document: Any, found: Persistence) -> str:
    try:
        check_state(document, found)
    except InvalidValueError as error:
        return error.message
    return "fits"


def checked(path: KeyPath, found: Persistence) -> list[str]:
    """What is said about documents with all kinds of values at the place, and without each field."""
    lacking = [{key: WHOLE[key] for key in WHOLE if key != name} for name in WHOLE]
    place = place_of(path) if path[1] == "schema" else []
    kinds = [with_value(place, sample) for sample in SAMPLES]
    return [said_about(document, found) for document in (*lacking, *kinds)]


def filled_in(path: KeyPath, found: Persistence) -> Any:
    """A document that lacks the field, as it is read."""
    lacking = copy.deepcopy(WHOLE)
    *above, name = place_of(path)
    del at(lacking, tuple(above))[name]  # type: ignore[arg-type]  # names only: no list has defaults
    try:
        return read_state(json.dumps(lacking), found)
    except InvalidValueError as error:
        return error.message


class Noting(MemoryStore):
    """A store that remembers which bookmarks were saved, and whether they had to be on the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[tuple[str, bool]] = []

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        for one in changes:
            if isinstance(one, SaveCheckpoint):
                self.saved.append((one.checkpoint.trigger, one.is_synced))
        return await super().apply(changes)


class Folder:
    """Remembers how often it was given something to write."""

    def __init__(self) -> None:
        self.statuses: list[str] = []

    def write(self, job_id: str, document: Any, /) -> None:
        self.statuses.append(document["status"])


def ends(folder: Path) -> Iterator[tuple[Agent, bool]]:
    """Agents whose jobs complete, wait at a limit, fail and, where it is said so, are cancelled."""
    (folder / "a.txt").write_text("hay")
    look = (Say("look"), UseTool("Read", {"file_path": "a.txt"}), Spend(used(10)))
    agent = replace(AGENT, working_directory=str(folder), limits=Limits(turns=99))
    whole = compile_script([*look, *look, Say("done"), Spend(used(10))])
    broken = compile_script([*look, Fail("broken", "no luck")])
    yield replace(agent, script=whole), False
    yield replace(agent, script=whole, limits=Limits(turns=1)), False
    yield replace(agent, script=broken), False
    yield replace(agent, script=whole), True


def runs(found: Persistence, place: Path) -> list[Any]:
    """Jobs that end in each way there is: their bookmarks, on record and saved, and documents on the way."""
    results: list[Any] = []
    for agent, is_cancelled in ends(place):
        store, folder = Noting(), Folder()
        bench = Bench(ScriptedRuntime(), agent=agent, store=store)  # type: ignore[arg-type]  # any runtime does
        bench.context = replace(bench.context, persistence=found, threads=folder)
        job_id = bench.submit().job.id

        def pass_time(event: Event, clock: FakeClock = bench.clock) -> None:
            clock.advance(timedelta(seconds=2))

        def is_enough(event: Event | None, wanted: bool = is_cancelled) -> bool:
            return wanted and isinstance(event, ToolResultEvent)

        bench.execute(job_id, on_event=pass_time, stop_when=is_enough)
        points = [
            (event.extra or {})["trigger"]
            for event in bench.journal(job_id)
            if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.CHECKPOINT
        ]
        results.append((points, store.saved, folder.statuses))
    return results


def written(found: Persistence, folder: Path) -> Any:
    """Where a document goes, whether the file is another one each time, and how often it is tried."""
    files = ThreadStateFiles(folder / "state", found, pause=lambda seconds: None)
    path = files.write(JOB, WHOLE)
    kept = path.with_name("kept")
    kept.hardlink_to(path)  # a file that is let go must not lend its number to the next
    is_another = files.write(JOB, WHOLE).stat().st_ino != kept.stat().st_ino
    (folder / "blocked").write_text("a file, where a directory should be")
    pauses: list[float] = []
    with pytest.raises((OSError, NightherdError)):
        ThreadStateFiles(folder / "blocked", found, pause=pauses.append).write(JOB, WHOLE)
    return path.name, is_another, pauses


def planned(found: Persistence, folder: Path) -> Any:
    """Which bookmarks go, of a job that goes on and one that is over, and where they are put."""
    live = replace(submit(1).job, status=JobStatus.SUSPENDED)
    over = replace(live, status=JobStatus.COMPLETED, exit_reason=ExitReason.SUCCESS)
    now = BEGINNING + timedelta(days=100)
    marks = [
        Checkpoint(
            id=checkpoint_id(live.id, number),
            job_id=live.id,
            number=number,
            epoch=1,
            seq=number,
            trigger="post_llm",
            status="running",
            created_at=now - timedelta(days=age),
        )
        for number, age in enumerate((40, 30, 20, 9, 8, 6, 5, 4, 3, 2, 1, 0))
    ]
    files = ThreadStateFiles(folder, found, pause=lambda seconds: None)
    place = ThreadArchive(folder, files).archive(JOB, [], found.retention.archive_path)
    plans = [plan(job, marks, found.retention, now=now) for job in (live, over)]
    return plans, place.relative_to(folder)


def forgotten(found: Persistence, folder: Path) -> Any:
    """How much of what was said 94 days ago goes."""
    bench, one = Bench(), said(1)
    dropped = replace(one, message=replace(one.message, status=MessageStatus.DROPPED))
    anyio.run(bench.store.apply, [dropped])
    now = one.message.received_at + timedelta(days=94)
    return count_forgettable(bench.reader, found.retention.chat, now, KeptFiles(folder, folder))


def effect(path: KeyPath, found: Persistence, folder: Path, cli: Cli) -> Any:
    folder.mkdir()
    match path:
        case ("schema_version",):
            files = ThreadStateFiles(folder, found, pause=lambda seconds: None)
            return json.loads(files.write(JOB, WHOLE).read_text())
        case (*_, "description"):
            shown = cli("checkpoint", "fields", "--json")
            assert shown.code == 0
            return shown.data
        case ("state", *_, "default"):
            return filled_in(path, found)
        case ("state", *_):
            return checked(path, found)
        case ("checkpoint", "triggers", *_) | (*_, "incremental"):
            return runs(found, folder)
        case ("checkpoint", *_):
            return written(found, folder)
        case ("retention", "automatic"):
            return next_step(found.retention, None, BEGINNING)
        case ("retention", "chat", *_):
            return forgotten(found, folder)
        case _:
            return planned(found, folder)


@pytest.mark.parametrize("path", list(leaves(DOCUMENT)), ids=".".join)
def test_another_value_of_a_key_makes_something_else_happen(
    cli: Cli, fleet: Path, path: KeyPath
) -> None:
    before = effect(path, load_persistence(STATE), fleet / "before", cli)
    project = fleet / STATE / PROJECT_FILE
    project.parent.mkdir(parents=True)
    project.write_text(json.dumps(laid_over(path)))

    after = effect(path, load_persistence(STATE), fleet / "after", cli)

    assert after != before
