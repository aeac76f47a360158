"""Agents of chat turns send files of their workspace, and nothing else; a copy is safe before they are told so."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from nightherd.engine.operations.new_job import JobDraft, job_change
from nightherd.model.agents.script import Say, UseTool, compile_script
from nightherd.model.change import Change
from nightherd.model.chat.changes import FinishTurn, StartTurn
from nightherd.model.chat.message import TurnStatus
from nightherd.model.chat.platform import LIMITS, Platform
from nightherd.model.chat.post import OutboxPost, PostKind, PostStatus
from nightherd.model.containers.policy import ContainerPolicy
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus, TriggerType
from nightherd.model.journal.event import Event, ToolResultEvent, describe
from nightherd.model.journal.system import Complete
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.mcp.bridge import bridged
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.testing.chat_values import conversation, said
from nightherd.testing.state_values import BEGINNING
from nightherd.triggers.chat.outgoing_files import KeptFiles

TOOL = "mcp__nightherd__send_file"
SECRET = "hunter2-hunter2-hunter2"


class Turns:
    """Chat turns of an agent that calls the tool, in a workspace with a state directory beside it."""

    def __init__(self, directory: Path) -> None:
        self.work, self.state = directory / "work", directory / "state"
        self.work.mkdir()
        self.state.mkdir()
        self._begin()

    def _begin(self) -> None:
        self.bench = Bench(environment={"API_TOKEN": SECRET})
        self.bench.context = replace(
            self.bench.context,
            runtimes=lambda name: ScriptedRuntime(),
            outgoing_files=KeptFiles(self.state / "chat" / "sent", private=self.state),
        )

    def again(self) -> Turns:
        """The same directories with another state: a conversation has one turn at a time."""
        other = object.__new__(Turns)
        other.work, other.state = self.work, self.state
        other._begin()
        return other

    def play(
        self,
        *inputs: Mapping[str, Any],
        is_turn: bool = True,
        container: ContainerPolicy | None = None,
    ) -> Sequence[ToolResultEvent]:
        """Run one job that calls the tool so; the results of the calls."""
        calls = [UseTool(TOOL, dict(one)) for one in inputs]
        bench = self.bench
        bench.agent = replace(
            AGENT,
            working_directory=str(self.work),
            script=compile_script([*calls, Say("Done.")]),
            permission_mode="bypassPermissions",
            container=container,
        )
        draft = JobDraft(agent=bench.agent, prompt="Go", trigger_type=TriggerType.SLACK)
        if not is_turn:
            job_id = bench.submit("Go", trigger_type=TriggerType.SLACK).job.id
        else:
            change = job_change(draft, bench.context)
            job_id = change.job.id
            message = said(1)
            start = StartTurn(
                conversation_id=conversation().id,
                messages=(message.message.id,),
                job=change,
                at=BEGINNING,
            )
            begun: list[Change] = [message, start]
            anyio.run(bench.store.apply, begun)
        self.job_id = job_id
        assert bench.execute(job_id).status is JobStatus.COMPLETED
        return [e for e in bench.journal(job_id) if isinstance(e, ToolResultEvent)]

    def posts(self) -> Sequence[OutboxPost]:
        return [
            one for one in self.bench.reader.posts_of_job(self.job_id) if one.kind is PostKind.FILE
        ]

    def details(self, post: OutboxPost) -> tuple[str, Mapping[str, Any]]:
        texts = self.bench.reader.find_post_texts(post.id)
        assert texts is not None
        return texts.text, texts.details


@pytest.fixture
def turns(tmp_path: Path) -> Turns:
    return Turns(tmp_path)


def refusal(turns: Turns, path: str) -> str:
    """Why the file is not sent."""
    (result,) = turns.play({"path": path})
    assert result.success is False
    assert turns.posts() == []
    assert not list(turns.state.rglob("*-1-*"))
    return str(result.error)


def test_file_is_copied_and_queued_before_the_tool_returns(turns: Turns) -> None:
    (turns.work / "report.txt").write_text("12 cows\n")

    (result,) = turns.play({"path": "report.txt", "message": "The count."})

    assert (result.success, result.result) == (
        True,
        "report.txt (8 B) is on its way to the conversation",
    )
    (post,) = turns.posts()
    assert (post.status, post.job_id, post.bot) == (
        PostStatus.PENDING,
        turns.job_id,
        "slack/grazer",
    )
    text, details = turns.details(post)
    assert (text, details["name"]) == ("The count.", "report.txt")
    (turns.work / "report.txt").write_text("changed afterwards")
    copy = Path(details["path"])
    assert copy.read_text() == "12 cows\n"
    assert copy.is_relative_to(turns.state / "chat" / "sent" / turns.job_id)
    assert copy.stat().st_mode & 0o077 == 0


def test_same_file_is_sent_once_and_a_changed_one_again(turns: Turns) -> None:
    (turns.work / "a.txt").write_text("one")
    (turns.work / "b.txt").write_text("one")

    first, again, other = turns.play(
        {"path": "a.txt"}, {"path": f"{turns.work}/a.txt"}, {"path": "b.txt"}
    )

    assert [one.success for one in (first, again, other)] == [True, True, True]
    assert str(again.result).endswith("already")
    assert [turns.details(one)[1]["name"] for one in turns.posts()] == ["a.txt", "b.txt"]


def test_links_and_paths_that_lead_out_of_the_workspace_are_refused(
    turns: Turns, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("not yours")
    (turns.work / "link.txt").symlink_to(outside)
    (turns.work / "folder").symlink_to(tmp_path)
    (tmp_path / "work-too").mkdir()
    (tmp_path / "work-too" / "near.txt").write_text("a neighbour")

    for path in (
        "link.txt",
        "folder/outside.txt",
        "../outside.txt",
        str(outside),
        "../work-too/near.txt",
    ):
        assert "is outside of the workspace" in refusal(turns.again(), path), path


def test_link_inside_the_workspace_is_followed(turns: Turns) -> None:
    (turns.work / "real.txt").write_text("mine")
    (turns.work / "link.txt").symlink_to("real.txt")

    (result,) = turns.play({"path": "link.txt"})

    assert result.success
    assert Path(turns.details(turns.posts()[0])[1]["path"]).read_text() == "mine"


def test_link_that_is_put_there_after_the_check_is_not_followed(
    turns: Turns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("not yours")
    (turns.work / "inner").mkdir()
    (turns.work / "inner" / "outside.txt").write_text("mine")
    real_path = os.path.realpath

    def exchanged(path: str | os.PathLike[str]) -> str:
        """The directory is replaced with a link right after it was looked at."""
        real = real_path(path)
        if real.endswith("inner/outside.txt"):
            (turns.work / "inner").rename(turns.work / "moved")
            (turns.work / "inner").symlink_to(tmp_path)
        return real

    monkeypatch.setattr("nightherd.triggers.chat.outgoing_files.os.path.realpath", exchanged)
    assert "cannot be sent" in refusal(turns, "inner/outside.txt")


def test_other_name_of_the_working_directory_counts_only_in_a_container(turns: Turns) -> None:
    (turns.work / "report.txt").write_text("12 cows\n")
    policy = ContainerPolicy(image="nightherd/test")

    (outside,) = turns.play({"path": "/workspace/report.txt"})
    inner = turns.again()
    (inside, above) = inner.play(
        {"path": "/workspace/report.txt"}, {"path": "/workspace/../outside.txt"}, container=policy
    )

    assert "is outside of the workspace" in str(outside.error)
    assert inside.success
    assert [inner.details(one)[1]["name"] for one in inner.posts()] == ["report.txt"]
    assert "is outside of the workspace" in str(above.error)


def test_special_files_missing_empty_and_large_ones_are_refused(turns: Turns) -> None:
    os.mkfifo(turns.work / "pipe")
    (turns.work / "folder").mkdir()
    (turns.work / "empty").touch()
    with (turns.work / "large").open("wb") as file:
        file.truncate(LIMITS[Platform.SLACK].file_bytes + 1)

    reasons = {
        "pipe": "Not a regular file",
        "folder": "cannot be sent",
        "none": "none does not exist",
        "empty": "empty is empty",
        "large": "large is larger than 47.7 MiB",
        " ": "the path is empty",
        "nul\0": "is no path",
    }
    for path, reason in reasons.items():
        assert reason in refusal(turns.again(), path), path


def test_nothing_of_nightherd_and_no_secret_is_sent(turns: Turns) -> None:
    turns.state.rename(turns.work / ".nightherd")
    turns.state = turns.work / ".nightherd"
    (turns.state / "web.token").write_text("secret")
    (turns.work / "notes.txt").write_text(f"the token is {SECRET}")

    assert "is nightherd's own" in refusal(turns.again(), ".nightherd/web.token")
    assert "holds a secret" in refusal(turns.again(), "notes.txt")


def test_job_that_is_no_chat_turn_has_no_such_tool(turns: Turns) -> None:
    (turns.work / "report.txt").write_text("12 cows\n")

    (result,) = turns.play({"path": "report.txt"}, is_turn=False)

    assert result.success is False
    assert "there is no tool" in str(result.error)


def test_file_of_a_turn_that_is_over_is_not_sent(turns: Turns) -> None:
    (turns.work / "report.txt").write_text("12 cows\n")
    bench = turns.bench
    finish = FinishTurn(job_id=JobId(""), status=TurnStatus.CANCELLED, at=BEGINNING)
    keep = bench.context.outgoing_files

    class Late:
        """The person has cancelled the turn while the file was copied."""

        def keep(self, file: Any, is_secret: Any) -> Any:
            assert keep is not None
            kept = keep.keep(file, is_secret)
            anyio.run(bench.store.apply, [replace(finish, job_id=JobId(file.folder))])
            return kept

    bench.context = replace(bench.context, outgoing_files=Late())

    (result,) = turns.play({"path": "report.txt"})

    assert "is not waiting for this job any more" in str(result.error)
    assert turns.posts() == []


def test_file_is_sent_through_the_bridge_too(turns: Turns) -> None:
    """So it reaches agents whose programs are processes of their own, in a container or not."""
    (turns.work / "report.txt").write_text("12 cows\n")
    said: list[Any] = []

    class Asking:
        """A runtime whose agent is another program."""

        async def execute(self, request: RuntimeRequest) -> AsyncIterator[Event]:
            async with bridged(request.injected_servers) as entries:
                call = {"name": "send_file", "arguments": {"path": "report.txt"}}
                said.append(await to_thread.run_sync(_asked, entries["nightherd"], call))
            yield describe(Complete(stop_reason="end_turn"))

    turns.bench.context = replace(turns.bench.context, runtimes=lambda name: Asking())

    turns.play({"path": "unused"})

    (answer,) = said
    assert answer["result"]["isError"] is False
    assert "is on its way" in answer["result"]["content"][0]["text"]
    assert [turns.details(one)[1]["name"] for one in turns.posts()] == ["report.txt"]


def _asked(entry: Mapping[str, Any], call: Mapping[str, Any]) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {**entry["headers"], "Content-Type": "application/json"}
    request = urllib.request.Request(entry["url"], json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read().split(b"data: ", 1)[1])  # it may take long: a stream
