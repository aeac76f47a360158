"""The demo's fork: two versions in worktrees, one is merged; a demo that shows something else says so."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from components import Components
from nightherd.cli.demo import agents
from nightherd.cli.demo.context import DemoContext
from nightherd.cli.demo.demo import demo_environment, prepare
from nightherd.cli.demo.fork import fork_and_merge
from nightherd.cli.demo.stage import FILES, FIRST_GIT, has_worktrees
from nightherd.cli.screen.render import Screen
from nightherd.errors import NightherdError
from nightherd.workspaces.landing.scratch import FIRST_VERSION

MakeDemo = Callable[[], DemoContext]


@pytest.fixture
def git(components: Components) -> str:
    return components.program("git")


@pytest.fixture
def make_demo(git: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeDemo:
    """The demo where its first agents have done their work: the bug is fixed and committed."""
    fixed = FILES["pricing.py"].replace("+ discount", "- discount")
    monkeypatch.setitem(FILES, "pricing.py", fixed)

    def make() -> DemoContext:
        screen = Screen(io.StringIO(), io.StringIO(), {})
        return prepare(screen, tmp_path, demo_environment(os.environ))[0]

    return make


def git_in(directory: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=directory, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_two_versions_are_shown_and_the_second_is_merged(make_demo: MakeDemo, git: str) -> None:
    demo = make_demo()
    shop = demo.place / "shop"
    before = git_in(shop, "rev-parse", "HEAD")

    forked = fork_and_merge(demo, git)

    first, second = forked.diffs
    assert '+BANNER = "20 % off everything"' in first
    assert "+++ b/test_banner.py" in first
    assert '-BANNER = ""\n+BANNER = "Buy two, get one free"\n' in second
    assert "test_banner.py" not in second
    assert git_in(shop, "rev-parse", "HEAD~1") == before
    assert git_in(shop, "show", "--format=", "--name-only") == "banner.py\ntest_banner.py\n"
    assert git_in(shop, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("shown", "instead", "complaint"),
    [
        ("range(1, 30)", "range(1, 3)", "a tool call of the demo's job"),
        ("I will add a test.", "I am done.\n      - fail: {code: x, message: no}", "failed: no"),
        ('new_string: BANNER = "', 'new_string: BANNER = "A ', "the first version is wrong"),
        ("command: python3", "command: touch ../../shop/mine; python3", "changed the checkout"),
    ],
)
def test_demo_that_shows_something_else_says_so(
    shown: str,
    instead: str,
    complaint: str,
    make_demo: MakeDemo,
    git: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown in agents.COPYWRITER
    monkeypatch.setattr(agents, "COPYWRITER", agents.COPYWRITER.replace(shown, instead))

    with pytest.raises(NightherdError, match=complaint):
        fork_and_merge(make_demo(), git)


@pytest.mark.parametrize(
    ("version", "is_enough"),
    [("2.37.1", False), ("2.38.0", True), ("2.39.5 (Apple Git-154)", True), ("3.0.rc1", True)],
)
def test_fork_needs_a_git_that_can_merge(version: str, is_enough: bool, tmp_path: Path) -> None:
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\necho 'git version {version}'\n")
    git.chmod(0o755)

    assert has_worktrees(str(git), os.environ) is is_enough


def test_fork_needs_git_and_the_version_that_merging_needs() -> None:
    assert has_worktrees(None, os.environ) is False
    assert FIRST_GIT == FIRST_VERSION
