"""Where an execution works: which workspace it gets, with which files, after which setup, and what it is told."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from components import Components
from engine.bench import AGENT, Bench
from nightherd.engine.workspaces.elsewhere import accepted_settings
from surfaces.drivers import Cli

FLEET = """\
reload: auto
defaults:
  runtime: scripted
  allowed_tools: [Bash, Write, Spawn]
  default_prompt: go
agents:
  - name: painter
    working_directory: {root: shop, mode: worktree}
    script: &paint
      - tool: Write
        input: {file_path: colour, content: red}
      - tool: Read
        input: {file_path: colour}
      - tool: Bash
        input: {command: "printf blue > colour; printf x > extra"}
      - tool: Bash
        input: {command: "rm extra; git add -A; git commit -qm colour"}
      - say: done
  - name: talker
    session: {mode: persistent}
    working_directory: {root: shop, mode: worktree, scope: session}
    max_turns: 1
    script: &talk
      - tool: Bash
        input: {command: "echo begun >> log"}
      - tool: Bash
        input: {command: "echo again >> log"}
      - say: two
  - name: fresh
    session: {mode: persistent}
    max_turns: 1
    working_directory: {root: shop, mode: worktree, scope: job}
    script: *talk
  - name: parent
    working_directory: {root: shop, mode: worktree, scope: run}
    script:
      - tool: Write
        input: {file_path: from_parent, content: p}
      - tool: Spawn
        input: {agent: child, prompt: go}
      - tool: Bash
        input: {command: "test -e from_child"}
      - say: done
  - name: child
    working_directory: {root: shop, mode: worktree, scope: run}
    script:
      - tool: Bash
        input: {command: "test -e from_parent && printf c > from_child"}
      - say: child done
  - name: builder
    working_directory:
      root: shop
      mode: worktree
      setup:
        - {run: "mkdir -p made && echo built >> made/log && echo run >> ../runs", files: [price], paths: [made]}
    script:
      - tool: Bash
        input: {command: "cat made/log"}
      - say: done
  - name: broken
    working_directory: {root: shop, mode: worktree, setup: ["echo no luck; exit 3"]}
    script: [{say: never said}]
  - name: sharer
    instances: {max_concurrent: 2}
    working_directory: shop
    script:
      - tool: Bash
        input:
          command: "mkdir -p ../met; touch ../met/$$; until [ $(ls ../met | wc -l) -ge 2 ]; do sleep 0.05; done"
      - say: done
  - name: vandal
    working_directory: {root: shop, mode: worktree, keep: never}
    script:
      - tool: Bash
        input:
          command: "s=$(echo ../../.nightherd/snapshots/*.git); mv $s/objects $s/gone; touch $s/objects; echo work > new"
      - say: done
  - name: hooked
    working_directory: {root: shop, mode: worktree}
    hooks:
      after_run: [{type: shell, command: "./notify.sh"}]
    script:
      - tool: Write
        input: {file_path: notify.sh, content: "touch ../../stolen"}
      - tool: Write
        input: {file_path: colour, content: green}
      - say: done
