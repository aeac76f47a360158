"""`working_directory` as a mapping: what each key becomes, how layers are merged, and every mistake at its place."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from config.folder import Folder
from nightherd.config.show import show
from nightherd.model.problem import Severity
from nightherd.model.schedules.jobs import for_schedule
from nightherd.model.workspaces.policy import (
    LARGEST_FILE,
    SHARED,
    Keep,
    SetupCommand,
    WorkspaceMode,
    WorkspacePolicy,
    WorkspaceScope,
)


@pytest.fixture
def repository(folder: Folder) -> Path:
    """A git repository called `code` beside the fleet file."""
    path = folder.root / "code"
    subprocess.run(["git", "init", "-q", path], check=True)
    return path


def agent_lines(*lines: str) -> str:
    return "agents:\n  - name: a\n" + "".join(f"    {line}\n" for line in lines)


def test_every_key_reaches_the_agent(folder: Folder, repository: Path) -> None:
    folder.fleet("""\
        agents:
          - name: a
            workspace:
              root: code
              mode: worktree
              scope: session
              base: release/1.x
              setup:
                - make tools
                - {run: npm ci, files: [./package-lock.json], paths: [node_modules/], timeout: 90s}
              keep: on_failure
              snapshot: {ignored: true, largest_file: 10m}
        """)

    agent = folder.agent("a")

    assert agent.working_directory == str(repository)
    assert agent.workspace == WorkspacePolicy(
        mode=WorkspaceMode.WORKTREE,
        scope=WorkspaceScope.SESSION,
        base="release/1.x",
        setup=(
            SetupCommand(run="make tools"),
            SetupCommand(
                run="npm ci",
                files=("package-lock.json",),
                paths=("node_modules",),
                timeout=timedelta(seconds=90),
            ),
        ),
        keep=Keep.ON_FAILURE,
        snapshot_ignored=True,
        largest_file=10 << 20,
    )


@pytest.mark.parametrize("line", ["description: x", "working_directory: .", "workspace: {root: .}"])
def test_an_agent_without_a_mode_works_in_the_directory_itself(folder: Folder, line: str) -> None:
    folder.fleet(agent_lines(line))

    agent = folder.agent("a")

    assert agent.workspace == SHARED
    assert agent.working_directory == str(folder.root)


@pytest.mark.parametrize(
    ("mode", "keep"),
    [("worktree", Keep.UNTIL_MERGED), ("copy", Keep.UNTIL_MERGED), ("empty", Keep.ALWAYS)],
)
def test_what_is_not_said_has_a_default_for_each_mode(
    folder: Folder, mode: str, keep: Keep
) -> None:
    (folder.root / ".git").mkdir()
    folder.fleet(agent_lines(f"working_directory: {{mode: {mode}}}"))

    agent = folder.agent("a")

    assert agent.workspace == WorkspacePolicy(mode=WorkspaceMode(mode), keep=keep)
    assert agent.workspace.largest_file == LARGEST_FILE == 50 << 20
    assert agent.working_directory == str(folder.root)


def test_a_mapping_without_a_root_gives_no_place_whose_settings_are_obeyed(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - {name: a, working_directory: {mode: copy}}
          - {name: b, working_directory: {mode: copy, root: .}}
        """)

    assert folder.agent("a").setting_sources == ()
    assert folder.agent("b").setting_sources == ("project",)


def test_setup_may_be_one_command(folder: Folder) -> None:
    folder.fleet(agent_lines("working_directory: {mode: copy, setup: make}"))

    assert folder.agent("a").workspace.setup == (SetupCommand(run="make"),)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scope", "job"),
        ("setup", "[make]"),
        ("keep", "never"),
        ("snapshot", "{}"),
        ("base", "main"),
    ],
)
@pytest.mark.parametrize("mode", ["", "mode: shared, "])
def test_keys_of_a_workspace_need_one(folder: Folder, key: str, value: str, mode: str) -> None:
    folder.fleet(agent_lines(f"working_directory: {{{mode}{key}: {value}}}"))

    column = 25 + len(mode)
    assert folder.errors() == [
        f"nightherd.yaml:3:{column} '{key}' needs a workspace of its own: "
        "set 'mode' to worktree, copy or empty"
    ]


