"""Whole jobs on the real `claude`, by the command: recorded, masked, resumed, and not lost with their worker."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Refuse, Say, Tokens
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage
from runtimes.commanded import Commanded
from runtimes.stage import until

FLEET = """\
defaults: {{runtime: {runtime}}}
lease: 20s
heartbeat: 2s
agents:
  - name: helper
    permission_mode: bypassPermissions
    working_directory: work
  - name: saver
    permission_mode: bypassPermissions
    working_directory: work
    limits: {{spend: 0.02}}
  - name: short
    permission_mode: bypassPermissions
    working_directory: work
    limits: {{turns: 1}}
  - name: sharer
    permission_mode: bypassPermissions
    working_directory: work
    limits: {{per_day: 0.02}}
  - name: keeper
    session: {{mode: persistent}}
    working_directory: work
"""


class Herd(Commanded):
    """A fleet on the stage, and the command to run it with."""

    def __init__(self, stage: ClaudeStage, api: MessagesApi) -> None:
        fleet = FLEET.format(runtime=stage.runtime)
        super().__init__(stage.root, fleet, stage.environment(api))


def lines_of(journal: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in journal if line["type"] == kind]


def until_on_record(herd: Herd, results: int) -> None:
    """So many results are in our journal, and in the transcript that Claude writes a moment after it speaks."""
    anyio.run(until, lambda: len(lines_of(herd.journal(), "tool_result")) == results)
    anyio.run(until, lambda: transcript_of(herd).count(b'"type":"tool_result"') == results)


def run_until_killed_after_a_result(herd: Herd, api: MessagesApi) -> None:
    """A job whose worker is killed when its first call is done and its second answer on the way."""
    with herd.started("run", "helper", "-p", "make it") as worker:
        assert api.wait_until_asked(2, PATIENCE_S)
        until_on_record(herd, results=1)
        worker.kill()


def transcript_of(herd: Herd) -> bytes:
    """Claude's own, as far as it is written."""
    found = (herd.root / "home" / "claude").glob("projects/*/*.jsonl")
    return b"".join(path.read_bytes() for path in found)


def test_job_is_on_record_with_its_session_and_its_cost(stage: ClaudeStage) -> None:
    call = Call("Bash", {"command": "printenv ANTHROPIC_API_KEY; echo made > made.txt"})
    tokens = Tokens(input=1000, output=100)
    with MessagesApi(Say(calls=(call,), tokens=tokens), Say(text="All done.")) as api:
        herd = Herd(stage, api)
        done = herd.nightherd("run", "helper", "-p", "make it", "--quiet")
        job = herd.job()

    assert (done.returncode, done.stdout.strip()) == (0, "All done."), done.stderr
    assert (stage.work / "made.txt").exists()
    assert job["status"] == "completed"
    assert job["turns"] == 2
    assert job["usage"]["input_tokens"] == 1010
    assert job["cost_usd"] > 0
    assert job["runtime_session_id"]
    (execution,) = job["executions"]
    assert 0 < execution["api_duration_ms"] <= execution["duration_ms"]
    (result,) = lines_of(herd.journal(), "tool_result")
    assert result["result"].strip() == "[secret:ANTHROPIC_API_KEY]"
    # The raw copy of Claude's own transcript is the one stated exception.
    everything = [
        path
        for path in stage.root.glob(".nightherd/**/*")
        if path.is_file() and "transcripts" not in path.parts
    ]
    assert not [path for path in everything if b"dummy-key-of-the-tests" in path.read_bytes()]


@pytest.mark.either_runtime
def test_next_job_of_a_persistent_agent_remembers(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="blue"), Say(text="it was blue")) as api:
        herd = Herd(stage, api)
        herd.nightherd("run", "keeper", "-p", "pick a colour")
        first = herd.job()
        done = herd.nightherd("run", "keeper", "-p", "which one?", "--quiet")
        second = herd.job()

    assert done.stdout.strip() == "it was blue", done.stderr
    assert second["id"] != first["id"]
    assert second["runtime_session_id"] == first["runtime_session_id"]
    assert {"pick a colour", "blue", "which one?"} <= set(api.asked[1].texts)


