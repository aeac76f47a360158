"""Approvals and questions with the real `claude`: a call waits without a process, and runs exactly once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components import Components
from nightherd.runtimes.claude.deferred import NOT_RUN
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Call, Say
from runtimes.claude.claude_stage import ClaudeStage, make_stage
from runtimes.commanded import Commanded
from soak import often

FLEET = """\
defaults: {{runtime: {runtime}}}
agents:
  - name: helper
    permission_mode: {mode}
    working_directory: work
    {more}
"""
PUSH = Call("Bash", {"command": "echo pushed >> ran"})
APPROVALS = 'approvals: [{tool: "Bash(echo pushed:*)"}]'
BUNDLED = "bundled"


class Waiting(Commanded):
    """A fleet of one agent that waits for people."""

    def __init__(
        self,
        stage: ClaudeStage,
        api: MessagesApi,
        more: str = APPROVALS,
        mode: str = "bypassPermissions",
    ) -> None:
        fleet = FLEET.format(runtime=stage.runtime, mode=mode, more=more)
        super().__init__(stage.root, fleet, stage.environment(api))
        self.stage = stage

    def run(self) -> dict[str, Any]:
        """Run the agent until it waits or ends; the job."""
        self.nightherd("run", "helper", "-p", "make it", "--quiet")
        return self.job()

    def answer(self, *words: str) -> dict[str, Any]:
        """Answer the last item, let the job go on; the job."""
        done = self.nightherd("inbox", *words)
        assert done.returncode == 0, done.stderr
        return self.go_on()

    def go_on(self) -> dict[str, Any]:
        done = self.nightherd("worker", "--until-idle")
        assert done.returncode == 0, done.stderr
        return self.job()

    @property
    def ran(self) -> list[str]:
        """What calls have left behind."""
        file = self.stage.work / "ran"
        return file.read_text().split() if file.exists() else []

    def job_ids(self) -> list[str]:
        """The jobs in the order of their making."""
        jobs = json.loads(self.nightherd("jobs", "list", "--json").stdout)["data"]
        return [job["id"] for job in reversed(jobs)]

    def lines(self, *kinds: str) -> list[dict[str, Any]]:
        """The lines on record of these types, or subtypes of `system`."""
        return [
            line
            for line in self.journal()
            if line["type"] in kinds or (line["type"] == "system" and line["subtype"] in kinds)
        ]


class WritingModel(MessagesApi):
    """A model that makes its last call again when it is told that it has not run."""

    def take(self, asked: Asked) -> tuple[Answer, str]:
        """The answer of the script, or the call."""
        answer, name = super().take(asked)
        if json.dumps(NOT_RUN)[1:-1] in json.dumps(asked.body["messages"][-1]):
            return self._answers[-2], name
        return answer, name


def results(asked: Asked) -> list[str]:
    """The texts of the results that the model was sent."""
    found = []
    for message in asked.body["messages"]:
        content = message["content"] if isinstance(message["content"], list) else []
        found += [
            json.dumps(block["content"]) for block in content if block.get("type") == "tool_result"
        ]
    return found


def test_approved_call_runs_once_after_its_process_is_gone(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="I push", calls=(PUSH,)), Say(text="Pushed.")) as api:
        herd = Waiting(stage, api)
        waiting = herd.run()
        assert (waiting["status"], waiting["suspend_reason"]) == ("suspended", "approval")
        assert (herd.ran, stage.processes(), len(api.asked)) == ([], {}, 1)
        item = json.loads(herd.nightherd("inbox", "show", "@last", "--json").stdout)["data"]
        done = herd.answer("approve", "@last")

    assert item["title"] == "Bash: echo pushed >> ran"
    assert (done["status"], done["summary"]) == ("completed", "Pushed."), done
    assert herd.ran == ["pushed"]
    assert len(api.asked) == 2
    assert [line["success"] for line in herd.lines("tool_result")] == [True]
    assert [line["extra"]["status"] for line in herd.lines("review")] == ["pending", "approved"]
    assert herd.lines("warning", "denied") == []
    assert stage.processes() == {}


def test_rejected_call_does_not_run_and_its_reason_is_the_result(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="I push", calls=(PUSH,)), Say(text="I stop.")) as api:
        herd = Waiting(stage, api)
        herd.run()
        done = herd.answer("reject", "@last", "-m", "not on Fridays")

    assert (done["status"], done["summary"], herd.ran) == ("completed", "I stop.", [])
    assert ["not on Fridays" in text for text in results(api.asked[1])] == [True]
    (denied,) = herd.lines("denied")
    assert "not on Fridays" in denied["extra"]["reason"]


def test_call_runs_with_the_arguments_that_a_person_gave(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="I push", calls=(PUSH,)), Say(text="Done.")) as api:
        # Nothing but the approval allows the call.
        herd = Waiting(stage, api, mode="default")
        herd.run()
        done = herd.answer("approve", "@last", "--input", '{"command": "echo safely >> ran"}')

    assert (done["status"], herd.ran) == ("completed", ["safely"])
    assert "echo safely" in json.dumps(api.asked[1].body["messages"])


def test_question_of_the_agent_is_answered_by_a_person(stage: ClaudeStage) -> None:
    ask = Call("mcp__people__ask_person", {"question": "Which colour?", "options": ["red", "blue"]})
    asked_by_claude = {
        "questions": [
            {
                "question": "Which size?",
                "header": "Size",
                "multiSelect": False,
                "options": [
                    {"label": "small", "description": "a few"},
                    {"label": "large", "description": "many"},
                ],
            }
        ]
    }
    with MessagesApi(
        Say(text="I ask", calls=(ask,)),
        Say(text="I ask again", calls=(Call("AskUserQuestion", asked_by_claude),)),
        Say(text="Not allowed", calls=(PUSH,)),
        Say(text="Blue and large."),
    ) as api:
        herd = Waiting(stage, api, more="questions: true", mode="default")
        first = herd.run()
        item = json.loads(herd.nightherd("inbox", "show", "@last", "--json").stdout)["data"]
        second = herd.answer("reply", "@last", "-m", "deep blue")
        done = herd.answer("reply", "@last", "-m", "large, please")

    assert [first["suspend_reason"], second["suspend_reason"]] == ["approval"] * 2
    assert (item["kind"], item["title"]) == ("question", "Which colour?")
    assert (done["status"], done["summary"]) == ("completed", "Blue and large.")
    told = results(api.asked[-1])
    assert ["deep blue" in told[0], "large, please" in told[1]] == [True, True]
    # What the agent's permissions do not allow is refused as ever: nobody is asked about it.
    assert (herd.ran, len(herd.lines("denied"))) == ([], 1)


def test_call_that_is_not_alone_and_one_of_a_sub_agent_are_refused(stage: ClaudeStage) -> None:
    other = Call("Bash", {"command": "echo other >> ran"})
    helper = {"description": "a part", "prompt": "do it", "subagent_type": "general-purpose"}
    with MessagesApi(
        Say(text="I do both", calls=(PUSH, other)),
        Say(text="I delegate", calls=(Call("Agent", {**helper, "run_in_background": False}),)),
        Say(text="I push", calls=(PUSH,)),
        Say(text="I could not."),
        Say(text="I push myself", calls=(PUSH,)),
        Say(text="Pushed."),
    ) as api:
        herd = Waiting(stage, api)
        waiting = herd.run()
        ran_before = herd.ran
        done = herd.answer("approve", "@last")

    assert (waiting["status"], ran_before) == ("suspended", ["other"])
    assert (done["status"], herd.ran) == ("completed", ["other", "pushed"])
    reasons = [line["extra"]["reason"] for line in herd.lines("denied")]
    assert ["alone" in reasons[0], "sub-agent" in reasons[1], len(reasons)] == [True, True, 2]


def test_edit_is_shown_as_a_diff_and_asked_about_again_when_the_file_has_changed(
    cli_stage: ClaudeStage,
) -> None:
    stage = cli_stage
    notes = stage.work / "notes"
    notes.write_text("old\n")
    edit = Call("Write", {"file_path": str(notes), "content": "new\n"})
    with MessagesApi(Say(text="I write", calls=(edit,)), Say(text="Written.")) as api:
        herd = Waiting(stage, api, more="operation: review")
        herd.run()
        shown = herd.nightherd("inbox", "show", "@last").stdout
        notes.write_text("changed meanwhile\n")
        again = herd.answer("approve", "@last")
        unchanged = notes.read_text()
        done = herd.answer("approve", "@last")

    assert "-old" in shown
    assert (again["status"], unchanged) == ("suspended", "changed meanwhile\n")
    assert (done["status"], len(api.asked)) == ("completed", 2)
    assert notes.read_text() == "new\n"


def test_nothing_goes_on_while_a_call_waits(stage: ClaudeStage) -> None:
    notes = stage.work / "notes"
    slow = Call("Bash", {"command": "tail -f /dev/null", "run_in_background": True})
    create = Call("Write", {"file_path": str(notes), "content": "new\n"})
    with WritingModel(
        Say(text="I watch", calls=(slow,)),
        Say(text="I write", calls=(create,)),
        Say(text="Written."),
    ) as api:
        herd = Waiting(stage, api, more="approvals: [{tool: Write}]")
        waiting = herd.run()
        left = stage.processes()
        notes.write_text("written meanwhile\n")
        # Claude begins a turn by itself when it finds that its command has ended.
        again = herd.answer("approve", "@last")
        turns = len(herd.lines("tool_use"))
        done = herd.answer("approve", "@last")

    assert (waiting["suspend_reason"], left) == ("approval", {})
    assert (again["suspend_reason"], turns) == ("approval", 2)
    assert (done["status"], done["summary"]) == ("completed", "Written.")
    # Claude itself may refuse to overwrite a file that changed meanwhile; the record says which it was.
    was_made = herd.lines("tool_result")[-1]["success"]
    assert notes.read_text() == ("new\n" if was_made else "written meanwhile\n")


def test_edit_that_claude_refuses_itself_is_over(cli_stage: ClaudeStage) -> None:
    notes = cli_stage.work / "notes"
    notes.write_text("old\n")
    edit = Call("Write", {"file_path": str(notes), "content": "new\n"})
    read = Call("Read", {"file_path": str(notes)})
    with MessagesApi(
        Say(text="I read", calls=(read,)), Say(text="I write", calls=(edit,)), Say(text="Over.")
    ) as api:
        herd = Waiting(cli_stage, api, more="approvals: [{tool: Write}]")
        herd.run()
        notes.write_text("changed meanwhile\n")
        done = herd.answer("approve", "@last")

    assert (done["status"], notes.read_text()) == ("completed", "changed meanwhile\n")
    assert [line["success"] for line in herd.lines("tool_result")] == [True, False]
    assert [line["extra"]["status"] for line in herd.lines("review")] == ["pending"]


def test_call_that_waits_runs_in_no_other_job_of_its_session(stage: ClaudeStage) -> None:
    more = f"{APPROVALS}\n    session: {{mode: persistent}}"
    with MessagesApi(Say(text="I push", calls=(PUSH,)), Say(text="Something else.")) as api:
        herd = Waiting(stage, api, more=more)
        herd.run()
        branch = herd.nightherd("run", "helper", "-p", "a branch", "--branch", "--quiet")
        herd.nightherd("jobs", "cancel", herd.job_ids()[0])
        later = herd.nightherd("run", "helper", "-p", "something else", "--quiet")

    assert (branch.returncode, later.returncode) == (0, 0), later.stderr
    assert herd.ran == []
    assert any("another job" in text for asked in api.asked for text in results(asked))


VERSIONS = ("2.1.197", "2.1.100", "2.1.150", "2.1.240", "2.1.300", "2.1.325")


@pytest.fixture(params=VERSIONS[: often(1, soak=len(VERSIONS))])
def old_stage(
    tmp_path: Path, components: Components, slot: None, request: pytest.FixtureRequest
) -> ClaudeStage:
    """An empty place to run one version in."""
    components.program("node")
    return make_stage(tmp_path, components.claude_version(request.param))


def test_each_version_puts_off_a_call_and_runs_it_once(old_stage: ClaudeStage) -> None:
    other = Call("Bash", {"command": "echo other >> ran"})
    with MessagesApi(
        Say(text="I do both", calls=(PUSH, other)),
        Say(text="I push", calls=(PUSH,)),
        Say(text="And again", calls=(PUSH,)),
        Say(text="Done."),
    ) as api:
        herd = Waiting(old_stage, api)
        herd.run()
        first = herd.ran
        waiting = herd.answer("approve", "@last")
        done = herd.answer("reject", "@last")

    assert (first, waiting["status"], done["status"]) == (["other"], "suspended", "completed")
    assert herd.ran == ["other", "pushed"]
    assert len(api.asked) == 4


def test_claude_of_unknown_age_does_not_run_an_agent_that_waits_for_people(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho 2.1.88\n")
    program.chmod(0o755)
    stage = make_stage(tmp_path, program)
    with MessagesApi(Say(text="never said")) as api:
        herd = Waiting(stage, api)
        job = herd.run()

    assert (job["status"], api.asked) == ("failed", [])
    assert "claude 2.1.88 cannot wait for people" in job["error"]["message"]
