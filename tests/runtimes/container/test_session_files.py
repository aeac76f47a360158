"""Claude's directory of a session: who gets one, and when it may be removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nightherd.model.containers.policy import ContainerPolicy
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, describe
from nightherd.model.journal.system import SystemSubtype, Warned
from nightherd.model.sessions.session import SessionMode
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.capabilities import CLI
from nightherd.runtimes.container.session_files import SessionEnd, make_directory, needs_directory
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from runtimes.stage import Stage

COMPLETE = SystemEvent(subtype=SystemSubtype.COMPLETE)
EPHEMERAL, KEPT = ContainerPolicy(), ContainerPolicy(is_ephemeral=False)


def request_of(
    root: Path, mode: SessionMode = SessionMode.FRESH_PER_JOB, **of: Any
) -> RuntimeRequest:
    request = Stage(root).request(None)
    session = replace(request.agent.session, mode=mode)
    settings = {"runtime": CLI, "container": EPHEMERAL, "session": session, **of}
    return replace(request, agent=replace(request.agent, **settings))


def test_only_runs_of_claude_and_kept_containers_get_a_directory(tmp_path: Path) -> None:
    assert needs_directory(request_of(tmp_path))
    assert needs_directory(request_of(tmp_path, runtime=SCRIPTED, container=KEPT))
    assert not needs_directory(request_of(tmp_path, runtime=SCRIPTED))


@pytest.mark.parametrize(
    ("events", "settings", "is_reached"),
    [
        ([COMPLETE], {}, True),
        ([describe(Warned(code="usage_limit")), COMPLETE], {}, True),
        ([ErrorEvent(message="it failed")], {}, False),
        ([describe(Warned(code="transcript_not_kept")), COMPLETE], {}, False),
        ([COMPLETE], {"mode": SessionMode.PERSISTENT}, False),
        ([COMPLETE], {"container": KEPT}, False),
        ([COMPLETE], {"runtime": SCRIPTED}, False),
    ],
)
def test_session_ends_with_its_only_job_once_everything_is_copied(
    tmp_path: Path, events: list[Event], settings: dict[str, Any], is_reached: bool
) -> None:
    end = SessionEnd(request_of(tmp_path, **settings), tmp_path)

    assert [end.is_reached(event) for event in events][-1] is is_reached


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_directory_is_removed_only_with_a_copy_of_every_transcript(
    tmp_path: Path, suffix: str
) -> None:
    directory = make_directory(tmp_path / "containers", "sess-1", None)
    (directory / "projects" / "-work").mkdir(parents=True)
    (tmp_path / "transcripts").mkdir()
    for name in ("one", "two"):
        (directory / "projects" / "-work" / f"{name}.jsonl").write_text("{}\n")
    (tmp_path / "transcripts" / f"one{suffix}").touch()
    end = SessionEnd(request_of(tmp_path), tmp_path)

    end.remove(directory)
    assert directory.exists()

    (tmp_path / "transcripts" / f"two{suffix}").touch()
    end.remove(directory)
    assert list((tmp_path / "containers" / "sessions").iterdir()) == []