@pytest.mark.either_runtime
def test_rejected_key_suspends_the_job_for_a_person(stage: ClaudeStage) -> None:
    with MessagesApi(Refuse(status=401)) as api:
        herd = Herd(stage, api)
        done = herd.nightherd("run", "helper", "-p", "make it")
        job = herd.job()

    assert (done.returncode, job["status"], job["suspend_reason"]) == (8, "suspended", "error")
    assert (job["error"]["code"], len(api.asked)) == ("auth_failed", 2)
    assert f"nightherd jobs resume {job['id']}" in done.stderr


@pytest.mark.either_runtime
@pytest.mark.timeout(240)
def test_job_waits_when_its_money_is_spent_and_goes_on_when_there_is_more(
    stage: ClaudeStage,
) -> None:
    dear = Tokens(input=1000, output=1000)
    more = Say(text="more", calls=(Call("Bash", {"command": "echo x >> times"}),), tokens=dear)
    with MessagesApi(more, more, Say(text="All done.")) as api:
        herd = Herd(stage, api)
        waiting = herd.nightherd("run", "saver", "-p", "make it")
        job = herd.job()
        asked = len(api.asked)
        resumed = herd.nightherd("jobs", "resume", job["id"], "--raise", "spend=5")
        done = herd.job()

    assert waiting.returncode == 6, waiting.stderr
    assert (job["status"], job["suspend_reason"]) == ("suspended", "limit")
    assert job["cost_usd"] > 0.02
    # Claude looks after each turn, so the last one may go beyond; there is none after it.
    assert asked == 1
    assert resumed.returncode == 0, resumed.stderr
    assert (done["id"], done["status"]) == (job["id"], "completed")
    assert api.asked[-1].texts.count("make it") == 1


def test_job_that_a_limit_stops_knows_what_it_has_cost(sdk_stage: ClaudeStage) -> None:
    # It would go on for ever, faster than we may hear it: it is told itself how far it may go.
    more = Say(text="more", calls=(Call("Bash", {"command": "echo x >> times"}),))
    with MessagesApi(more) as api:
        herd = Herd(sdk_stage, api)
        waiting = herd.nightherd("run", "short", "-p", "make it")
        job = herd.job()

    assert waiting.returncode == 6, waiting.stderr
    assert (job["status"], job["turns"]) == ("suspended", 1)
    assert job["cost_usd"] > 0
    assert (sdk_stage.work / "times").read_text() == "x\n"


def test_job_that_uses_up_what_is_shared_is_stopped_while_its_tool_runs(
    sdk_stage: ClaudeStage,
) -> None:
    dear = Tokens(input=1000, output=1000)
    slow = Call("Bash", {"command": "tail -f /dev/null; echo x >> times"})
    more = Say(text="more", calls=(slow,), tokens=dear, model="claude-opus-5-5")
    with MessagesApi(more) as api:
        herd = Herd(sdk_stage, api)
        waiting = herd.nightherd("run", "sharer", "-p", "make it")
        job = herd.job()

    assert waiting.returncode == 6, waiting.stderr
    assert (job["status"], job["suspend_reason"]) == ("suspended", "budget")
    assert not (sdk_stage.work / "times").exists()
    assert len(api.asked) == 1
    said = lines_of(herd.journal(), "assistant")
    estimated = [line for line in said if (line.get("extra") or {}).get("cost_source")]
    assert [line["extra"]["cost_source"] for line in estimated] == ["estimate"]
    assert estimated[0]["usage"]["cost_microusd"] > 20_000
    total = sum(line.get("usage", {}).get("cost_microusd", 0) for line in said)
    assert round(job["cost_usd"] * 1_000_000) == total, "what Claude said in the end is what counts"


def kill_claude(stage: ClaudeStage) -> None:
    for pid in stage.processes():
        with suppress(ProcessLookupError):  # its keeper may have been faster
            if Path(f"/proc/{pid}/exe").resolve().name == "claude":
                os.kill(pid, signal.SIGKILL)


@pytest.mark.timeout(240)
def test_job_of_a_killed_claude_goes_on_by_itself(stage: ClaudeStage) -> None:
    def kill(herd: Herd) -> None:
        if api.wait_until_asked(2, PATIENCE_S):
            until_on_record(herd, results=1)
            kill_claude(stage)

    call = Call("Bash", {"command": "echo once >> times"})
    held = Say(text="never heard", hold=threading.Event())
    with MessagesApi(Say(text="I begin", calls=(call,)), held, Say(text="All done.")) as api:
        herd = Herd(stage, api)
        killer = threading.Thread(target=kill, args=(herd,))
        killer.start()
        done = herd.nightherd("run", "helper", "-p", "make it", "--quiet")
        killer.join()
        job = herd.job()

    assert (done.returncode, done.stdout.strip()) == (0, "All done."), done.stderr
    assert job["status"] == "completed"
    assert (stage.work / "times").read_text() == "once\n"
    assert [line["success"] for line in lines_of(herd.journal(), "tool_result")] == [True]
    assert api.asked[2].texts.count("make it") == 1


