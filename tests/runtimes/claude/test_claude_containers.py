"""The real `claude` in a container: its tools, its transcripts, and its variables."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from components import Components
from docker_engine import DockerEngine
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Call, Refuse, Say
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage
from runtimes.commanded import Commanded
from runtimes.container.container_herd import SECRET, USER
from runtimes.container.test_container_surroundings import SERVER
from runtimes.keeper.kept_worker import wait_until

QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "NO_PROXY": "127.0.0.1,localhost",
}
LOOK = "env; echo .; find / -name '*.jsonl' 2>/dev/null; echo .; ls ${CLAUDE_CONFIG_DIR}/../.."
pytestmark = pytest.mark.timeout(240)


class Herd(Commanded):
    """Two agents in containers that reach the API, which listens on the engine's loopback."""

    def __init__(
        self,
        stage: ClaudeStage,
        engine: DockerEngine,
        image: str,
        api: MessagesApi,
        claude: str,
        **more: Any,
    ) -> None:
        docker = {
            "enabled": True,
            "image": image,
            "socket": engine.socket_path,
            "network": "host",
            "volumes": [f"{claude}:/usr/local/bin/claude:ro"],
            "env": QUIET,
        }
        agent = {"permission_mode": "bypassPermissions", "working_directory": "work", **more}
        fleet: dict[str, Any] = {
            "defaults": {"runtime": stage.runtime, "docker": docker},
            "lease": "10s",
            "heartbeat": "1s",
            "agents": [{"name": name, **agent} for name in ("one", "two")],
        }
        environment = {**stage.environment(api), "OF_THE_WORKER": SECRET}
        super().__init__(stage.root, json.dumps(fleet), environment)
        os.chown(stage.work, USER, USER)

    def answer(self, *words: str) -> dict[str, Any]:
        """Answer the last item, let the job go on; the job."""
        done = self.nightherd("inbox", *words)
        assert done.returncode == 0, done.stderr
        done = self.nightherd("worker", "--until-idle")
        assert done.returncode == 0, done.stderr
        return self.job()

    def results(self) -> list[str]:
        """What tools answered in the last job."""
        name = self.job()["id"]
        lines = (self.root / ".nightherd" / "jobs" / f"{name}.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        return [str(line.get("result")) for line in found if line["type"] == "tool_result"]


@pytest.fixture
def claude_program(components: Components) -> str:
    return str(components.claude())


def bash(command: str) -> Say:
    return Say(calls=(Call("Bash", {"command": command}),))


def serve(engine: DockerEngine, *answers: Answer) -> MessagesApi:
    return engine.in_network(lambda: MessagesApi(*answers))


def test_claude_runs_tools_inside_and_sees_only_its_own(
    stage: ClaudeStage, docker_engine: DockerEngine, container_image: str, claude_program: str
) -> None:
    answers = bash(f"cat /proc/1/comm; id -u; {LOOK}"), Say(text="All done.")
    with serve(docker_engine, *answers, *answers) as api:
        herd = Herd(stage, docker_engine, container_image, api, claude_program)
        done = herd.nightherd("run", "one", "-p", "first prompt", "--quiet")
        first = herd.results()
        again = herd.nightherd("run", "two", "-p", "go", "--quiet")
        second = herd.results()

    assert (done.returncode, done.stdout.strip()) == (0, "All done."), done.stderr
    assert (again.returncode, again.stdout.strip()) == (0, "All done."), again.stderr
    assert first[0].split()[:2] == ["python3", str(USER)]
    for result in (first[0], second[0]):
        variables, transcripts, sessions = result.split("\n.\n")
        assert SECRET not in variables
        assert "OF_THE_WORKER" not in variables
        assert "dummy-key-of-the-tests" not in result
        assert len(transcripts.split()) == 1, "the other agent's is not seen"
        assert len(sessions.split()) == 1
    assert first[0].split("\n.\n")[1] != second[0].split("\n.\n")[1]


@pytest.mark.either_runtime
def test_ended_session_leaves_no_directory_and_can_be_resumed_all_the_same(
    stage: ClaudeStage, docker_engine: DockerEngine, container_image: str, claude_program: str
) -> None:
    answers = Say(text="Noted."), Say(text="Ada."), Say(text="Noted too.")
    with serve(docker_engine, *answers) as api:
        herd = Herd(stage, docker_engine, container_image, api, claude_program)
        directories = herd.root / ".nightherd" / "containers" / "sessions"
        done = herd.nightherd("run", "one", "-p", "I am Ada", "--quiet")
        assert done.returncode == 0, done.stderr
        session = herd.job()["session_id"]
        left = list(directories.iterdir())
        again = herd.nightherd("session", "resume", session, "-p", "who am I?", "--quiet")
        texts = api.asked[1].texts
        fleet = json.loads((herd.root / "nightherd.yaml").read_text())
        fleet["agents"][1]["session"] = {"mode": "persistent"}
        (herd.root / "nightherd.yaml").write_text(json.dumps(fleet))
        herd.nightherd("run", "two", "-p", "I am Bob", "--quiet")

    assert left == []
    assert (again.returncode, again.stdout.strip()) == (0, "Ada."), again.stderr
    assert [text for text in texts if text[0] not in "#<"] == ["I am Ada", "Noted.", "who am I?"]
    assert [path.name for path in directories.iterdir()] == [herd.job()["session_id"]]


@pytest.mark.either_runtime
def test_killed_claude_is_resumed_in_a_new_container_with_its_transcript(
    stage: ClaudeStage, docker_engine: DockerEngine, container_image: str, claude_program: str
) -> None:
    held = Say(text="never heard", hold=threading.Event())
    with serve(docker_engine, bash("echo once >> times"), held, Say(text="All done.")) as api:
        herd = Herd(stage, docker_engine, container_image, api, claude_program)
        with herd.started("run", "one", "-p", "make it") as worker:
            assert api.wait_until_asked(2, PATIENCE_S)
            wait_until(lambda: any(line["type"] == "tool_result" for line in herd.journal()))
            worker.kill()
            worker.wait()
        with herd.started("worker"):
            herd.wait_until_completed()
        texts = api.asked[-1].texts

    assert (stage.work / "times").read_text() == "once\n"
    assert texts.count("make it") == 1, "it continues where it was"
    assert len(set(containers_of(herd))) == 2


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/containers/{}/kill"), ("DELETE", "/containers/{}?force=true")],
    ids=["kill", "remove"],
)
@pytest.mark.either_runtime
def test_claude_whose_container_is_ended_by_the_engine_continues_in_a_new_one(
    stage: ClaudeStage,
    docker_engine: DockerEngine,
    container_image: str,
    claude_program: str,
    method: str,
    path: str,
) -> None:
    held = Say(text="never heard", hold=threading.Event())
    with serve(docker_engine, bash("echo once >> times"), held, Say(text="All done.")) as api:
        herd = Herd(stage, docker_engine, container_image, api, claude_program)
        with herd.started("run", "one", "-p", "make it") as worker:
            assert api.wait_until_asked(2, PATIENCE_S)
            wait_until(lambda: any(line["type"] == "tool_result" for line in herd.journal()))
            (first,) = containers_of(herd)
            docker_engine.json(method, path.format(first))
            assert worker.wait() == 0
        texts = api.asked[-1].texts

    assert (herd.job()["status"], herd.job()["summary"]) == ("completed", "All done.")
    assert (stage.work / "times").read_text() == "once\n"
    assert texts.count("make it") == 1, "it continues where it was"
    assert len(set(containers_of(herd))) == 2


