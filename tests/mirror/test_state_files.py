"""`state.json`: the format's own shape, checked both ways, and no harm whatever becomes of the file."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.limits.turns import CENT, used
from nightherd.config.persistence import load_persistence
from nightherd.errors import InvalidValueError, NightherdError, StateFileError
from nightherd.mirror.threads import ThreadStateFiles
from nightherd.model.agents.script import Say, Spend, UseTool, compile_script
from nightherd.model.checkpoints.persistence import Backoff, Performance, Persistence, WriteRetry
from nightherd.model.checkpoints.state_document import conversation, migrated, read_state
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.limits.limits import Limits
from nightherd.model.units import MicroUsd
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.views.jobs.checkpoints import thread_state

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "state_json"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SEED_KEYS = [
    "thread_id",
    "directive",
    "version",
    "saved_at",
    "parent_thread_id",
    "inputs",
    "turn_number",
    "cost",
    "limits",
    "status",
    "suspend_reason",
    "suspend_metadata",
    "hooks",
    "required_caps",
    "messages",
    "partial_cognition",
]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Persistence:
    return load_persistence(tmp_path_factory.mktemp("none"))


def suspended(tmp_path: Path) -> tuple[Bench, dict[str, Any]]:
    """A job that waits at its limit, as one document."""
    (tmp_path / "a.txt").write_text("hay")
    agent = replace(
        AGENT,
        script=compile_script(
            [
                Say("look"),
                UseTool("Read", {"file_path": "a.txt"}),
                Spend(used(10)),
                Say("done"),
                Spend(used(10)),
            ]
        ),
        limits=Limits(spend=MicroUsd(15 * CENT), turns=9),
        working_directory=str(tmp_path),
        required_caps=("nightherd.tool.*",),
        system_prompt="Be brief.",
    )
    bench = Bench(ScriptedRuntime(), agent=agent)  # type: ignore[arg-type]  # any runtime does
    job = bench.run(inputs={"issue": "7"})
    assert job.status is JobStatus.SUSPENDED
    return bench, thread_state(bench.reader, bench.context.journals, job.id, now=NOW)


def test_a_suspended_job_is_a_document_of_the_formats_own_shape(
    tmp_path: Path, shipped: Persistence
) -> None:
    bench, state = suspended(tmp_path)

    jsonschema.validate(state, dict(shipped.schema))
    assert list(state) == SEED_KEYS
    example = json.loads((CORPUS / "1.0.0-suspended.json").read_text())
    assert list(example) == list(state)
    for part in ("cost", "suspend_metadata"):
        assert list(state[part]) == list(example[part])
    assert list(state["limits"])[:4] == list(example["limits"])
    assert state["cost"]["spend"] == 0.1
    assert (state["status"], state["suspend_reason"]) == ("suspended", "limit")
    assert state["suspend_metadata"] == {
        "limit_code": "spend_exceeded",
        "current_value": 0.2,
        "current_max": 0.15,
    }
    assert state["inputs"] == {"issue": "7"}
    roles = [(one["role"], one["content"][:10]) for one in state["messages"]]
    assert roles == [
        ("system", "Be brief."),
        ("user", "Fix it"),
        ("assistant", "look"),
        ("assistant", '{"tool_use'),
        ("user", '{"tool_res'),
    ]
    events = {event.seq: event for event in bench.journal(state["thread_id"])}
    assert isinstance(events[state["messages"][3]["event_seq"]], ToolUseEvent)


def test_a_checkpoint_shows_the_job_as_it_was_there(tmp_path: Path) -> None:
    bench, state = suspended(tmp_path)
    job_id = state["thread_id"]

    first = thread_state(bench.reader, bench.context.journals, job_id, 1, now=NOW)

    assert (first["status"], first["cost"]["spend"], first["suspend_metadata"]) == (
        "running",
        0.0,
        None,
    )
    assert [one["role"] for one in first["messages"]] == ["system", "user"]


def test_our_checks_agree_with_a_real_validator(tmp_path: Path, shipped: Persistence) -> None:
    _, state = suspended(tmp_path)
    broken: list[dict[str, Any]] = [
        {**state, "status": "asleep"},
        {**state, "turn_number": "3"},
        {**state, "turn_number": True},
        {**state, "messages": [{"role": "tool", "content": "x"}]},
        {**state, "messages": "none"},
        {**state, "cost": {**state["cost"], "tokens": {"input_tokens": 1.5}}},
        {**state, "suspend_reason": "bored"},
        {**state, "limits": {"spend": "much"}},
        {key: value for key, value in state.items() if key != "directive"},
    ]

    for one in broken:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(one, dict(shipped.schema))
        with pytest.raises(InvalidValueError, match=r"not a state\.json"):
            read_state(json.dumps(one), shipped)


def files(root: Path, persistence: Persistence, **performance: Any) -> ThreadStateFiles:
    chosen = replace(persistence, performance=Performance(**performance))
    return ThreadStateFiles(root, chosen, pause=lambda seconds: None)


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("atomic", [True, False])
def test_a_document_comes_back_from_its_file(
    tmp_path: Path, shipped: Persistence, compress: bool, atomic: bool
) -> None:
    _, state = suspended(tmp_path)
    kept = files(tmp_path / "state", shipped, compress=compress, atomic=atomic)

    path = kept.write(state["thread_id"], state)

    assert path.name == ("state.json.gz" if compress else "state.json")
    assert kept.read(state["thread_id"]) == state
    raw = gzip.decompress(path.read_bytes()) if compress else path.read_bytes()
    assert json.loads(raw) == state


def test_only_one_of_the_two_files_is_there(tmp_path: Path, shipped: Persistence) -> None:
    _, state = suspended(tmp_path)
    plain = files(tmp_path / "state", shipped).write(state["thread_id"], state)

    packed = files(tmp_path / "state", shipped, compress=True).write(state["thread_id"], state)

    assert [one.name for one in packed.parent.iterdir()] == ["state.json.gz"]
    assert not plain.exists()


def test_what_the_schema_does_not_allow_is_not_written(
    tmp_path: Path, shipped: Persistence
) -> None:
    _, state = suspended(tmp_path)

    with pytest.raises(InvalidValueError):
        files(tmp_path / "state", shipped).write("job-1", {**state, "status": "asleep"})

    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("retry", "tries", "pauses"),
    [
        (WriteRetry(), 3, [0.05, 0.1]),
        (WriteRetry(enabled=False), 1, []),
        (WriteRetry(max_attempts=4, backoff=Backoff.FIXED), 4, [0.05, 0.05, 0.05]),
    ],
)
def test_writing_is_tried_again_as_often_as_the_project_says(
    tmp_path: Path, shipped: Persistence, retry: WriteRetry, tries: int, pauses: list[float]
) -> None:
    _, state = suspended(tmp_path)
    (tmp_path / "state").write_text("a file, where a directory should be")
    waited: list[float] = []
    chosen = replace(shipped, performance=Performance(retry=retry))

    with pytest.raises((OSError, NightherdError)):
        ThreadStateFiles(tmp_path / "state", chosen, pause=waited.append).write("job-1", state)

    assert waited == pauses
    assert len(waited) + 1 == tries


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not JSON"),
        (b'{"thread_id": "job-1", "dire', "not JSON"),
        (b"[]", "expected a mapping"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"{}", "directive: missing"),
        (b'{"version": null}', "version None"),
        (b'{"version": "9.0.0"}', "version '9.0.0'"),
        (b'{"version": "1.1.0"}', "thread_id: missing"),
    ],
)
def test_a_file_that_somebody_broke_is_refused_with_the_reason_and_stays(
    tmp_path: Path, shipped: Persistence, content: bytes, why: str
) -> None:
    kept = files(tmp_path, shipped)
    path = kept.directory("job-1") / "state.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    with pytest.raises(StateFileError, match=why):
        kept.read("job-1")

    assert path.read_bytes() == content


def test_the_state_of_another_job_is_refused(tmp_path: Path, shipped: Persistence) -> None:
    _, state = suspended(tmp_path)
    kept = files(tmp_path / "state", shipped)
    kept.write("job-1", state)

    with pytest.raises(StateFileError, match="not of job-1"):
        kept.read("job-1")


def test_a_compressed_file_that_was_cut_off_is_refused(
    tmp_path: Path, shipped: Persistence
) -> None:
    _, state = suspended(tmp_path)
    kept = files(tmp_path / "state", shipped, compress=True)
    path = kept.write(state["thread_id"], state)
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(StateFileError):
        kept.read(state["thread_id"])


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.name)
def test_files_of_every_version_are_read(path: Path, shipped: Persistence) -> None:
    found = read_state(path.read_bytes(), shipped)

    assert found["version"] == "1.1.0"
    assert found["limits"]["depth"] is None
    assert found["limits"]["duration"] is None
    original = json.loads(path.read_text())
    for key in original.keys() - {"version", "limits"}:
        assert found[key] == original[key]
    assert migrated(found) == found


def test_what_was_cut_off_is_kept_apart() -> None:
    said: list[Event] = [
        SystemEvent(seq=1, subtype=SystemSubtype.USER_INPUT, content="Go", end=True),
        AssistantEvent(seq=2, content="whole", end=True),
        AssistantEvent(seq=3, content="half ", partial=True),
        AssistantEvent(seq=4, content="of it", partial=True),
    ]

    messages, partial = conversation(said, until=4)
    earlier, none = conversation(said, until=2)

    assert [one["content"] for one in messages] == ["Go", "whole"]
    assert partial == {"text": "half of it", "is_partial": True, "completion_percentage": 0}
    assert (earlier, none) == (messages, None)


def test_what_was_said_whole_afterwards_is_not_cut_off() -> None:
    said: list[Event] = [
        AssistantEvent(seq=1, content="ha", partial=True),
        AssistantEvent(seq=2, content="half", end=False),
        ToolUseEvent(seq=3, tool_name="Read", tool_use_id="1", end=True),
        ToolResultEvent(seq=4, tool_use_id="1", result="hay", success=True, end=True),
    ]

    messages, partial = conversation(said, until=9)

    assert [one["role"] for one in messages] == ["assistant", "assistant", "user"]
    assert partial is None


@pytest.mark.parametrize("atomic", [True, False])
def test_the_file_belongs_to_its_owner_alone_however_it_is_written(
    tmp_path: Path, shipped: Persistence, atomic: bool
) -> None:
    _, document = suspended(tmp_path)
    written = replace(shipped, performance=Performance(atomic=atomic))
    files = ThreadStateFiles(tmp_path, written, pause=lambda seconds: None)
    old = os.umask(0)
    try:
        path = files.write(document["thread_id"], document)
    finally:
        os.umask(old)

    assert path.stat().st_mode & 0o777 == 0o600


def test_what_the_schema_has_a_default_for_is_written(tmp_path: Path, shipped: Persistence) -> None:
    _, document = suspended(tmp_path)
    fields = {**shipped.schema["properties"], "team": {"type": "string", "default": "night"}}
    schema = {**shipped.schema, "properties": fields}
    files = ThreadStateFiles(tmp_path, replace(shipped, schema=schema), pause=lambda seconds: None)

    path = files.write(document["thread_id"], document)

    assert json.loads(path.read_text())["team"] == "night"


@pytest.mark.parametrize("caps", [None, (), ("nightherd.tool.Bash",)])
def test_no_capabilities_and_no_such_bound_look_different(
    tmp_path: Path, caps: tuple[str, ...] | None
) -> None:
    agent = replace(
        AGENT,
        script=compile_script([Say("done"), Spend(used(10)), Say("more")]),
        working_directory=str(tmp_path),
        required_caps=caps,
        limits=Limits(spend=MicroUsd(CENT)),
    )
    bench = Bench(ScriptedRuntime(), agent=agent)  # type: ignore[arg-type]  # any runtime does
    job = bench.run()

    document = thread_state(bench.reader, bench.context.journals, job.id, now=NOW)

    assert document["required_caps"] == (None if caps is None else list(caps))


def test_a_project_of_version_1_0_0_gets_documents_of_that_version(
    tmp_path: Path, shipped: Persistence
) -> None:
    _, document = suspended(tmp_path)
    old = replace(shipped, schema_version="1.0.0")
    kept = ThreadStateFiles(tmp_path / "state", old, pause=lambda seconds: None)
    example = json.loads((CORPUS / "1.0.0-suspended.json").read_text())

    limited = json.loads(kept.write(document["thread_id"], document).read_text())
    named = {"resumes_at": "2026-01-02T03:04:05Z"}
    waiting = {**document, "suspend_reason": "rate_limit", "suspend_metadata": named}
    limits = json.loads(kept.write(document["thread_id"], waiting).read_text())

    assert limited["version"] == "1.0.0"
    assert list(limited) == list(example)
    for part in ("limits", "suspend_metadata"):
        assert list(limited[part]) == list(example[part])
    assert list(limited["cost"]["tokens"]) == list(example["cost"]["tokens"])
    assert list(limited["messages"][1]) == list(example["messages"][1])
    assert (limits["suspend_reason"], limits["suspend_metadata"]) == ("error", None)
    assert kept.read(document["thread_id"])["version"] == "1.1.0"
