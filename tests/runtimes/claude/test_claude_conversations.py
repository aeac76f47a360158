"""Sessions on the real `claude`: what it is sent when one is resumed, forked, compacted, taken over and exported."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import warm_command
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say, Tokens
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage

FLEET = """\
defaults: {{runtime: {runtime}, permission_mode: bypassPermissions}}
lease: 20s
heartbeat: 2s
agents:
  - name: keeper
    session: {{mode: persistent}}
    working_directory: work
  - name: short
    session: {{mode: persistent, max_context_tokens: 500}}
    working_directory: work
  - name: player
    runtime: scripted
    working_directory: work
    default_prompt: play
    script: [{{say: a scripted answer}}, {{say: a second scripted answer}}]
"""


class Herd:
    """A fleet on the stage, and the command to run it with."""

    def __init__(self, stage: ClaudeStage, api: MessagesApi) -> None:
        self.stage = stage
        self.environment = stage.environment(api)
        (stage.root / "nightherd.yaml").write_text(FLEET.format(runtime=stage.runtime))

    def __call__(self, *words: str) -> Any:
        """What a command that succeeds says to programs."""
        done = warm_command.run((*words, "--json"), self.stage.root, self.environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["data"]

    def claude(self, *words: str, cwd: Path | None = None) -> str:
        """What somebody types by hand, and what they are answered."""
        done = subprocess.run(
            ["claude", *words],
            cwd=cwd or self.stage.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def texts(self, session: str) -> list[str]:
        history = self("session", "show", session, "--history")["history"]
        return [message["text"] for message in history if message["text"]]


def sent(api: MessagesApi, request: int, *wanted: str) -> list[str]:
    """Of what a request held, what was said in the conversation, in its order."""
    return [text for text in api.asked[request].texts if text in wanted]


def test_resumed_session_is_sent_all_that_was_said(stage: ClaudeStage) -> None:
    said = ("pick a colour", "blue", "and a number", "seven", "which were they?")
    with MessagesApi(Say(text="blue"), Say(text="seven"), Say(text="blue and seven")) as api:
        herd = Herd(stage, api)
        session = herd("run", "keeper", "-p", said[0])["session_id"]
        herd("session", "resume", session, "-p", said[2])
        herd("agent", "resume", "keeper", "-p", said[4])

    assert [sent(api, number, *said) for number in range(3)] == [
        list(said[:1]),
        list(said[:3]),
        list(said),
    ]
    assert herd.texts(session) == [*said, "blue and seven"]


@pytest.mark.either_runtime
def test_fork_at_a_message_is_sent_what_had_been_said_by_then(stage: ClaudeStage) -> None:
    said = ("pick a colour", "blue", "and a number", "seven", "another one")
    with MessagesApi(
        Say(text="blue"), Say(text="seven"), Say(text="eight"), Say(text="nine")
    ) as api:
        herd = Herd(stage, api)
        session = herd("run", "keeper", "-p", said[0])["session_id"]
        herd("run", "keeper", "-p", said[2])
        before = herd("session", "show", session, "--history")["history"]
        fork = herd("session", "fork", session, "--at-message", "2", "--run", "-p", said[4])
        after = herd("session", "show", session, "--history")["history"]
        herd("session", "resume", session, "-p", "go on")

    assert sent(api, 2, *said) == ["pick a colour", "blue", "another one"]
    assert herd.texts(fork["session_id"]) == ["pick a colour", "blue", "another one", "eight"]
    assert after == before
    # The original goes on as if there had been no fork.
    assert sent(api, 3, *said, "go on") == [*said[:4], "go on"]


@pytest.mark.either_runtime
def test_fork_at_a_call_tells_that_its_outcome_is_unknown(stage: ClaudeStage) -> None:
    call = Call("Bash", {"command": "echo made >> made.txt"})
    answers = (Say(text="I will", calls=(call,)), Say(text="made it"), Say(text="I see"))
    with MessagesApi(*answers) as api:
        herd = Herd(stage, api)
        session = herd("run", "keeper", "-p", "make it")["session_id"]
        fork = herd("session", "fork", session, "--at-message", "2", "--run", "-p", "well?")

    assert (stage.work / "made.txt").read_text() == "made\n"
    assert sent(api, 2, "make it", "I will", "made it") == ["make it", "I will"]
    assert "I see" in herd.texts(fork["session_id"])
    assert "called: Bash. The outcome is unknown" in api.asked[2].texts[-1]


@pytest.mark.either_runtime
def test_fork_at_a_question_still_knows_what_was_asked(stage: ClaudeStage) -> None:
    with MessagesApi(
        Say(text="blue"), Say(text="seven"), Say(text="red"), Say(text="eight")
    ) as api:
        herd = Herd(stage, api)
        session = herd("run", "keeper", "-p", "pick a colour")["session_id"]
        herd("run", "keeper", "-p", "and a number")
        first = herd("session", "fork", session, "--at-message", "1", "--run", "-p", "a warm one")
        second = herd("session", "fork", session, "--at-message", "3", "--run", "-p", "an even one")

    assert [text for text in api.asked[2].texts if "pick a colour" in text and "a warm one" in text]
    assert "blue" not in api.asked[2].texts
    assert herd.texts(first["session_id"]) == ["pick a colour", "a warm one", "red"]
    told = [text for text in api.asked[3].texts if "and a number" in text]
    assert ["an even one" in text for text in told] == [True]
    assert sent(api, 3, "pick a colour", "blue", "seven") == ["pick a colour", "blue"]
    texts = ["pick a colour", "blue", "and a number", "an even one", "eight"]
    assert herd.texts(second["session_id"]) == texts


@pytest.mark.either_runtime
def test_conversation_that_is_too_long_is_compacted_first(stage: ClaudeStage) -> None:
    large = Tokens(input=900, output=50)
    answers = (Say(text="blue", tokens=large), Say(text="a summary of it"), Say(text="done"))
    with MessagesApi(*answers) as api:
        herd = Herd(stage, api)
        session = herd("run", "short", "-p", "pick a colour")["session_id"]
        assert herd("session", "show", session)["token_estimate"] >= 950
        done = herd("run", "short", "-p", "and now?")

    assert done["summary"] == "done"
    journal = (stage.root / ".nightherd" / "jobs" / f"{done['job_id']}.jsonl").read_text()
    subtypes = [json.loads(line).get("subtype") for line in journal.splitlines()]
    assert subtypes.count("compact_boundary") == 1
    assert herd.texts(session) == ["pick a colour", "blue", "and now?", "done"]
    assert "pick a colour" not in api.asked[-1].texts
    assert "and now?" in api.asked[-1].texts


@pytest.mark.either_runtime
def test_what_is_said_by_hand_is_seen_by_the_fleet(stage: ClaudeStage) -> None:
    said = ("pick a colour", "blue", "another", "by hand: red", "which?", "blue, then red")
    more = ("and a number", "by hand: seven")
    with MessagesApi(*(Say(text=text) for text in (*said[1::2], more[1]))) as api:
        herd = Herd(stage, api)
        session = herd("run", "keeper", "-p", said[0])["session_id"]
        taken = herd("session", "takeover", session)
        assert taken["recorded_job_id"] is None
        assert taken["directory"] == str(stage.work)

        assert herd.claude(*taken["command"][1:], "-p", said[2]) == said[3]
        herd("run", "keeper", "-p", said[4])
        assert herd.texts(session) == list(said)
        assert herd("session", "show", session)["message_count"] == 6

        assert herd.claude(*taken["command"][1:], "-p", more[0]) == more[1]
        recorded = herd("session", "takeover", session)["recorded_job_id"]
        again = herd("session", "takeover", session)["recorded_job_id"]

    assert recorded is not None
    assert again is None
    assert sent(api, 2, *said) == list(said[:5])
    assert herd.texts(session) == [*said, *more]
    assert herd("session", "show", session)["message_count"] == 8
    job = herd("jobs", "show", recorded)
    assert (job["status"], job["trigger_id"], job["cost_usd"]) == ("completed", "takeover", 0.0)


@pytest.mark.either_runtime
def test_imported_session_is_forked_at_a_message_and_gone_on_with(stage: ClaudeStage) -> None:
    uuid = "11111111-2222-4333-8444-555555555555"
    said = ("pick a colour", "blue", "and a number", "seven")
    with MessagesApi(*(Say(text=text) for text in (said[1], said[3], "red", "done"))) as api:
        herd = Herd(stage, api)
        assert herd.claude("--session-id", uuid, "-p", said[0]) == said[1]
        assert herd.claude("--resume", uuid, "-p", said[2]) == said[3]
        herd("import", "claude")
        copy = stage.root / ".nightherd" / "transcripts" / f"{uuid}.jsonl"
        before = copy.read_bytes()
        whom = ("--agent", "keeper")

        words = ("session", "fork", uuid, "--at-message", "2", "--run", *whom, "-p", "a warm one")
        fork = herd(*words)
        assert copy.read_bytes() == before
        resumed = herd("session", "resume", uuid, *whom, "-p", "go on")

    assert sent(api, 2, *said, "a warm one") == [*said[:2], "a warm one"]
    assert herd.texts(fork["session_id"]) == [*said[:2], "a warm one", "red"]
    assert sent(api, 3, *said, "go on") == [*said, "go on"]
    assert herd.texts(resumed["session_id"]) == [*said, "go on", "done"]
    assert copy.read_bytes().startswith(before)


@pytest.mark.either_runtime
def test_exported_session_goes_on_where_claude_has_never_heard_of_it(stage: ClaudeStage) -> None:
    said = ("pick a colour", "blue", "and a number", "seven")
    with MessagesApi(*(Say(text=text) for text in (said[1], said[3], "red", "done"))) as api:
        herd = Herd(stage, api)
        session = herd("run", "keeper", "-p", said[0])["session_id"]
        herd("run", "keeper", "-p", said[2])
        herd("session", "export", session, "-o", "session.json")
        for gone in (stage.root / ".nightherd", stage.claude_home):
            shutil.rmtree(gone)

        herd("session", "import", "session.json")
        fork = herd("session", "fork", session, "--at-message", "2", "--run", "-p", "a warm one")
        resumed = herd("session", "resume", session, "-p", "go on")

    assert sent(api, 2, *said, "a warm one") == [*said[:2], "a warm one"]
    assert herd.texts(fork["session_id"]) == [*said[:2], "a warm one", "red"]
    assert sent(api, 3, *said, "go on") == [*said, "go on"]
    assert (resumed["session_id"], resumed["session_note"]) == (session, None)


def forget(stage: ClaudeStage) -> None:
    """Every transcript is gone: Claude's own, and our copies."""
    for place in (stage.claude_home, stage.root / ".nightherd" / "transcripts"):
        for path in place.rglob("*.jsonl*"):
            path.unlink()