@pytest.mark.parametrize("mode", ["copy", "empty"])
def test_only_a_worktree_has_a_base(folder: Folder, mode: str) -> None:
    folder.fleet(agent_lines("working_directory:", f"  mode: {mode}", "  base: main"))

    assert folder.errors() == [
        f"nightherd.yaml:5:7 'base' is where a git worktree begins: it does not go with mode {mode}"
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/etc/passwd", "'/etc/passwd' is not relative to the workspace"),
        ("~/x", "'~/x' is not relative to the workspace"),
        ("../x", "'../x' leads out of the workspace: '..' is not allowed"),
        ("a/../b", "'a/../b' leads out of the workspace: '..' is not allowed"),
        (".", "'.' is not the path of a file or directory in the workspace"),
        ('""', "'' is not the path of a file or directory in the workspace"),
        (".git/config", "'.git/config' belongs to git and differs in each workspace"),
    ],
)
@pytest.mark.parametrize("key", ["files", "paths"])
def test_paths_of_setup_stay_in_the_workspace(
    folder: Folder, key: str, path: str, message: str
) -> None:
    folder.fleet(
        agent_lines(
            "working_directory:",
            "  mode: copy",
            "  setup:",
            "    - run: x",
            f"      {key}: [ok, {path}]",
        )
    )

    column = 18 + len(key)
    assert folder.errors() == [f"nightherd.yaml:7:{column} {message}"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("modus: copy", "unknown key 'modus'"),
        ("mode: worktre", "'worktre' is not one of shared, worktree, copy, empty"),
        ("scope: jobs", "'jobs' is not one of job, session, run"),
        ("keep: forever", "'forever' is not one of always, on_failure, until_merged, never"),
        ("setup: [{}]", "'run' is missing"),
        ("setup: [{run: x, path: y}]", "unknown key 'path'"),
        ('setup: [""]', "must not be empty"),
        ("setup: 3", "expected a list, got the number 3"),
        ("snapshot: {largest_file: big}", "'big' is not a size; write 512, 64k, 512m, 2g or 1t"),
        ("clone_depth: -1", "expected at least 0, got the number -1"),
        ("default_branch: -x", "'-x' is not the name of a branch"),
        ("default_branch: a..b", "'a..b' is not the name of a branch"),
        ("default_branch: x.lock", "'x.lock' is not the name of a branch"),
        ("base: --upload-pack=x", "'--upload-pack=x' is not a branch, tag or commit"),
    ],
)
@pytest.mark.parametrize("where", ["agent", "defaults", "fleet", "schedule"])
def test_mistakes_are_found_wherever_the_mapping_stands(
    folder: Folder, where: str, line: str, message: str
) -> None:
    directory = f"working_directory: {{{line}}}"
    texts = {
        "agent": agent_lines(directory),
        "defaults": f"defaults: {{{directory}}}\nagents: [{{name: a}}]\n",
        "fleet": f"{directory}\nagents: [{{name: a}}]\n",
        "schedule": agent_lines(f"schedules: {{n: {{interval: 1h, prompt: x, {directory}}}}}"),
    }
    folder.fleet(texts[where])

    found = folder.found()

    assert [one.message for one in found] == [message]
    assert found[0].text is not None
    assert line.split(":")[0] in found[0].text
    assert "working_directory" in found[0].path


def test_a_misspelt_key_gets_a_suggestion(folder: Folder) -> None:
    folder.fleet(agent_lines("working_directory: {mode: copy, snapshots: {}}"))

    (problem,) = folder.found()

    assert problem.hint == "did you mean 'snapshot'?"


def test_layers_are_merged_key_by_key_and_a_text_is_the_root(
    folder: Folder, repository: Path
) -> None:
    folder.write("agents/filed.yaml", "name: filed\nworking_directory: ../code\n")
    folder.fleet("""\
        working_directory: {mode: worktree, scope: session}
        defaults:
          working_directory: {keep: never}
        agents:
          - {name: a, working_directory: code}
          - path: agents/filed.yaml
            overrides: {working_directory: {scope: run}}
          - {name: c, working_directory: {root: code, keep: always}}
        """)

    agents = folder.load().fleet.agents

    assert {agent.working_directory for agent in agents.values()} == {str(repository)}
    assert {name: (one.workspace.scope, one.workspace.keep) for name, one in agents.items()} == {
        "a": (WorkspaceScope.SESSION, Keep.NEVER),
        "filed": (WorkspaceScope.RUN, Keep.NEVER),
        "c": (WorkspaceScope.SESSION, Keep.ALWAYS),
    }


def test_an_agent_with_another_mode_leaves_out_what_was_said_of_the_mode_below(
    folder: Folder, repository: Path
) -> None:
    folder.fleet("""\
        defaults:
          working_directory: {root: code, mode: worktree, base: main, keep: never, setup: make}
        agents:
          - {name: a, working_directory: {mode: shared}}
          - {name: b, working_directory: {mode: copy}}
          - {name: c, working_directory: }
        """)

    agents = folder.load().fleet.agents

    assert agents["a"].workspace == SHARED
    assert agents["a"].working_directory == str(repository)
    assert agents["b"].workspace == WorkspacePolicy(
        mode=WorkspaceMode.COPY, keep=Keep.NEVER, setup=(SetupCommand(run="make"),)
    )
    assert agents["c"].working_directory == str(folder.root)


def test_the_directory_of_an_included_fleet_comes_before_that_of_the_outer_one(
    folder: Folder,
) -> None:
    for name in ("outer", "sub/inner"):
        (folder.root / name).mkdir(parents=True)
    folder.write("sub/nightherd.yaml", "working_directory: inner\nagents: [{name: b}]\n")
    folder.write("other/nightherd.yaml", "agents: [{name: c}]\n")
    folder.fleet("""\
        working_directory: {root: outer, mode: copy}
        agents: [{name: a}]
        fleets: [{path: sub}, {path: other}]
        """)

    loaded = folder.load()

    places = {
        name: (Path(one.working_directory).name, one.workspace.mode)
        for name, one in loaded.fleet.agents.items()
    }
    assert places == {
        "a": ("outer", WorkspaceMode.COPY),
        "sub.b": ("inner", WorkspaceMode.COPY),
        "other.c": ("outer", WorkspaceMode.COPY),
    }
    assert loaded.notices == ()


