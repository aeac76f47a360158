"""Permissions: the table that every runtime obeys, and the corners that only reading can show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nightherd.errors import InvalidValueError
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import InjectedMcpServerDef
from nightherd.model.permissions.permission import (
    ALLOWED,
    AUTO_APPROVED,
    Decision,
    Denied,
    PermissionMode,
    decide,
    permissions_of,
)
from nightherd.model.permissions.tool_rule import (
    covers_spawn,
    covers_tool,
    named_tools,
    parse_rule,
    whole_servers,
)
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from runtimes.permission_table import CASES, Case, Try

PLACE = Path("/place")
TABLE = [
    pytest.param(case, one, id=f"{case.name}: {one.tool} {' '.join(one.input.values())}")
    for case in CASES
    for one in case.tries
]


def agent(**rules: Any) -> Agent:
    return Agent(name="a", runtime=SCRIPTED, working_directory=str(PLACE / "work"), **rules)


def decide_for(tool: str, input: dict[str, Any], **rules: Any) -> Decision:
    return decide(permissions_of(agent(**rules)), tool, input)


def runs(command: str, **rules: Any) -> bool:
    return decide_for("Bash", {"command": command}, **rules) == ALLOWED


@pytest.mark.parametrize(("case", "one"), TABLE)
def test_the_table_is_obeyed(case: Case, one: Try) -> None:
    answer = decide_for(one.tool, one.filled(PLACE), **case.agent(PLACE))

    assert (answer == ALLOWED) is one.is_allowed, answer


def test_every_mode_is_in_the_table_of_approvals() -> None:
    assert set(AUTO_APPROVED) | {PermissionMode.BYPASS} == set(PermissionMode)


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"required_caps": ()}, "'required_caps'"),
        ({"tools": ("Read",)}, "'tools'"),
        ({"denied_tools": ("Bash(l*)",)}, "'Bash(l*)' ('denied_tools')"),
        ({"permission_mode": "plan"}, "mode plan"),
        ({}, "needs approval in mode acceptEdits"),
    ],
)
def test_a_denial_says_what_denies(rules: dict[str, Any], reason: str) -> None:
    answer = decide_for("Bash", {"command": "ls"}, **rules)

    assert isinstance(answer, Denied)
    assert reason in answer.reason


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf ..",
        "rm -rf .",
        "rm -rf src/../../work",
        "rm /etc/passwd",
        "rm ~/x",
        "rm $HOME/x",
        "rm {a,/etc/passwd}",
        "rm `cat list`",
        "rm */secret",
        "cp a.txt li*",
        "cp --target-directory=/etc a.txt",
        "cp -t/etc a.txt",
        "mkdir",
        "cd .. && rm a.txt",
        "cd / ; mkdir x",
        "sudo rm a.txt",
        "rm a.txt > /etc/x",
        "LD_PRELOAD=x rm a.txt",
        "rm a.txt; curl x",
        "rm a.txt & curl x",
        "rm a.txt\ncurl x",
        "(rm a.txt)",
        "rm 'a.txt",
        "cat <<X\nrm a.txt\nX",
        "./rm a.txt",
        "",
        "   ",
    ],
)
def test_a_file_command_that_may_do_more_is_no_edit(command: str) -> None:
    assert not runs(command)


@pytest.mark.parametrize(
    "command",
    [
        "rm a.txt",
        "rm -rf -- build",
        "rm *.txt",
        "rm 'with space'",
        "mkdir -p a/b c",
        "mv src/*.txt .",
        "cp -r src copy 2>/dev/null",
        "mkdir x 2>&1",
        f"rm {PLACE / 'work' / 'a.txt'}",
    ],
)
def test_a_file_command_in_the_own_directory_is_an_edit(command: str) -> None:
    assert runs(command)


@pytest.mark.parametrize(
    "command",
    [
        "mkdir x",
        "/bin/mkdir x",
        "mk'dir' x",
        "sudo -u me mkdir x",
        "env A=1 mkdir x",
        "find . | xargs mkdir",
        "bash -c 'ls; mkdir x'",
        "eval mkdir x",
        "A=1 mkdir x",
        "if true; then mkdir x; fi",
        "(ls; mkdir x)",
        "{ mkdir x; }",
        "ls `mkdir x`",
        'ls "$(mkdir x)"',
        "diff <(mkdir x) y",
        "ls \\\n && mkdir x",
        "X=mkdir; $X x",
        "f() { mkdir x; }; f",
        "cat <<E\n$(mkdir x)\nE",
        "echo ${X:-$(mkdir x)}",
        "echo 'open",
        "case a in a) mkdir x;; esac",
        "sh -c \"sh -c 'mkdir x'\"",
        "env " + "A=1 " * 100 + "mkdir x",
    ],
)
def test_a_denied_command_is_found_however_it_is_dressed(command: str) -> None:
    denied = {"permission_mode": "bypassPermissions", "denied_tools": ("Bash(mkdir *)",)}

    assert not runs(command, **denied)
    assert runs(command, permission_mode="bypassPermissions")


def test_what_only_names_a_denied_command_is_not_denied() -> None:
    denied = {"permission_mode": "bypassPermissions", "denied_tools": ("Bash(mkdir *)",)}

    assert runs("echo mkdir x", **denied)
    assert runs("mkdirs x", **denied)
    assert runs("ls | grep 'mkdir x'", **denied)


def test_links_are_followed_where_somebody_can_look(tmp_path: Path) -> None:
    work, beside = tmp_path / "work", tmp_path / "beside"
    work.mkdir()
    beside.mkdir()
    (work / "link").symlink_to(beside)
    own = Agent(name="a", runtime=SCRIPTED, working_directory=str(work))

    def real(path: str) -> str:
        return str(Path(path).resolve())

    looking, not_looking = permissions_of(own, real_path=real), permissions_of(own)

    call = {"file_path": str(work / "link" / "x"), "content": ""}
    assert isinstance(decide(looking, "Write", call), Denied)
    assert isinstance(decide(looking, "Bash", {"command": "mkdir link/x"}), Denied)
    assert decide(not_looking, "Write", call) == ALLOWED
    assert decide(looking, "Write", {**call, "file_path": "x"}) == ALLOWED


@pytest.mark.parametrize(
    ("rules", "is_allowed"),
    [
        ({}, False),
        ({"permission_mode": "bypassPermissions"}, True),
        ({"allowed_tools": ("mcp__desk",)}, True),
        ({"allowed_tools": ("mcp__desk__*",)}, True),
        ({"allowed_tools": ("mcp__desk__look",)}, True),
        ({"allowed_tools": ("mcp__desk__lo*",)}, True),
        ({"allowed_tools": ("mcp__desk__lookup",)}, False),
        ({"allowed_tools": ("mcp__desks__*",)}, False),
        ({"allowed_tools": ("mcp__desk",), "denied_tools": ("mcp__desk__look",)}, False),
        ({"allowed_tools": ("mcp__desk",), "tools": ()}, True),
        ({"allowed_tools": ("mcp__desk",), "required_caps": ("nightherd.mcp.desk.*",)}, True),
        ({"allowed_tools": ("mcp__desk",), "required_caps": ("nightherd.mcp.desk.look",)}, True),
        ({"allowed_tools": ("mcp__desk",), "required_caps": ("nightherd.mcp.*",)}, True),
        ({"allowed_tools": ("mcp__desk",), "required_caps": ("nightherd.tool.*",)}, False),
    ],
)
def test_tools_of_servers_are_called_by_their_long_names(
    rules: dict[str, Any], is_allowed: bool
) -> None:
    assert (decide_for("mcp__desk__look", {}, **rules) == ALLOWED) is is_allowed


def test_injected_servers_are_approved_but_never_against_a_denial() -> None:
    given = (InjectedMcpServerDef(name="post", tools=()),)

    def allowed(**rules: Any) -> bool:
        return (
            decide(permissions_of(agent(**rules), injected=given), "mcp__post__send", {}) == ALLOWED
        )

    assert allowed()
    assert allowed(permission_mode="default", allowed_tools=("Read",))
    assert not allowed(denied_tools=("mcp__post",))
    assert not allowed(permission_mode="plan")
    assert not allowed(required_caps=())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("*", "'*' is not supported"),
        ("mcp__*", "fits no tool of an MCP server"),
        ("mcp__", "fits no tool"),
        ("mcp_github", "fits no tool"),
        ("mcp__*__read", "fits no tool"),
        ("mcp__git hub", "not a name"),
        ("mcp__github__a b", "fits no tool"),
        ("mcp__github(x)", "no argument in brackets"),
        ("Write(src/**)", "Edit(src/**)"),
        ("Read(~/x)", "//home"),
        ("Glob(x)", "takes no argument in brackets"),
        ("Bash()", "has empty brackets"),
        ("Bash(git", "not a rule"),
        ("Bash (git *)", "does not begin"),
        (" Bash", "not a rule"),
        ("", "not a rule"),
        ("Ba*", "does not begin"),
    ],
)
def test_a_rule_that_could_not_work_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_rule(text)

    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "/w/src/a", True),
        ("src/**", "/w/src/b/a", True),
        ("src/**", "/w/srcs/a", False),
        ("src", "/w/deep/src/a", True),
        ("/src", "/w/deep/src/a", False),
        ("./src/*.py", "/w/src/a.py", True),
        ("./src/*.py", "/w/src/b/a.py", False),
        ("*.py", "/w/src/b/a.py", True),
        ("src/**/test_?.py", "/w/src/test_1.py", True),
        ("src/**/test_?.py", "/w/src/x/y/test_1.py", True),
        ("//etc/**", "/etc/passwd", True),
        ("//etc/**", "/w/etc/passwd", False),
        ("a+b", "/w/a+b", True),
    ],
)
def test_file_rules_fit_as_written(pattern: str, path: str, fits: bool) -> None:
    assert parse_rule(f"Edit({pattern})").fits_path(path, "/w") is fits


def test_capabilities_are_covered_by_name_or_pattern() -> None:
    assert covers_tool(["nightherd.tool.Bash"], "Bash")
    assert not covers_tool(["nightherd.tool.Bash"], "BashOutput")
    assert covers_tool(["nightherd.tool.Bash*"], "BashOutput")
    assert covers_tool(["nightherd.mcp.git.*"], "mcp__git__push")
    assert not covers_tool(["nightherd.mcp.git.pull"], "mcp__git__push")
    assert covers_tool(["nightherd.spawn.reader"], "Spawn")
    assert not covers_tool(["nightherd.tool.Read"], "Spawn")
    assert covers_spawn(None, "any")
    assert covers_spawn(["nightherd.spawn.team.*"], "team.writer")
    assert not covers_spawn([], "any")
    assert not covers_spawn(["nightherd.spawn.reader"], "writer")


def test_capabilities_as_what_can_be_offered() -> None:
    caps = ["nightherd.tool.Read", "nightherd.mcp.a.*", "nightherd.mcp.b.look"]

    assert named_tools(caps) == ("Read",)
    assert named_tools(["nightherd.tool.*"]) is None
    assert whole_servers(caps, ["a", "b", "c"]) == ("a",)
    assert whole_servers(["nightherd.mcp.*"], ["a", "b"]) == ("a", "b")