@pytest.mark.timeout(240)
def test_killed_worker_takes_claude_along_and_the_job_goes_on(stage: ClaudeStage) -> None:
    call = Call("Bash", {"command": "echo once >> times"})
    held = Say(text="never heard", hold=threading.Event())
    with MessagesApi(Say(text="I begin", calls=(call,)), held, Say(text="All done.")) as api:
        herd = Herd(stage, api)
        run_until_killed_after_a_result(herd, api)
        rescuer = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert rescuer.returncode == 0, rescuer.stderr
    assert (job["status"], job["summary"]) == ("completed", "All done.")
    assert job["restart_count"] == 1
    lost, finished = job["executions"]
    assert lost["api_duration_ms"] is None
    assert 0 < finished["api_duration_ms"] <= finished["duration_ms"]
    assert (stage.work / "times").read_text() == "once\n"
    assert len(api.asked) == 3
    texts = api.asked[2].texts
    assert texts.count("make it") == 1
    assert any("interrupted" in text for text in texts)
    assert stage.processes() == {}


@pytest.mark.either_runtime
def test_nothing_of_a_killed_worker_goes_on_not_even_a_daemon(stage: ClaudeStage) -> None:
    sleeping = "import time; time.sleep(600)"
    daemon = f"setsid python3 -c '{sleeping}' > /dev/null 2>&1 & echo once >> times"
    gate = threading.Event()
    more = Say(calls=(Call("Bash", {"command": "echo more >> times"}),))
    with MessagesApi(
        Say(calls=(Call("Bash", {"command": daemon}),)), replace(more, hold=gate), more
    ) as api:
        herd = Herd(stage, api)
        with herd.started("run", "helper", "-p", "make it") as worker:
            assert api.wait_until_asked(2, PATIENCE_S)
            before = len(stage.processes())
            worker.kill()
        anyio.run(until, lambda: stage.processes() == {})
        gate.set()

        assert not api.wait_until_asked(3, timeout_s=0)
    assert before > 2  # the worker, claude, and the daemon at least
    assert (stage.work / "times").read_text() == "once\n"


@pytest.mark.either_runtime
@pytest.mark.timeout(240)
def test_job_whose_tool_is_killed_hears_of_it_and_goes_on(stage: ClaudeStage) -> None:
    def kill() -> None:
        anyio.run(until, (stage.work / "pid").exists)
        anyio.run(until, lambda: (stage.work / "pid").read_text().endswith("\n"))
        os.kill(int((stage.work / "pid").read_text()), signal.SIGKILL)

    slow = "import os, time; print(os.getpid(), file=open('pid', 'w'), flush=True); time.sleep(600)"
    with MessagesApi(
        Say(calls=(Call("Bash", {"command": f'python3 -c "{slow}"'}),)), Say(text="All done.")
    ) as api:
        herd = Herd(stage, api)
        killer = threading.Thread(target=kill)
        killer.start()
        herd.nightherd("run", "helper", "-p", "make it")
        killer.join()
        job = herd.job()

    assert (job["status"], job["summary"]) == ("completed", "All done.")
    assert [line["success"] for line in lines_of(herd.journal(), "tool_result")] == [False]