"""


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def place(tmp_path: Path, components: Components, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fleet beside a repository; the test stands in it."""
    components.program("git")
    shop = tmp_path / "shop"
    shop.mkdir()
    git(shop, "init", "-q", "-b", "main")
    (shop / "price").write_text("100\n")
    (shop / "notify.sh").write_text("#!/bin/sh\npwd > ../notified\n")
    (shop / "notify.sh").chmod(0o755)
    (shop / ".gitignore").write_text("made/\n")
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "first")
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def journal(place: Path, job: str, subtype: str) -> list[dict[str, Any]]:
    lines = (place / ".nightherd" / "jobs" / f"{job}.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [event for event in events if event.get("subtype") == subtype]


def run(cli: Cli, *words: str) -> dict[str, Any]:
    data: dict[str, Any] = cli("run", *words, "--json").data
    return data


def directory(place: Path, workspace: str) -> Path:
    return place / ".nightherd-workspaces" / workspace


def newest(cli: Cli) -> dict[str, Any]:
    data: dict[str, Any] = cli("jobs", "list", "--json").data[0]
    return data


def test_only_turns_that_changed_files_are_snapshotted_and_each_before_the_next(
    cli: Cli, place: Path
) -> None:
    job = run(cli, "painter")["job_id"]

    taken = journal(place, job, "snapshot")
    assert [(event["extra"]["at"], event.get("turn")) for event in taken] == [
        ("start", None),
        ("turn", 1),
        ("turn", 3),
        ("turn", 4),
    ]
    store = next((place / ".nightherd" / "snapshots").glob("*.git"))
    colours = [
        git(store, "ls-tree", "--name-only", event["extra"]["tree"]).split() for event in taken
    ]
    first = [".gitignore", "notify.sh", "price"]
    assert colours == [
        first,
        sorted([*first, "colour"]),
        sorted([*first, "colour", "extra"]),
        sorted([*first, "colour"]),
    ]
    heads = [event["extra"]["head"] for event in taken]
    assert heads[0] == heads[2] != heads[3], "the commit of the last turn is known"


@pytest.mark.parametrize(
    ("message", "files"),
    [
        (0, {}),
        (1, {}),
        (2, {}),
        (3, {"colour": "red"}),
        (5, {"colour": "red"}),
        (7, {"colour": "blue", "extra": "x"}),
        (9, {"colour": "blue"}),
    ],
)
def test_a_fork_begins_with_the_files_at_its_message(
    cli: Cli, place: Path, message: int, files: dict[str, str]
) -> None:
    session = cli("jobs", "show", run(cli, "painter")["job_id"], "--json").data["session_id"]

    cli("session", "fork", session, "--at-message", str(message), "--run", "-p", "go", "-q")

    fork = newest(cli)
    (used,) = journal(place, fork["id"], "workspace")
    taken = journal(place, fork["id"], "snapshot")[0]["extra"]
    store = next((place / ".nightherd" / "snapshots").glob("*.git"))
    names = git(store, "ls-tree", "--name-only", taken["tree"]).split()
    assert {name: git(store, "show", f"{taken['tree']}:{name}") for name in names} == {
        ".gitignore": "made/\n",
        "notify.sh": "#!/bin/sh\npwd > ../notified\n",
        "price": "100\n",
        **files,
    }
    assert used["extra"]["origin"] == "snapshot"
    assert used["extra"]["id"] == fork["id"], "it has a workspace of its own"


def test_a_session_that_is_resumed_gets_its_workspace_back(cli: Cli, place: Path) -> None:
    job = run(cli, "painter")["job_id"]
    (directory(place, job) / "ignored-by-nobody").write_text("made by hand\n")

    cli("jobs", "resume", job, "-p", "more")

    resumed = newest(cli)
    (used,) = journal(place, resumed["id"], "workspace")
    assert (resumed["resumed_from"], used["extra"]["id"]) == (job, job)
    assert used["extra"]["origin"] == "kept"
    shown = cli("jobs", "show", resumed["id"], "--json").data
    assert shown["workspace"]["id"] == job


def test_a_workspace_that_was_deleted_by_hand_is_made_again_from_its_last_snapshot(
    cli: Cli, place: Path
) -> None:
    job = run(cli, "painter")["job_id"]
    shutil.rmtree(directory(place, job))

    cli("jobs", "resume", job, "-p", "more")

    (used,) = journal(place, newest(cli)["id"], "workspace")
    assert (used["extra"]["id"], used["extra"]["origin"]) == (job, "snapshot")
    assert (directory(place, job) / "colour").read_text() == "blue"
    assert git(directory(place, job), "log", "--format=%s").split() == ["colour", "first"]


def test_jobs_of_one_session_share_its_workspace_and_jobs_with_scope_job_do_not(
    cli: Cli, place: Path
) -> None:
    for agent in ("talker", "fresh"):
        first, second = run(cli, agent), run(cli, agent)
        shown = [cli("jobs", "show", job["job_id"], "--json").data for job in (first, second)]
        assert shown[0]["session_id"] == shown[1]["session_id"]
        ids = [job["workspace"]["id"] for job in shown]
        if agent == "talker":
            assert ids == [shown[0]["session_id"]] * 2
            log = (directory(place, ids[0]) / "log").read_text().split()
            assert log == ["begun", "again"]
        else:
            assert ids == [first["job_id"], second["job_id"]]
            assert (directory(place, ids[1]) / "log").read_text() == "again\n"


def test_an_old_job_that_is_resumed_begins_with_its_files_when_others_worked_in_its_workspace_since(
    cli: Cli, place: Path
) -> None:
    first = run(cli, "fresh")["job_id"]
    cli("jobs", "resume", first, "-p", "more")
    assert newest(cli)["workspace_id"] == first
    (directory(place, first) / "log").write_text("changed since\n")
    cli("jobs", "resume", newest(cli)["id"], "-p", "again")

    cli("jobs", "resume", first, "-p", "once more")

    last = newest(cli)
    (used,) = journal(place, last["id"], "workspace")
    assert (used["extra"]["id"], used["extra"]["origin"]) == (last["id"], "snapshot")
    assert (directory(place, last["id"]) / "log").read_text() == "begun\n"


def test_a_run_with_its_children_shares_one_workspace(cli: Cli, place: Path) -> None:
    job = run(cli, "parent")

    assert job["status"] == "completed", job
    child = next(row for row in cli("jobs", "list", "--json").data if row["agent"] == "child")
    shown = cli("jobs", "show", child["id"], "--json").data
    assert shown["workspace"]["id"] == job["job_id"]
    assert (directory(place, job["job_id"]) / "from_child").read_text() == "c"


def test_setup_runs_once_for_the_same_files_and_what_it_made_is_copied(
    cli: Cli, place: Path
) -> None:
    first, second = run(cli, "builder"), run(cli, "builder")
    (place / "shop" / "price").write_text("200\n")
    git(place / "shop", "commit", "-qam", "dearer")
    third = run(cli, "builder")

    assert [job["status"] for job in (first, second, third)] == ["completed"] * 3
    runs = place / ".nightherd-workspaces" / "runs"
    assert runs.read_text().split() == ["run", "run"], "for the first and for other content"
    steps = [journal(place, job["job_id"], "setup")[0]["extra"] for job in (first, second, third)]
    assert steps == [{"number": 0}, {"number": 0, "is_copied": True}, {"number": 0}]


def test_a_setup_command_that_fails_fails_the_job_with_its_output(cli: Cli, place: Path) -> None:
    result = cli("run", "broken")

    assert result.code == 1
    job = newest(cli)
    assert (job["status"], job["error"]["code"]) == ("failed", "workspace")
    message = "the setup command 'echo no luck; exit 3' failed: exit code 3. Its output ends with:\nno luck"
    assert job["error"]["message"] == message


def test_the_program_of_a_hook_is_protected_in_the_workspace_too(cli: Cli, place: Path) -> None:
    job = run(cli, "hooked")

    assert job["status"] == "completed"
    refused = [
        json.loads(line)
        for line in (place / ".nightherd" / "jobs" / f"{job['job_id']}.jsonl")
        .read_text()
        .splitlines()
        if '"tool_result"' in line
    ]
    assert refused[0]["success"] is False
    assert (directory(place, job["job_id"]) / "colour").read_text() == "green"
    notified = place / ".nightherd-workspaces" / "notified"
    assert notified.read_text().strip() == str(directory(place, job["job_id"]))
    assert not (place / "stolen").exists()


def test_a_session_leaves_its_workspace_when_its_agent_shares_its_directory_again(
    cli: Cli, place: Path
) -> None:
    first = run(cli, "talker")["job_id"]
    session = cli("jobs", "show", first, "--json").data["session_id"]
    config = place / "nightherd.yaml"
    text = config.read_text().replace(
        "working_directory: {root: shop, mode: worktree, scope: session}", "working_directory: shop"
    )
    config.write_text(text)

    second = run(cli, "talker")["job_id"]

    shown = cli("session", "show", session, "--json").data
    assert cli("jobs", "show", second, "--json").data["session_id"] == session
    assert shown["working_directory"] == str(place / "shop")
    assert (place / "shop" / "log").read_text() == "again\n"


def test_jobs_of_one_agent_that_share_a_directory_are_warned_about_once(
    cli: Cli, place: Path
) -> None:
    jobs = [cli("run", "sharer", "-d", "-q").out.strip() for _ in range(2)]

    cli("worker", "--until-idle")
    shutil.rmtree(place / "met")
    jobs += [cli("run", "sharer", "-d", "-q").out.strip() for _ in range(2)]
    cli("worker", "--until-idle")

    warnings = [[warning["content"] for warning in journal(place, job, "warning")] for job in jobs]
    first, second = warnings[:2], warnings[2:]
    for pair in (first, second):  # each worker says it once
        ((text,), nothing) = sorted(pair, reverse=True)
        assert nothing == []
        assert f"works in {place / 'shop'} at the same time" in text
        assert "mode: worktree" in text
        assert "max_concurrent: 1" in text


def test_a_workspace_whose_last_snapshot_failed_is_not_removed(cli: Cli, place: Path) -> None:
    job = run(cli, "vandal")

    assert job["status"] == "completed"
    (warning,) = journal(place, job["job_id"], "warning")
    assert warning["extra"]["code"] == "snapshot_failed"
    assert (directory(place, job["job_id"]) / "new").read_text() == "work\n"


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ({}, ("user", "project")),
        ({".claude/settings.json": "accepted"}, ("user", "project")),
        ({".claude/settings.json": "another"}, ("user",)),
        ({".mcp.json": "new"}, ("user",)),
    ],
)
def test_settings_in_a_workspace_are_obeyed_only_as_a_person_accepted_them(
    found: dict[str, str], kept: tuple[str, ...]
) -> None:
    agent = replace(
        AGENT,
        setting_sources=("user", "project"),
        project_settings={".claude/settings.json": "accepted"},
    )
    context = replace(Bench().context, settings_in=lambda agent: found)

    trusted, changed = anyio.run(accepted_settings, agent, context)

    assert trusted.setting_sources == kept
    assert bool(changed) is (kept == ("user",))
