"""Inputs of megabytes: nobody waits for them to be understood, and what cannot be done with them is said."""

from __future__ import annotations

import re
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ToolCallPart

from nightherd.model.permissions.permission import Denied, PermissionMode, Permissions, decide
from nightherd.model.permissions.shell_command import LONGEST, read_command
from nightherd.model.permissions.tool_rule import parse_rule
from nightherd.runtimes.native.toolset import Answered, Toolset, context_of, offer
from nightherd.runtimes.tools.toolbox import standard_tools
from runtimes.native.native_stage import NativeStage, Replies, calls, results, says

LONG = 3_000_000


@pytest.mark.parametrize(
    ("tool", "input", "told"),
    [
        ("Bash", {"command": "true " * (LONG // 5)}, "the command is too long: 3,000,000 bytes"),
        ("Read", {"file_path": "a/" * (LONG // 2)}, "no path has 3,000,000 characters"),
        ("Grep", {"pattern": "a" * LONG}, "the pattern is too long"),
        ("Glob", {"pattern": "*" * LONG}, "the pattern is too long"),
    ],
    ids=["command", "path", "expression", "pattern"],
)
@pytest.mark.parametrize("mode", ["bypassPermissions", "acceptEdits"])
def test_what_is_too_long_is_said_to_be(
    stage: NativeStage, tool: str, input: dict[str, str], told: str, mode: str
) -> None:
    agent = {"permission_mode": mode, "allowed_tools": ("Bash",), "add_dirs": ()}

    events = stage.run(Replies(calls((tool, input)), says("oh")), stage.request(agent=agent))

    (result,) = results(events)
    assert (result.error or "").startswith(told)


def test_a_command_that_no_shell_takes_is_not_read() -> None:
    command = read_command("a;" * LONGEST)

    assert command.is_opaque
    assert not command.simples


def test_a_rule_with_many_stars_goes_through_a_long_command_once() -> None:
    rules = Permissions(
        mode=PermissionMode.BYPASS,
        directories=("/",),
        denied=(parse_rule("Bash(*a*b*c*d*a*b*c*d*z)", denies=True),),
    )

    decision = decide(rules, "Bash", {"command": "echo " + "ab cd " * 20_000})

    assert not isinstance(decision, Denied)


@given(st.text("ab *", max_size=8), st.text("ab \n", max_size=8))
@settings(max_examples=200, deadline=None)
def test_a_star_is_any_text(pattern: str, text: str) -> None:
    rule = parse_rule(f"Bash(x{pattern})")
    given = f"x{pattern}"
    if given.endswith(" *") and "*" not in given[:-1]:
        form = f"{re.escape(given[:-2])}(?: .*)?"
    else:
        form = ".*".join(map(re.escape, given.split("*")))

    assert rule.fits_text(f"x{text}") is (re.fullmatch(form, f"x{text}", re.DOTALL) is not None)


def test_others_go_on_while_a_long_command_is_read(stage: NativeStage) -> None:
    request = stage.request(agent={"permission_mode": "default", "denied_tools": ("Bash(rm *)",)})
    toolset = Toolset(request, offer(standard_tools()))
    call = ToolCallPart("Bash", {"command": "true; " * 20_000}, "c")
    turns: list[Any] = []

    async def others() -> None:
        while True:
            await anyio.lowlevel.checkpoint()
            turns.append(None)

    async def answer() -> tuple[Answered, int]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(others)
            await anyio.lowlevel.checkpoint()
            before = len(turns)
            answered = await toolset.answer(call, context_of(request, call, {}))
            gone_on = len(turns) - before
            tasks.cancel_scope.cancel()
        return answered, gone_on

    answered, gone_on = anyio.run(answer)

    assert answered.denied is not None
    assert gone_on > 0