def test_a_schedule_has_what_it_does_not_say_from_its_agent(
    folder: Folder, repository: Path
) -> None:
    (folder.root / "other").mkdir()
    folder.fleet("""\
        agents:
          - name: a
            working_directory: {root: code, mode: worktree, base: main, keep: never}
            schedules:
              same: {interval: 1h, prompt: x}
              longer: {interval: 1h, prompt: x, working_directory: {keep: always}}
              elsewhere: {interval: 1h, prompt: x, workspace: {root: other, mode: copy}}
              here: {interval: 1h, prompt: x, workspace: {mode: shared}}
        """)

    agent = folder.agent("a")
    placed = {name: for_schedule(agent, name) for name in agent.schedules}

    assert placed["same"].workspace == agent.workspace
    assert placed["longer"].workspace == WorkspacePolicy(
        mode=WorkspaceMode.WORKTREE, base="main", keep=Keep.ALWAYS
    )
    assert placed["longer"].working_directory == str(repository)
    assert placed["elsewhere"].workspace == WorkspacePolicy(
        mode=WorkspaceMode.COPY, keep=Keep.NEVER
    )
    assert placed["elsewhere"].working_directory == str(folder.root / "other")
    assert placed["here"].workspace == SHARED
    assert placed["here"].working_directory == str(repository)


def test_a_schedule_over_an_agent_without_a_directory_works_at_its_file(folder: Folder) -> None:
    folder.fleet(
        agent_lines("schedules: {n: {interval: 1h, prompt: x, working_directory: {mode: empty}}}")
    )

    placed = for_schedule(folder.agent("a"), "n")

    assert placed.working_directory == str(folder.root)
    assert placed.workspace.mode is WorkspaceMode.EMPTY


def test_the_directory_of_a_schedule_must_exist(folder: Folder) -> None:
    folder.fleet(agent_lines("schedules: {n: {interval: 1h, prompt: x, workspace: gone}}"))

    (problem,) = folder.found()

    assert problem.message == f"the directory '{folder.root}/gone' does not exist"
    assert problem.path == "agents.a.schedules.n.workspace"


def test_worktrees_need_a_repository(folder: Folder) -> None:
    (folder.root / "plain").mkdir()
    folder.fleet("""\
        agents:
          - {name: a, working_directory: {root: plain, mode: worktree}}
          - {name: b, repo: owner/name, working_directory: {root: plain, mode: worktree}}
          - {name: c, working_directory: {root: plain, mode: copy}}
        """)

    message = f"mode worktree needs a git repository, and '{folder.root}/plain' is in none"
    assert folder.errors() == [f"nightherd.yaml:2:54 {message}"]
    assert folder.notices() == [f"nightherd.yaml:3:72 {message}"]
    (notice,) = folder.found(Severity.NOTICE)
    assert notice.hint is not None
    assert "not cloned because it exists" in notice.hint


@pytest.mark.parametrize("below", ["code", "code/inner"])
def test_a_directory_in_a_repository_is_as_good(
    folder: Folder, repository: Path, below: str
) -> None:
    (folder.root / below).mkdir(exist_ok=True)
    folder.fleet(agent_lines(f"working_directory: {{root: {below}, mode: worktree}}"))

    assert folder.errors() == []


def test_the_settings_of_a_schedules_directory_are_looked_at_too(folder: Folder) -> None:
    folder.write("other/.claude/settings.json", "{}")
    folder.fleet(
        agent_lines(
            "working_directory: .", "schedules: {n: {interval: 1h, prompt: x, workspace: other}}"
        )
    )

    assert list(folder.agent("a").project_settings) == ["other/.claude/settings.json"]


def test_resolved_values_are_shown_with_their_origin(folder: Folder, repository: Path) -> None:
    folder.fleet("""\
        defaults: {working_directory: {mode: worktree}}
        agents:
          - name: a
            working_directory: code
            schedules: {n: {interval: 1h, prompt: x, workspace: {keep: never}}}
          - {name: b, working_directory: {root: code, mode: shared}}
        """)

    shown = show(folder.load(), cwd=folder.root)["agents"]
    own = shown["a"]["working_directory"]

    assert own["root"] == {"value": str(repository), "origin": "nightherd.yaml:4"}
    assert own["mode"] == {"value": "worktree", "origin": "nightherd.yaml:1"}
    assert own["keep"] == {"value": "until_merged", "origin": "default"}
    assert own["scope"] == {"value": "job", "origin": "default"}
    nightly = shown["a"]["schedules"]["n"]["working_directory"]
    assert nightly["keep"] == {"value": "never", "origin": "nightherd.yaml:5"}
    assert nightly["mode"] == {"value": "worktree", "origin": "nightherd.yaml:1"}
    assert "keep" not in shown["b"]["working_directory"]