def containers_of(herd: Herd) -> list[str]:
    """The containers that the journal names."""
    lines = (line for line in herd.journal() if line.get("subtype") == "container")
    return [line["extra"]["container_id"] for line in lines]


@pytest.mark.either_runtime
def test_answer_that_only_the_transcript_inside_has_is_recorded(
    stage: ClaudeStage, docker_engine: DockerEngine, container_image: str, claude_program: str
) -> None:
    late, hold = "A late answer.", threading.Event()
    held = Say(text=late, hold=hold)
    with serve(docker_engine, bash("echo once >> times"), held, Say(text="All done.")) as api:
        herd = Herd(stage, docker_engine, container_image, api, claude_program)
        sessions = herd.root / ".nightherd" / "containers" / "sessions"
        with herd.started("run", "one", "-p", "make it") as worker:
            assert api.wait_until_asked(2, PATIENCE_S)
            wait_until(lambda: any(line["type"] == "tool_result" for line in herd.journal()))
            os.kill(worker.pid, signal.SIGSTOP)
            hold.set()
            wait_until(lambda: any(late in path.read_text() for path in sessions.rglob("*.jsonl")))
            worker.kill()
            worker.wait()
        with herd.started("worker"):
            herd.wait_until_completed()
        texts = api.asked[-1].texts
    said = [line.get("content") for line in herd.journal() if line["type"] == "assistant"]

    assert texts.count(late) == 1
    assert said[-2:] == [late, "All done."]
    assert (stage.work / "times").read_text() == "once\n"


@pytest.mark.either_runtime
def test_question_and_approval_reach_a_person_and_their_answers_go_inside(
    stage: ClaudeStage, docker_engine: DockerEngine, container_image: str, claude_program: str
) -> None:
    ask = Call("mcp__people__ask_person", {"question": "Which colour?", "options": ["red"]})
    answers = (
        Say(text="?", calls=(ask,)),
        bash("echo once >> times; cat /proc/1/comm"),
        Say(text="Done."),
    )
    more = {"questions": True, "approvals": [{"tool": "Bash"}]}
    with serve(docker_engine, *answers) as api:
        herd = Herd(stage, docker_engine, container_image, api, claude_program, **more)
        herd.nightherd("run", "one", "-p", "go", "--quiet")
        asked = herd.job()
        waiting = herd.answer("reply", "@last", "-m", "red")
        done = herd.answer("approve", "@last")

    assert (asked["status"], asked["suspend_reason"]) == ("suspended", "approval")
    assert (waiting["status"], waiting["suspend_reason"]) == ("suspended", "approval")
    assert (done["status"], done["summary"]) == ("completed", "Done.")
    assert (stage.work / "times").read_text() == "once\n"
    assert "python3" in herd.results()[-1]


