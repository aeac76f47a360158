"""Running git: an environment of our own, bounded in time, and errors that say what to do and no secret."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from nightherd.errors import WorkspaceError
from nightherd.workspaces.git import Git, Place, split
from workspaces.scene import Scene, git


def shim(folder: Path, text: str) -> Git:
    """Git, replaced by a program."""
    program = folder / "shim"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return Git(program=str(program))


def environment_of(folder: Path, *, needs_credentials: bool) -> dict[str, str]:
    out = shim(folder, "env").run(
        Place(git_dir=str(folder)), "status", needs_credentials=needs_credentials
    )
    return dict(line.split("=", 1) for line in out.decode().splitlines())


def test_environment_of_a_shell_does_not_reach_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "GIT_DIR",
        "GIT_EXTERNAL_DIFF",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_PARAMETERS",
        "API_KEY",
        "LD_PRELOAD_X",
    ):
        monkeypatch.setenv(name, "/evil")
    seen = environment_of(tmp_path, needs_credentials=False)
    assert "/evil" not in seen.values()
    assert seen["GIT_DIR"] == str(tmp_path)
    assert (seen["GIT_CONFIG_NOSYSTEM"], seen["GIT_CONFIG_GLOBAL"]) == ("1", os.devnull)
    assert (seen["GIT_TERMINAL_PROMPT"], "HOME" in seen, "SSH_AUTH_SOCK" in seen) == (
        "0",
        False,
        False,
    )


def test_credentials_come_from_the_user_only_where_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    monkeypatch.setenv("GIT_SSH_COMMAND", "/evil")
    seen = environment_of(tmp_path, needs_credentials=True)
    assert (seen["HOME"], seen["SSH_AUTH_SOCK"]) == ("/home/somebody", "/run/agent")
    assert "GIT_CONFIG_GLOBAL" not in seen
    assert "GIT_SSH_COMMAND" not in seen


def test_mark_of_the_execution_is_passed_on(tmp_path: Path) -> None:
    program = tmp_path / "shim"
    program.write_text('#!/bin/sh\nprintf %s "$NIGHTHERD_EXECUTION"\n')
    program.chmod(0o755)
    marked = Git(program=str(program), mark="job-1.1@8:9")
    assert marked.run(Place(git_dir=str(tmp_path)), "status") == b"job-1.1@8:9"


def test_command_that_takes_too_long_is_killed_with_all_it_started(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    # The inner shell holds the pipe open for as long as it lives.
    hold = f"sh -c 'exec 3> {alive}; sleep 600' & wait"
    slow = shim(tmp_path, f'[ "$1" = version ] && exit\n{hold}')
    reading = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(WorkspaceError, match="took too long") as caught:
            slow.run(Place(git_dir=str(tmp_path)), "fetch", timeout=0.5)
        assert caught.value.can_pass
        assert os.read(reading, 1) == b""
    finally:
        os.close(reading)


def test_error_names_what_was_done_where_and_why(scene: Scene) -> None:
    with pytest.raises(WorkspaceError) as caught:
        Git().in_repository(
            str(scene.root / ".git"),
            "rev-parse",
            "--verify",
            "nothing",
            doing="the base cannot be read",
        )
    text = str(caught.value)
    assert text.startswith(f"the base cannot be read in '{scene.root / '.git'}': fatal: ")
    assert not caught.value.can_pass


def test_error_has_no_secret(tmp_path: Path) -> None:
    url = "https://user:t0ken@example.invalid/x.git"
    failing = shim(tmp_path, f"echo \"fatal: unable to access '{url}': hunter2\" >&2; exit 128")
    masked = Git(
        program=str(tmp_path / "shim"), mask=lambda text: text.replace("hunter2", "[secret]")
    )
    texts = []
    for program in (failing, masked):
        with pytest.raises(WorkspaceError) as caught:
            program.run(Place(git_dir=str(tmp_path)), "fetch", url)
        texts.append(str(caught.value))
    assert "t0ken" not in "".join(texts)
    assert "https://example.invalid" in texts[0]
    assert "hunter2" not in texts[1]


@pytest.mark.parametrize(
    ("said", "can_pass"),
    [
        ("error: write: No space left on device", True),
        ("fatal: Unable to create '/x/index.lock': File exists.", True),
        ("fatal: Could not resolve host: example.invalid", True),
        ("fatal: bad object HEAD", False),
    ],
)
def test_error_knows_whether_trying_again_may_help(
    tmp_path: Path, said: str, can_pass: bool
) -> None:
    failing = shim(tmp_path, f'echo "{said}" >&2; exit 128')
    with pytest.raises(WorkspaceError) as caught:
        failing.run(Place(git_dir=str(tmp_path)), "update-index")
    assert caught.value.can_pass is can_pass


def test_command_that_is_killed_may_be_tried_again(tmp_path: Path) -> None:
    dying = shim(tmp_path, "kill -9 $$")
    with pytest.raises(WorkspaceError) as caught:
        dying.run(Place(git_dir=str(tmp_path)), "gc")
    assert caught.value.can_pass
    assert dying.attempt(Place(git_dir=str(tmp_path)), "gc").status == -signal.SIGKILL


def test_missing_git_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="workspaces need git") as caught:
        Git(program="git-that-nobody-has").run(Place(git_dir=str(tmp_path)), "status")
    assert "install git" in str(caught.value.hint)


def test_commands_run_together_and_each_says_how_it_ended(scene: Scene) -> None:
    place = Place(git_dir=str(scene.root / ".git"))
    first, second, third = Git().attempt_together(
        (place, ("rev-parse", "HEAD")),
        (place, ("rev-parse", "--verify", "nothing")),
        (place, ("rev-parse", "HEAD")),
    )
    head = git(scene.root, "rev-parse", "HEAD").encode() + b"\n"
    assert (first.out, second.status, third.out) == (head, 128, head)


def test_names_that_are_no_text_survive_being_split() -> None:
    assert [os.fsencode(name) for name in split(b"a\nb\0\xff\0")] == [b"a\nb", b"\xff"]


@pytest.mark.parametrize("name", ["lint", "two words", "a=b", "it's!", "deep.er"])
def test_hooks_that_configuration_names_are_replaced_where_git_runs_them(
    scene: Scene, tmp_path: Path, name: str
) -> None:
    git(scene.root, "config", f"hook.{name}.event", "reference-transaction")
    git(scene.root, "config", f"hook.{name}.command", "touch canary")
    newer = shim(tmp_path, '[ "$1" = version ] && echo "git version 2.54.0" || exec git "$@"')
    place = Place(git_dir=str(scene.root / ".git"))
    shown = newer.run(place, "config", "--get", f"hook.{name}.command")
    assert shown == b"true\n"
    assert Git().run(place, "config", "--get", f"hook.{name}.command") == b"touch canary\n"


def test_a_version_that_would_run_hooks_is_refused_in_a_repository(tmp_path: Path) -> None:
    old = shim(tmp_path, f"test $1 = version && echo git version 2.20.1 || touch {tmp_path}/ran")

    with pytest.raises(WorkspaceError) as raised:
        old.in_repository(str(tmp_path), "for-each-ref")

    assert raised.value.message == "workspaces need git 2.33 or newer, and this is git 2.20"
    assert not (tmp_path / "ran").exists()
