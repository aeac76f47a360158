"""Text as it comes: on a terminal, for programs that follow, and after an answer was cut off."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import Any

from nightherd.cli.jobs.event_text import StreamedText
from nightherd.cli.screen.render import Screen
from nightherd.model.journal.event import AssistantEvent, ToolUseEvent
from nightherd.model.journal.live_text import TextDelta, cut_off_event
from surfaces.drivers import Cli, Shell

FLEET = """\
fleet: {name: slow}
agents:
  - name: slow
    runtime: scripted
    default_prompt: go
    script:
      - say: One two three.
        over: %s
"""
NEVER = "3h"


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


def streamed() -> tuple[StreamedText, Terminal]:
    out = Terminal()
    return StreamedText(Screen(out, Terminal(), {"NO_COLOR": "1"})), out


def piece(text: str, at: int = 0, part: int = 1) -> TextDelta:
    return TextDelta(epoch=1, after=3, part=part, at=at, text=text)


def test_an_answer_is_on_the_screen_once() -> None:
    screen, out = streamed()

    screen.piece(piece("One "))
    screen.piece(piece("two", 4))
    screen.event(AssistantEvent(content="One two three.", end=True))
    screen.event(AssistantEvent(content="Next.", end=True))

    assert out.getvalue() == "One two three.\nNext.\n"


def test_parts_that_are_recorded_later_are_on_the_screen_once() -> None:
    screen, out = streamed()

    screen.piece(piece("First."))
    screen.piece(piece("Sec", part=2))
    screen.event(AssistantEvent(content="First."))
    screen.piece(piece("ond.", 3, part=2))
    screen.event(AssistantEvent(content="Second."))
    screen.event(ToolUseEvent(tool_name="Bash", input={"command": "ls"}, end=True))

    assert out.getvalue() == "First.\nSecond.\n> Bash: ls\n"


def test_an_answer_that_was_asked_for_anew_is_shown_whole() -> None:
    screen, out = streamed()

    screen.piece(piece("First try"))
    screen.piece(piece("Second", part=2))
    screen.event(AssistantEvent(content="Second try.", end=True))

    assert out.getvalue() == "First try\nSecond try.\n"


def test_a_cut_off_answer_says_so() -> None:
    screen, out = streamed()
    cut_off = cut_off_event(["One two"])
    assert cut_off is not None

    screen.piece(piece("One "))
    screen.event(cut_off)
    screen.event(cut_off)

    assert out.getvalue() == (
        "One two\n- the answer was cut off here\nOne two\n- the answer was cut off here\n"
    )


def start_slow(shell: Shell, directory: Path) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """A run whose answer never ends, and the first piece that a follower gets of it."""
    (directory / "nightherd.yaml").write_text(FLEET % NEVER)
    run = shell.start("run", "slow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stderr is not None
    job_id = run.stderr.readline().split()[1].decode()
    tail = shell.start("jobs", "tail", job_id, "-f", "--json", stdout=subprocess.PIPE)
    assert tail.stdout is not None
    for line in tail.stdout:
        document = json.loads(line)
        if document["schema"] == "nightherd/v1/text_delta":
            return run, {"job_id": job_id, **document["data"]}
    raise AssertionError("the follower ended without a piece")


def read_until(master: int, words: bytes) -> bytes:
    """What a terminal shows by the time that `words` are there."""
    seen = b""
    while words not in seen:
        seen += os.read(master, 65_536)
    return seen


def test_a_person_at_a_terminal_sees_the_text_before_the_answer_ends(
    shell: Shell, fleet: Path
) -> None:
    (fleet / "nightherd.yaml").write_text(FLEET % NEVER)
    master, slave = pty.openpty()
    run = shell.start("run", "slow", stdout=slave, stderr=slave)
    os.close(slave)

    read_until(master, b"One ")
    run.send_signal(signal.SIGINT)
    seen = read_until(master, b"cancelled")

    assert b"- the answer was cut off here" in seen
    assert b"One" not in seen
    os.close(master)


def cut_off_lines(cli: Cli, job_id: str) -> list[dict[str, Any]]:
    documents = cli("jobs", "tail", job_id, "-n", "all", "--json").documents
    return [one["data"] for one in documents if one["data"].get("partial")]


def test_a_cancelled_job_shows_what_it_had_said(cli: Cli, shell: Shell, fleet: Path) -> None:
    run, first = start_slow(shell, fleet)
    job_id = first["job_id"]

    assert cli("jobs", "cancel", job_id).code == 0
    out, _ = run.communicate()

    assert (first["at"], first["text"]) == (0, "One ")
    assert out.decode() == "One \n- the answer was cut off here\n"
    (line,) = cut_off_lines(cli, job_id)
    assert (line["content"], line["extra"]) == ("One ", {"cut_off": True})
    shown = cli("jobs", "show", job_id)
    assert "answer that was cut off\n  One" in shown.out
    assert cli("jobs", "show", job_id, "--json").data["cut_off"] == "One "
    session = cli("jobs", "show", job_id, "--json").data["session_id"]
    history = cli("session", "show", session, "--history").out
    assert "an answer that was cut off, not in the conversation:\nOne" in history
    assert not list((fleet / ".nightherd" / "jobs").glob("*.text"))
    assert cli("doctor", "--verify").code == 0
    exported = cli("session", "export", session)
    assert exported.code == 0
    assert "One" not in exported.out or '"partial":true' in exported.out
    forked = cli("session", "fork", session, "--at-message", "1", "--json")
    assert (forked.code, forked.data["message_count"]) == (0, 1)


def test_a_killed_worker_leaves_one_line_and_the_job_completes(
    cli: Cli, shell: Shell, fleet: Path
) -> None:
    run, first = start_slow(shell, fleet)
    job_id = first["job_id"]
    run.send_signal(signal.SIGKILL)
    run.wait()
    state = cli("checkpoint", "show", job_id, "--state").out
    (fleet / "nightherd.yaml").write_text(FLEET % "0s")

    assert cli("worker", "--until-idle").code == 0

    assert json.loads(state)["partial_cognition"]["text"] == "One "
    (line,) = cut_off_lines(cli, job_id)
    assert line["content"] == "One "
    shown = cli("jobs", "show", job_id, "--json").data
    assert (shown["status"], shown["summary"]) == ("completed", "One two three.")
    assert shown["cut_off"] is None
    assert shown["turns"] == 1
    assert not list((fleet / ".nightherd" / "jobs").glob("*.text"))