@pytest.mark.parametrize("kind", ["companions", "transcript"])
@pytest.mark.either_runtime
def test_links_in_claudes_directory_bring_nothing_of_the_machine(
    stage: ClaudeStage,
    docker_engine: DockerEngine,
    container_image: str,
    claude_program: str,
    kind: str,
) -> None:
    secrets = stage.root / "secrets"
    secrets.mkdir()
    (secrets / "key").write_text(f"{SECRET}\n")
    made = {
        "companions": f"ln -s {secrets} ${{f%.jsonl}}",
        "transcript": f"rm $f; ln -s {secrets}/key $f",
    }
    command = f"cd ${{CLAUDE_CONFIG_DIR}}/projects/*; f=$(echo *.jsonl); {made[kind]}; ls -l"
    answers = bash(command), Say(text="Done."), Say(text="Again."), Say(text="Anew.")
    with serve(docker_engine, *answers) as api:
        herd = Herd(stage, docker_engine, container_image, api, claude_program)
        herd.nightherd("run", "one", "--session", "persistent", "-p", "go", "--quiet")
        linked = herd.results()
        again = herd.nightherd("session", "resume", "@last", "-p", "and now?", "--quiet")

    assert f"-> {secrets}" in linked[0]
    assert again.returncode == 0, again.stderr
    files = [path for path in (herd.root / ".nightherd").rglob("*") if path.is_file()]
    copies = [path for path in files if not path.is_symlink()]
    assert not [path for path in copies if SECRET.encode() in path.read_bytes()]


class Expiring(MessagesApi):
    """Refuses the first token; the host's login is renewed at that moment, as the host's own `claude` would."""

    def __init__(self, credentials: Path, *answers: Answer) -> None:
        super().__init__(*answers)
        self._credentials = credentials
        self.tokens: list[str] = []

    def take(self, asked: Asked) -> tuple[Answer, str]:
        self.tokens.append(asked.headers.get("authorization", ""))
        if self.tokens[-1] == "Bearer first-token":
            self._credentials.write_text(login("renewed-token"))
            return EXPIRED, "expired"
        return super().take(asked)


EXPIRED = Refuse(status=401, message="OAuth token has expired", kind="authentication_error")


def login(token: str) -> str:
    """A login by subscription, as the host's `claude` keeps it."""
    return json.dumps(
        {"claudeAiOauth": {"accessToken": token, "refreshToken": SECRET, "expiresAt": 1}}
    )


@pytest.mark.either_runtime
def test_token_that_expires_is_read_again_and_the_hosts_login_is_not_touched(
    stage: ClaudeStage, docker_engine: DockerEngine, container_image: str, claude_program: str
) -> None:
    stage.claude_home.mkdir()
    credentials = stage.claude_home / ".credentials.json"
    credentials.write_text(login("first-token"))
    answers = bash("env; cat ${CLAUDE_CONFIG_DIR}/.credentials.json"), Say(text="Done.")
    with docker_engine.in_network(lambda: Expiring(credentials, *answers)) as api:
        herd = Herd(stage, docker_engine, container_image, api, claude_program)
        del herd.environment["ANTHROPIC_API_KEY"]
        done = herd.nightherd("run", "one", "-p", "go", "--quiet")

    assert (done.returncode, done.stdout.strip()) == (0, "Done."), (done.stdout, done.stderr)
    assert set(api.tokens) == {"Bearer first-token", "Bearer renewed-token"}
    assert api.tokens[-2:] == ["Bearer renewed-token"] * 2
    assert credentials.read_text() == login("renewed-token")
    assert SECRET not in herd.results()[0], "what renews the login stays outside"
    journal = "".join(path.read_text() for path in herd.root.glob(".nightherd/jobs/*.jsonl"))
    assert "renewed-token" not in journal
    assert "first-token" not in journal


@pytest.mark.either_runtime
def test_declared_server_of_claude_starts_inside(
    stage: ClaudeStage, docker_engine: DockerEngine, container_image: str, claude_program: str
) -> None:
    desk = {"command": "python3", "args": ["server.py"], "env": {"GIVEN": "yes"}}
    answers = Say(calls=(Call("mcp__desk__where", {}),)), Say(text="Done.")
    (stage.work / "server.py").write_text(SERVER)
    with serve(docker_engine, *answers) as api:
        servers = {"mcp_servers": {"desk": desk}}
        herd = Herd(stage, docker_engine, container_image, api, claude_program, **servers)
        done = herd.nightherd("run", "one", "-p", "go", "--quiet")

    assert (done.returncode, done.stdout.strip()) == (0, "Done."), (done.stdout, done.stderr)
    assert f"python3 {USER} {stage.work} yes None" in herd.results()[0]