@pytest.mark.either_runtime
@pytest.mark.parametrize("words", [("resume",), ("fork", "--run")], ids=lambda words: words[0])
def test_session_whose_transcript_is_nowhere_goes_on_from_our_record(
    stage: ClaudeStage, words: tuple[str, ...]
) -> None:
    call = Call("Bash", {"command": "echo seven"})
    with MessagesApi(
        Say(text="I look", calls=(call,)), Say(text="it is blue"), Say(text="as I said")
    ) as api:
        herd = Herd(stage, api)
        session = herd("run", "keeper", "-p", "pick a colour")["session_id"]
        forget(stage)
        on = herd("session", words[0], session, *words[1:], "-p", "which was it?")

    (told,) = [text for text in api.asked[2].texts if text.endswith("\n\nwhich was it?")]
    places = [told.find(one) for one in ("pick a colour", "I look", "echo seven", "it is blue")]
    assert places == sorted(places)
    assert -1 not in places
    assert on["status"] == "completed"
    assert "with a summary of the recorded one" in on["session_note"]
    # Nothing of it is on record twice.
    assert herd.texts(on["session_id"]) == [
        *("pick a colour", "I look", "seven", "it is blue", "which was it?", "as I said")
    ]


@pytest.mark.either_runtime
def test_exported_transcript_is_gone_on_with_by_claude_itself(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="a real answer")) as api:
        herd = Herd(stage, api)
        session = herd("run", "player")["session_id"]
        text = herd("session", "export", session, "--format", "claude")["text"]
        uuid = json.loads(text.splitlines()[0])["sessionId"]
        slug = "".join(c if c.isalnum() else "-" for c in str(stage.work.resolve()))
        folder = stage.claude_home / "projects" / slug
        folder.mkdir(parents=True)
        (folder / f"{uuid}.jsonl").write_text(text)

        assert herd.claude("--resume", uuid, "-p", "go on") == "a real answer"

    said = ("play", "a scripted answer", "a second scripted answer", "go on")
    assert sent(api, 0, *said) == list(said)


@pytest.mark.either_runtime
def test_session_is_taken_over_in_the_directory_that_its_agent_moved_to(stage: ClaudeStage) -> None:
    said = ("pick a colour", "blue", "another", "by hand: red", "a third", "by hand: green")
    with MessagesApi(*(Say(text=text) for text in said[1::2])) as api:
        herd = Herd(stage, api)
        session = herd("run", "keeper", "-p", said[0])["session_id"]
        moved = stage.work.rename(stage.root / "moved")
        fleet = stage.root / "nightherd.yaml"
        fleet.write_text(fleet.read_text().replace("directory: work", "directory: moved"))

        taken = herd("session", "takeover", session)
        assert (taken["directory"], taken["recorded_job_id"]) == (str(moved), None)
        assert herd.claude(*taken["command"][1:], "-p", said[2], cwd=moved) == said[3]
        assert herd("session", "takeover", session)["recorded_job_id"] is not None
        assert herd.claude(*taken["command"][1:], "-p", said[4], cwd=moved) == said[5]
        assert herd("session", "takeover", session)["recorded_job_id"] is not None

    assert sent(api, 1, *said) == list(said[:3])
    assert sent(api, 2, *said) == list(said[:5])
    assert herd.texts(session) == list(said)
