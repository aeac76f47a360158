"""The shell lines that the state directory's format promises, on a directory that real jobs left behind."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nightherd.host.process import is_at_work
from nightherd.mirror.follower import MirrorFollower
from nightherd.mirror.job_file import write_output_log
from nightherd.model.ids import JobId
from nightherd.state.outbox import LedgerFeed
from nightherd.wiring.stores import open_journals, open_reader, system_clock

FLEET = """\
version: 1
agents:
  - name: bragdoc-coder
    runtime: scripted
    allowed_tools: [Bash]
    session: {mode: persistent}
    script:
      - say: I look around.
      - tool: Bash
        input: {command: "echo wolf"}
      - usage: {input_tokens: 10, output_tokens: 5, cost_usd: 0.01}
      - say: All quiet.
  - name: clumsy
    runtime: scripted
    script:
      - fail: {code: gate, message: The gate is shut.}
  - name: sleeper
    runtime: scripted
    script:
      - sleep: 10m
"""

AGENTS = ["bragdoc-coder", "clumsy", "sleeper"]

JOBS_WITH_STATUS = """\
for f in .nightherd/jobs/*.yaml; do
  echo "$(basename "$f"): $(grep 'status:' "$f" | head -1)"
done
"""


class Fleet:
    """A directory in which a fleet has worked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / ".nightherd"
        (folder / "nightherd.yaml").write_text(FLEET)

    def run(self, agent: str, prompt: str) -> str:
        """Run a job to its end; its id."""
        command = [sys.executable, "-m", "nightherd", "run", agent, "-p", prompt, "--json"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)
        return str(json.loads(done.stdout.splitlines()[-1])["data"]["job_id"])

    def follower(self) -> MirrorFollower:
        feed = LedgerFeed(self.state / "ledger")
        return MirrorFollower(
            self.state,
            feed,
            open_reader(self.state),
            open_journals(self.state),
            clock=system_clock(),
            agents=dict.fromkeys(AGENTS),
            is_at_work=is_at_work,
        )

    def sh(self, script: str) -> str:
        """What /bin/sh prints for `script`."""
        done = subprocess.run(
            ["/bin/sh", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        assert done.stderr == ""
        return done.stdout


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return Fleet(tmp_path_factory.mktemp("shell"))


@pytest.fixture(scope="module")
def good(fleet: Fleet) -> str:
    return fleet.run("bragdoc-coder", "Look around.\nstatus: of the gate, please\n")


@pytest.fixture(scope="module")
def bad(fleet: Fleet) -> str:
    return fleet.run("clumsy", "Go.")


@pytest.fixture(scope="module")
def mirrored(fleet: Fleet, good: str, bad: str) -> Fleet:
    standing = fleet.follower().catch_up()
    assert standing.unwritten == {}
    assert standing.notices == ()
    return fleet


def test_the_fleet_state_can_be_viewed(mirrored: Fleet, good: str, bad: str) -> None:
    lines = mirrored.sh("cat .nightherd/state.yaml").splitlines()

    assert lines[0].startswith("fleet:")
    assert "agents:" in lines
    assert lines[lines.index("  sleeper:") + 1] == "    status: idle"
    at = lines.index("  bragdoc-coder:")
    assert lines[at + 1 : at + 4] == [
        "    status: idle",
        "    current_job: null",
        f"    last_job: {good}",
    ]
    at = lines.index("  clumsy:")
    assert lines[at + 1] == "    status: error"
    assert lines[at + 3] == f"    last_job: {bad}"
    assert '    error_message: "The gate is shut."' in lines


def test_a_job_can_be_viewed(mirrored: Fleet, good: str) -> None:
    text = mirrored.sh(f"cat .nightherd/jobs/{good}.yaml")

    assert text.startswith(f"id: {good}\nagent: bragdoc-coder\nschedule: null\n")
    assert "prompt: |\n  Look around.\n  status: of the gate, please\n" in text
    assert f"output_file: {good}.jsonl\n" in text


def test_a_jobs_output_can_be_viewed_counted_and_searched(
    mirrored: Fleet, good: str, bad: str
) -> None:
    lines = mirrored.sh(f"cat .nightherd/jobs/{good}.jsonl").splitlines()
    assert {json.loads(line)["type"] for line in lines} == {
        "system",
        "assistant",
        "tool_use",
        "tool_result",
    }

    counted = mirrored.sh(f"wc -l .nightherd/jobs/{good}.jsonl")
    assert counted.split() == [str(len(lines)), f".nightherd/jobs/{good}.jsonl"]

    found = mirrored.sh(f'grep \'"type":"error"\' .nightherd/jobs/{bad}.jsonl')
    assert [json.loads(line)["message"] for line in found.splitlines()] == ["The gate is shut."]
    assert mirrored.sh(f'grep \'"type":"error"\' .nightherd/jobs/{good}.jsonl') == ""


def test_a_session_can_be_viewed(mirrored: Fleet) -> None:
    session = json.loads(mirrored.sh("cat .nightherd/sessions/bragdoc-coder.json"))

    assert session["agent_name"] == "bragdoc-coder"
    assert session["mode"] == "autonomous"
    assert session["runtime_type"] == "scripted"
    transcript = list(mirrored.state.glob(f"projects/-*/{session['session_id']}.jsonl"))
    assert len(transcript) == 1


