"""`repo` together with `working_directory`: what is cloned, with which credentials, and what nobody sees of them."""

from __future__ import annotations

import json

import pytest

from config.folder import Folder
from nightherd.config.show import show
from nightherd.model.problem import Severity
from nightherd.model.secrets import secrets_of
from nightherd.model.workspaces.policy import CloneTerms

TOKEN = "ghp_abcdefghijklmnop"


def fleet_with(folder: Folder, repo: str, directory: str = "{root: work}") -> Folder:
    return folder.fleet(f"agents: [{{name: a, repo: '{repo}', working_directory: {directory}}}]\n")


def terms(folder: Folder, **environ: str) -> CloneTerms | None:
    return folder.agent("a", **environ).workspace.clone


@pytest.mark.parametrize(
    ("repo", "url"),
    [
        ("owner/name", "https://github.com/owner/name.git"),
        ("owner/name.git", "https://github.com/owner/name.git"),
        ("https://git.example/a/b.git", "https://git.example/a/b.git"),
        ("ssh://git@git.example:2222/a/b", "ssh://git@git.example:2222/a/b"),
        ("git@github.com:owner/name.git", "git@github.com:owner/name.git"),
        ("file:///srv/git/x", "file:///srv/git/x"),
        ("/srv/git/x", "/srv/git/x"),
    ],
)
def test_what_repo_names_is_cloned(folder: Folder, repo: str, url: str) -> None:
    fleet_with(folder, repo)

    assert terms(folder) == CloneTerms(url=url)
    assert folder.agent("a").repo == repo


def test_a_relative_path_counts_from_the_file_it_is_written_in(folder: Folder) -> None:
    folder.write("agents/a.yaml", "name: a\nrepo: ../upstream\nworking_directory: ../work\n")
    folder.fleet("agents: [{path: agents/a.yaml}]\n")

    assert terms(folder) == CloneTerms(url=str(folder.root / "upstream"))
    assert folder.agent("a").repo == "../upstream"


def test_depth_and_branch_are_as_the_file_says(folder: Folder) -> None:
    fleet_with(folder, "o/n", "{root: work, clone_depth: 0, default_branch: trunk, mode: worktree}")

    agent = folder.agent("a")

    assert agent.workspace.clone == CloneTerms(
        url="https://github.com/o/n.git", branch="trunk", depth=0
    )
    assert agent.workspace.base == "origin/trunk"


def test_a_worktree_of_a_clone_begins_where_its_base_says(folder: Folder) -> None:
    fleet_with(folder, "o/n", "{root: work, mode: worktree, base: v1.0}")

    assert folder.agent("a").workspace.base == "v1.0"


def test_a_missing_directory_that_is_cloned_is_no_error(folder: Folder) -> None:
    fleet_with(folder, "owner/name", "work")

    assert folder.errors() == []
    assert folder.notices() == [
        f"nightherd.yaml:1:59 the directory '{folder.root}/work' does not exist: "
        "the first job clones https://github.com/owner/name.git"
    ]


@pytest.mark.parametrize(
    ("repo", "directory"),
    [
        ("owner/name", "{root: work, auto_clone: false}"),
        ("the big one", "work"),
        ("ftp://git.example/x", "work"),
    ],
)
def test_a_missing_directory_that_nothing_clones_is_an_error(
    folder: Folder, repo: str, directory: str
) -> None:
    fleet_with(folder, repo, directory)

    assert [one.message for one in folder.found()] == [
        f"the directory '{folder.root}/work' does not exist"
    ]


def test_a_file_in_the_place_of_the_directory_is_an_error(folder: Folder) -> None:
    folder.write("work", "x")
    fleet_with(folder, "owner/name")

    assert [one.message for one in folder.found()] == [
        f"the directory '{folder.root}/work' does not exist"
    ]


def test_nothing_is_cloned_for_an_agent_without_a_working_directory(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, repo: owner/name}]\n")

    assert terms(folder) is None


@pytest.mark.parametrize(
    ("repo", "login"),
    [
        ("https://me:pass%40word@git.example/x.git", ("me", "pass@word")),
        (f"https://{TOKEN}@git.example/x.git", ("x-access-token", TOKEN)),
        ("https://me@git.example/x.git", ("me", None)),
    ],
)
def test_credentials_are_taken_out_of_the_address(
    folder: Folder, repo: str, login: tuple[str, str | None]
) -> None:
    fleet_with(folder, repo)

    agent = folder.agent("a")

    assert agent.repo == "https://git.example/x.git"
    assert agent.workspace.clone is not None
    assert agent.workspace.clone.url == "https://git.example/x.git"
    assert (agent.workspace.clone.username, agent.workspace.clone.password) == login
    assert (login[1] or "pass") not in repr(agent)


@pytest.mark.parametrize("repo", ["https://me:pass%40word@git.example/x", "${ADDRESS}"])
def test_the_password_is_masked_and_never_shown(folder: Folder, repo: str) -> None:
    fleet_with(folder, repo)
    environ = {"ADDRESS": "https://me:pass%40word@git.example/x"}

    loaded = folder.load(**environ)
    secrets = secrets_of(loaded.fleet, {})
    shown = json.dumps(show(loaded, cwd=folder.root))
    messages = " ".join(one.message for one in folder.found(Severity.NOTICE, **environ))

    assert secrets.mask("it said pass@word, or pass%40word") == (
        "it said [secret:repo], or [secret:repo]"
    )
    for text in (shown, messages, repr(loaded.fleet.agents)):
        assert "pass@word" not in text
        assert "pass%40word" not in text
    assert "work" in messages


def test_a_schedules_clone_is_masked_too(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            repo: https://me:password7@git.example/x
            schedules: {n: {interval: 1h, prompt: x, workspace: {root: work}}}
        """)

    assert secrets_of(folder.load().fleet, {}).mask("password7") == "[secret:repo]"


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "GH_TOKEN"])
def test_a_token_of_github_opens_github_and_nothing_else(folder: Folder, name: str) -> None:
    folder.fleet("""\
        defaults: {working_directory: work}
        agents:
          - {name: a, repo: owner/name}
          - {name: b, repo: "https://git.example/owner/name"}
          - {name: c, repo: "git@github.com:owner/name"}
          - {name: d, repo: "https://me:own@github.com/owner/name"}
          - {name: e, repo: "http://github.com/owner/name"}
        """)

    agents = folder.load(**{name: f"{TOKEN}\n"}).fleet.agents
    clones = [one.workspace.clone for one in agents.values()]

    assert [(one.username, one.password) for one in clones if one is not None] == [
        ("x-access-token", TOKEN),
        (None, None),
        (None, None),
        ("me", "own"),
        (None, None),
    ]


def test_the_token_may_stand_beside_the_fleet_file(folder: Folder) -> None:
    folder.write(".env", f"GITHUB_TOKEN={TOKEN}\n")
    fleet_with(folder, "owner/name")

    clone = terms(folder)

    assert clone is not None
    assert clone.password == TOKEN


@pytest.mark.parametrize(
    ("repo", "message"),
    [
        (
            "ssh://me:word@git.example/x",
            "an ssh address cannot hold a password; use a key, or https",
        ),
        (
            "https://me:a%0ab@git.example/x",
            "the user name or password of the address has a control character",
        ),
    ],
)
def test_credentials_that_cannot_be_used_are_an_error(
    folder: Folder, repo: str, message: str
) -> None:
    (folder.root / "work").mkdir()
    fleet_with(folder, repo)

    assert folder.errors() == [f"nightherd.yaml:1:26 {message}"]