@pytest.mark.timeout(240)
def test_job_goes_on_after_worker_claude_and_tool_were_killed_and_claude_lost_its_memory(
    stage: ClaudeStage,
) -> None:
    sleeping = "import time; time.sleep(600)"
    once = Call("Bash", {"command": "echo once >> times"})
    slow = Call("Bash", {"command": f"touch began; python3 -c '{sleeping}'"})
    with MessagesApi(
        Say(text="I begin", calls=(once,)), Say(text="Slowly.", calls=(slow,)), Say(text="Done.")
    ) as api:
        herd = Herd(stage, api)
        with herd.started("run", "helper", "-p", "make it") as worker:
            anyio.run(until, (stage.work / "began").exists)
            anyio.run(until, lambda: len(lines_of(herd.journal(), "tool_use")) == 2)
            pids = stage.processes()
            worker.kill()  # first: it is not to see what becomes of the others
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(stage.claude_home)
        rescuer = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert rescuer.returncode == 0, rescuer.stderr
    assert (job["status"], job["summary"]) == ("completed", "Done.")
    assert (stage.work / "times").read_text() == "once\n"
    texts = api.asked[2].texts
    # In its own words, or in ours when it was killed before it had written them down, or we had copied them.
    assert texts.count("make it") <= 1
    assert any("make it" in text for text in texts)
    assert any("I begin" in text for text in texts)
    assert stage.processes() == {}


@pytest.mark.either_runtime
@pytest.mark.parametrize("copied", [1, 3, 5])
@pytest.mark.timeout(240)
def test_job_goes_on_however_little_of_its_transcript_was_copied(
    stage: ClaudeStage, copied: int
) -> None:
    call = Call("Bash", {"command": "echo once >> times"})
    held = Say(text="never heard", hold=threading.Event())
    with MessagesApi(Say(text="I begin", calls=(call,)), held, Say(text="Done.")) as api:
        herd = Herd(stage, api)
        run_until_killed_after_a_result(herd, api)
        anyio.run(until, lambda: stage.processes() == {})
        (own,) = stage.claude_home.glob("projects/*/*.jsonl")
        lines = own.read_bytes().splitlines(keepends=True)
        shutil.rmtree(stage.claude_home)
        copies = stage.root / ".nightherd" / "transcripts"
        shutil.rmtree(copies, ignore_errors=True)
        copies.mkdir(mode=0o700)
        (copies / own.name).write_bytes(b"".join(lines[:copied]))
        rescuer = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert len(lines) > copied
    assert rescuer.returncode == 0, rescuer.stderr
    assert (job["status"], job["summary"]) == ("completed", "Done.")
    texts = api.asked[2].texts
    assert len([text for text in texts if "make it" in text]) == 1
    assert len([text for text in texts if "I begin" in text]) == 1
    assert any("echo once >> times" in text for text in texts)


@pytest.mark.either_runtime
@pytest.mark.timeout(240)
def test_job_goes_on_from_our_record_when_no_transcript_of_it_is_left(stage: ClaudeStage) -> None:
    call = Call("Bash", {"command": "echo once >> times"})
    held = Say(text="never heard", hold=threading.Event())
    with MessagesApi(Say(text="I begin", calls=(call,)), held, Say(text="Done.")) as api:
        herd = Herd(stage, api)
        run_until_killed_after_a_result(herd, api)
        anyio.run(until, lambda: stage.processes() == {})
        shutil.rmtree(stage.claude_home)
        shutil.rmtree(stage.root / ".nightherd" / "transcripts", ignore_errors=True)
        rescuer = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert rescuer.returncode == 0, rescuer.stderr
    assert (job["status"], job["summary"]) == ("completed", "Done.")
    assert (stage.work / "times").read_text() == "once\n"
    (told,) = [text for text in api.asked[2].texts if "make it" in text]
    assert "I begin" in told
    assert "echo once >> times" in told


def test_files_for_claude_do_not_outlive_a_killed_worker_nor_a_killed_keeper(
    cli_stage: ClaudeStage,
) -> None:
    def left() -> list[Path]:
        return list((cli_stage.root / "tmp").glob("nightherd-*"))

    never = threading.Event()
    with MessagesApi(Say(text="slow", hold=never), Say(text="done")) as api:
        herd = Herd(cli_stage, api)
        with herd.started("run", "helper", "-p", "make it") as worker:
            assert api.wait_until_asked(1, PATIENCE_S)
            (kept,) = left()
            assert (kept / "settings.json").exists()
            worker.kill()
            anyio.run(until, lambda: not left())
        job = herd.job()["id"]
        of_directory, _, _ = kept.name.partition(job)
        of_killed_keeper = kept.with_name(f"{of_directory}{job}.1-abc")
        of_another = kept.with_name(f"{of_directory}{job}x.1-abc")
        for one in (of_killed_keeper, of_another):
            one.mkdir()
            (one / "system-prompt").write_text("private")
        done = herd.nightherd("jobs", "resume", job)

    assert done.returncode == 0, done.stderr
    assert left() == [of_another]