def test_all_jobs_can_be_listed_with_their_status(mirrored: Fleet, good: str, bad: str) -> None:
    assert sorted(mirrored.sh(JOBS_WITH_STATUS).splitlines()) == sorted(
        [f"{good}.yaml: status: completed", f"{bad}.yaml: status: failed"]
    )


def test_no_agent_is_marked_running_when_none_runs(mirrored: Fleet) -> None:
    assert mirrored.sh("grep -A1 'status: running' .nightherd/state.yaml") == ""


def test_no_temporary_files_are_left(mirrored: Fleet) -> None:
    assert mirrored.sh("ls -la .nightherd/.*.tmp.* 2>/dev/null") == ""
    assert mirrored.sh("ls -la .nightherd/jobs/.*.tmp.* 2>/dev/null") == ""


def test_the_record_as_text_can_be_viewed(mirrored: Fleet, good: str) -> None:
    write_output_log(mirrored.state, JobId(good), open_journals(mirrored.state))

    text = mirrored.sh(f"cat .nightherd/jobs/{good}/output.log")

    assert "[assistant] I look around." in text
    assert "[tool result] wolf" in text


def test_a_running_agent_is_found_with_its_job(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    command = [sys.executable, "-m", "nightherd", "run", "sleeper", "-p", "Sleep.", "--json"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        try:
            running = _until_running(fleet, job)
        finally:
            job.kill()
    name = next(fleet.state.glob("jobs/*.yaml")).stem

    assert running == f"    status: running\n    current_job: {name}\n"
    listed = fleet.sh(JOBS_WITH_STATUS)
    assert listed == f"{name}.yaml: status: running\n"


def _until_running(fleet: Fleet, job: subprocess.Popen[bytes]) -> str:
    """Follow until the state says that something runs; as long as the job lives."""
    while job.poll() is None:
        if fleet.state.is_dir():
            fleet.follower().catch_up()
        if (fleet.state / "state.yaml").exists():
            found = fleet.sh("grep -A1 'status: running' .nightherd/state.yaml")
            if found:
                return found
    raise AssertionError("the job ended before it was seen to run")


KILLED_FOLLOWER = """\
import os, signal, sys
from pathlib import Path
from nightherd.files.atomic import FileCalls
from nightherd.host.process import is_at_work
from nightherd.mirror.follower import MirrorFollower
from nightherd.state.outbox import LedgerFeed
from nightherd.wiring.stores import open_journals, open_reader, system_clock

root, left = Path(sys.argv[1]), [int(sys.argv[2])]

def rename(source, target):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    os.replace(source, target)

feed, journals = LedgerFeed(root / "ledger"), open_journals(root)
MirrorFollower(
    root,
    feed,
    open_reader(root),
    journals,
    clock=system_clock(),
    agents=dict.fromkeys(sys.argv[3:]),
    calls=FileCalls(rename=rename),
    is_at_work=is_at_work,
).catch_up()
"""


def contents(state: Path) -> dict[str, bytes]:
    names = ("state.yaml", "jobs/*.yaml", "sessions/*.json", "projects/*/*.jsonl")
    found = [path for name in names for path in state.glob(name)]
    return {str(path.relative_to(state)): path.read_bytes() for path in found}


@pytest.mark.parametrize("renames", range(0, 7, 2))
def test_a_follower_killed_at_any_file_leaves_whole_files_and_the_next_goes_on(
    mirrored: Fleet, tmp_path: Path, renames: int
) -> None:
    state = tmp_path / ".nightherd"
    shutil.copytree(mirrored.state, state)
    whole = contents(state)
    for name in [*whole, "mirror.json"]:
        (state / name).unlink()
    again = Fleet(tmp_path)

    command = [sys.executable, "-c", KILLED_FOLLOWER, str(state), str(renames), *AGENTS]
    killed = subprocess.run(command, capture_output=True, timeout=120)
    left = contents(state)

    assert killed.returncode == -9
    assert {name: whole[name] for name in left} == left
    assert again.follower().catch_up().unwritten == {}
    assert contents(state) == whole
