"""Whole native jobs by the command: recorded, suspended, and not lost with their worker."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Refuse, Say, Tokens
from runtimes.commanded import Commanded
from runtimes.native.native_stage import SECRET, NativeStage
from runtimes.stage import until

PATIENCE_S = 100
pytestmark = pytest.mark.timeout(300)

FLEET = """\
defaults: {runtime: native, model: "anthropic:claude-sonnet-5-5", working_directory: work}
lease: 20s
heartbeat: 2s
agents:
  - {name: helper, permission_mode: bypassPermissions}
  - {name: keeper, session: {mode: persistent}, allowed_tools: [Bash]}
  - {name: miser, limits: {spend: 0.001}}
"""


class Herd(Commanded):
    """A fleet in a directory, and the command to run it with."""

    def __init__(self, root: Path, api: MessagesApi) -> None:
        self.work = root / "work"
        self.work.mkdir()
        environment = NativeStage(self.work).environment(api)
        super().__init__(root, FLEET, {**environment, "HOME": str(root)})


def test_a_job_is_on_record_with_its_cost_and_without_its_secrets(tmp_path: Path) -> None:
    call = Call("Bash", {"command": "printenv ANTHROPIC_API_KEY; echo made > made.txt"})
    tokens = Tokens(input=1000, output=100)
    with MessagesApi(Say(calls=(call,), tokens=tokens), Say(text="All done.")) as api:
        herd = Herd(tmp_path, api)
        done = herd.nightherd("run", "helper", "-p", "make it", "--quiet")
        job = herd.job()

    assert (done.returncode, done.stdout.strip()) == (0, "All done."), done.stderr
    assert (herd.work / "made.txt").exists()
    assert (job["status"], job["turns"]) == ("completed", 2)
    assert job["usage"]["input_tokens"] == 1010
    assert job["cost_usd"] > 0
    (execution,) = job["executions"]
    assert 0 < execution["api_duration_ms"] <= execution["duration_ms"]
    assert "[secret:ANTHROPIC_API_KEY]" in api.asked[1].texts[-1]
    everything = [path for path in tmp_path.glob(".nightherd/**/*") if path.is_file()]
    assert not [path for path in everything if SECRET.encode() in path.read_bytes()]


def test_long_output_is_stored_whole_and_the_model_gets_its_ends(tmp_path: Path) -> None:
    call = Call("Bash", {"command": "seq 20000"})
    with MessagesApi(Say(calls=(call,)), Say(text="All done."), Say(text="Yes.")) as api:
        herd = Herd(tmp_path, api)
        herd.nightherd("run", "keeper", "-p", "count", "--quiet")
        done = herd.nightherd("run", "keeper", "-p", "and?", "--quiet")

    assert done.stdout.strip() == "Yes.", done.stderr
    outputs = list(tmp_path.glob(".nightherd/blobs/*"))
    (blob,) = [one for one in outputs if not one.read_bytes().startswith(b"{")]  # not of settings
    assert blob.read_text() == "".join(f"{number}\n" for number in range(1, 20_001))
    for asked in api.asked[1:]:
        (result,) = [text for text in asked.texts if "bytes left out" in text]
        assert len(result) < 50_000


def test_the_next_job_of_a_session_remembers(tmp_path: Path) -> None:
    with MessagesApi(Say(text="blue"), Say(text="it was blue")) as api:
        herd = Herd(tmp_path, api)
        herd.nightherd("run", "keeper", "-p", "pick a colour")
        done = herd.nightherd("run", "keeper", "-p", "which one?", "--quiet")

    assert done.stdout.strip() == "it was blue", done.stderr
    assert api.asked[1].texts == ["pick a colour", "blue", "which one?"]


def test_a_fork_goes_on_from_the_message_it_was_made_at(tmp_path: Path) -> None:
    with MessagesApi(Say(text="blue"), Say(text="it was blue"), Say(text="red, then")) as api:
        herd = Herd(tmp_path, api)
        herd.nightherd("run", "keeper", "-p", "pick a colour")
        herd.nightherd("run", "keeper", "-p", "which one?")
        forked = herd.nightherd(
            "session", "fork", "@last", "--at-message", "2", "--run", "-p", "another?", "--quiet"
        )

    assert forked.stdout.strip() == "red, then", forked.stderr
    first, answer, *asked = api.asked[2].texts
    assert (first, answer) == ("pick a colour", "blue")
    assert "which one?" not in asked
    assert "another?" in asked[-1]


def test_a_job_whose_worker_was_killed_in_an_answer_goes_on(tmp_path: Path) -> None:
    call = Call("Bash", {"command": "echo once >> times"})
    held = Say(text="never heard", hold=threading.Event())
    with MessagesApi(Say(text="I begin", calls=(call,)), held, Say(text="All done.")) as api:
        herd = Herd(tmp_path, api)
        with herd.started("run", "helper", "-p", "make it") as worker:
            assert api.wait_until_asked(2, PATIENCE_S)
            worker.kill()
        rescuer = herd.nightherd("worker", "--until-idle")
        job, lines = herd.job(), herd.journal()

    assert rescuer.returncode == 0, rescuer.stderr
    assert (job["status"], job["summary"]) == ("completed", "All done.")
    assert (job["restart_count"], job["turns"]) == (1, 2)
    lost = [line for line in lines if line.get("partial")][1]
    assert (lost["execution"][-2:], lost["extra"]) == (".1", {"cost_source": "estimate"})
    assert job["usage"]["input_tokens"] == 20 + lost["usage"]["input_tokens"]
    costs = [
        line["usage"]["cost_microusd"]
        for line in lines
        if not line.get("partial") and line.get("usage") and line["type"] == "assistant"
    ]
    assert round(job["cost_usd"] * 1e6) == sum(costs) + lost["usage"]["cost_microusd"]
    assert sum(costs) > 0 < lost["usage"]["cost_microusd"]
    (warned,) = [line for line in lines if line.get("subtype") == "warning"]
    assert warned["extra"] == {"code": "answer_lost", "raw": lost["usage"]}
    assert (herd.work / "times").read_text() == "once\n"
    assert api.asked[2].body["messages"] == api.asked[1].body["messages"]


def test_a_job_whose_worker_was_killed_in_a_tool_hears_of_it(tmp_path: Path) -> None:
    once = Call("Bash", {"command": "echo once >> times"})
    slow = Call("Bash", {"command": "echo slow >> times; touch began; sleep 600"})
    with MessagesApi(Say(calls=(once, slow)), Say(text="All done.")) as api:
        herd = Herd(tmp_path, api)
        with herd.started("run", "helper", "-p", "make it") as worker:
            anyio.run(until, (herd.work / "began").exists)
            worker.kill()
        rescuer = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert rescuer.returncode == 0, rescuer.stderr
    assert (job["status"], job["summary"]) == ("completed", "All done.")
    assert (herd.work / "times").read_text() == "once\nslow\n"
    (made, cut) = api.asked[1].body["messages"][-1]["content"]
    assert made["is_error"] is False
    assert "interrupted" in cut["content"][0]["text"]


def test_a_failure_that_passes_is_tried_again(tmp_path: Path) -> None:
    with MessagesApi(Refuse(status=529), Say(text="All done.")) as api:
        herd = Herd(tmp_path, api)
        done = herd.nightherd("run", "helper", "-p", "make it", "--quiet")

    assert done.stdout.strip() == "All done.", done.stderr
    assert len(api.asked) == 2


def test_rejected_key_suspends_the_job_for_a_person(tmp_path: Path) -> None:
    with MessagesApi(Refuse(status=401)) as api:
        herd = Herd(tmp_path, api)
        done = herd.nightherd("run", "helper", "-p", "make it")
        job = herd.job()

    assert (done.returncode, job["status"], job["suspend_reason"]) == (8, "suspended", "error")
    assert (job["error"]["code"], len(api.asked)) == ("auth_failed", 2)
    assert f"nightherd jobs resume {job['id']}" in done.stderr


def test_a_job_without_a_key_waits_for_a_person_and_completes_once_there_is_one(
    tmp_path: Path,
) -> None:
    with MessagesApi(Say(text="All done.")) as api:
        herd = Herd(tmp_path, api)
        key = herd.environment.pop("ANTHROPIC_API_KEY")
        done = herd.nightherd("run", "helper", "-p", "make it")
        job = herd.job()
        herd.environment["ANTHROPIC_API_KEY"] = key
        resumed = herd.nightherd("jobs", "resume", job["id"], "--quiet")

    assert (done.returncode, job["status"], job["suspend_reason"]) == (8, "suspended", "error")
    assert job["error"]["code"] == "missing_api_key"
    assert f"nightherd jobs resume {job['id']}" in done.stderr
    assert (resumed.returncode, resumed.stdout.strip()) == (0, "All done."), resumed.stderr


def test_a_job_is_suspended_before_it_could_spend_too_much(tmp_path: Path) -> None:
    with MessagesApi(Say(text="never asked")) as api:
        herd = Herd(tmp_path, api)
        done = herd.nightherd("run", "miser", "-p", "make it")
        job = herd.job()

    assert api.asked == []
    assert done.returncode == 6, done.stderr
    assert job["status"] == "suspended"


def stream_until(herd: Herd, act: Callable[[subprocess.Popen[bytes]], object]) -> None:
    """A job whose answer stops in its middle; `act` once a follower can read the first words."""
    with herd.started("run", "helper", "-p", "go") as run:
        texts = herd.root / ".nightherd" / "jobs"
        anyio.run(until, lambda: any("The " in one.read_text() for one in texts.glob("*.text")))
        assert not [line for line in herd.journal() if line.get("content") == "The "]
        act(run)
        run.wait(PATIENCE_S)


def answers(herd: Herd) -> list[tuple[str, bool]]:
    lines = [line for line in herd.journal() if line["type"] == "assistant"]
    return [(line["content"], line.get("partial", False)) for line in lines if line.get("content")]


def test_a_cancelled_answer_keeps_its_text(tmp_path: Path) -> None:
    with MessagesApi(Say(text="The end.", said_first=4, hold=threading.Event())) as api:
        herd = Herd(tmp_path, api)
        stream_until(herd, lambda run: herd.nightherd("jobs", "cancel", "@last"))
        job = herd.job()

    assert (job["status"], job["turns"], job["cut_off"]) == ("cancelled", 0, "The ")
    assert answers(herd) == [("The ", True)]


def test_a_killed_worker_leaves_one_line_that_the_next_turn_is_told(tmp_path: Path) -> None:
    with MessagesApi(
        Say(text="The end.", said_first=4, hold=threading.Event()), Say(text="All done.")
    ) as api:
        herd = Herd(tmp_path, api)
        stream_until(herd, lambda run: run.kill())
        done = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert (done.returncode, job["status"]) == (0, "completed"), done.stderr
    assert answers(herd) == [("The ", True), ("All done.", False)]
    assert "<partial_cognition>\nThe \n</partial_cognition>" in api.asked[1].texts[-1]
