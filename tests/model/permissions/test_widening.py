"""What counts as wider, and that a fleet that is held back grants nothing of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from nightherd.model.access.web import Web
from nightherd.model.agents.agent import Agent, Fleet, Plugin
from nightherd.model.agents.mcp import McpServer, McpTransport
from nightherd.model.chat.platform import Platform, bot_id
from nightherd.model.chat.settings import BotSettings, ChannelSettings, OutputSettings, UserRules
from nightherd.model.hooks import Hook, HookPoint, ShellCommand
from nightherd.model.limits.limits import DayLimits, Limits
from nightherd.model.limits.spending import ModelPrice
from nightherd.model.notifications.target import NotifyTarget
from nightherd.model.permissions.grants import FleetGrants, grants_of, may_write
from nightherd.model.permissions.restrain import restrained
from nightherd.model.permissions.widening import narrowed, widenings
from nightherd.model.problem import Place, Problem
from nightherd.model.schedules.jobs import for_schedule
from nightherd.model.schedules.rule import Interval, Schedule
from nightherd.model.sessions.session import SessionTerms
from nightherd.model.units import MicroUsd
from nightherd.model.webhooks import Endpoint, Webhooks
from nightherd.model.workspaces.policy import (
    CloneTerms,
    Keep,
    SetupCommand,
    WorkspaceMode,
    WorkspacePolicy,
    WorkspaceScope,
)
from nightherd.runtimes.claude.capabilities import CLI, SDK

HOME = "/fleet"


def server(**more: Any) -> McpServer:
    return McpServer(name="tools", transport=McpTransport.STDIO, command="serve", **more)


def hook(command: str) -> Hook:
    action = ShellCommand(command=command, timeout=timedelta(seconds=1))
    return Hook(id="after_run[0]", point=HookPoint.AFTER_RUN, action=action)


def worktree(**changes: Any) -> WorkspacePolicy:
    policy = WorkspacePolicy(
        mode=WorkspaceMode.WORKTREE,
        setup=(SetupCommand(run="make"),),
        clone=CloneTerms(url="https://git.example/x", password="secret"),
    )
    return replace(policy, **changes)


EVIL = SetupCommand(run="evil")
BOT = BotSettings(
    bot=bot_id(Platform.SLACK, "a"),
    platform=Platform.SLACK,
    agent="a",
    token_env="SLACK_BOT_TOKEN",
    channels=(ChannelSettings(id="C1"),),
    approvers={"U1": "ada"},
)
NIGHTLY = Schedule(
    name="nightly",
    workspace=WorkspacePolicy(mode=WorkspaceMode.EMPTY),
    rule=Interval(every=timedelta(hours=1)),
    limits=Limits(spend=MicroUsd(5), per_day=DayLimits(turns=3)),
    session=SessionTerms(max_turns=4),
)


def nightly(**changes: Any) -> dict[str, Any]:
    return {"schedules": {"nightly": replace(NIGHTLY, **changes)}}


AGENT = Agent(
    name="a",
    runtime=SDK,
    working_directory="/fleet/desk",
    workspace=worktree(),
    add_dirs=("/more",),
    permission_mode="acceptEdits",
    tools=("Bash", "Read"),
    allowed_tools=("Bash(git *)", "Write"),
    denied_tools=("WebFetch",),
    required_caps=("nightherd.tool.Read",),
    setting_sources=("project",),
    project_settings={".claude/settings.json": "1"},
    plugins=(Plugin(path="/plug", has_mcp_servers=False),),
    mcp_servers=(server(),),
    hooks=(hook("notify"),),
    bots=(BOT,),
    sandbox={"enabled": True},
    limits=Limits(spend=MicroUsd(10), per_day=DayLimits(turns=9)),
    max_turns=7,
    job_timeout=timedelta(minutes=1),
    max_concurrent=2,
    schedules={"nightly": NIGHTLY},
)
FLEET = Fleet(
    file="/fleet/nightherd.yaml",
    agents={"a": AGENT},
    dotenv={"KEY": "secret"},
    environment={"KEY": "secret"},
    limits=Limits(spend=MicroUsd(100)),
    max_concurrent=4,
)
BLOCKED = Problem(
    place=Place(file="f", line=1, column=1), message="no containers yet", path="agents.a.docker"
)
WIDER_AGENTS: dict[str, dict[str, Any]] = {
    "more turns of a schedule": nightly(session=SessionTerms(max_turns=5)),
    "a schedule without its turns": nightly(session=None),
    "more in a schedule's day": nightly(limits=replace(NIGHTLY.limits, per_day=DayLimits(turns=4))),
    "a schedule without its day": nightly(limits=replace(NIGHTLY.limits, per_day=DayLimits())),
    "runtime": {"runtime": CLI},
    "mode": {"permission_mode": "bypassPermissions"},
    "auto mode": {"permission_mode": "auto"},
    "working directory": {"working_directory": "/elsewhere"},
    "directory": {"add_dirs": ("/more", "/etc")},
    "directory above": {"add_dirs": ("/more", "/")},
    "tool": {"tools": ("Bash", "Read", "Write")},
    "all tools": {"tools": None},
    "allowed": {"allowed_tools": ("Bash(git *)", "Write", "Bash")},
    "not denied": {"denied_tools": ()},
    "capability": {"required_caps": ("nightherd.tool.Read", "nightherd.tool.*")},
    "no capabilities": {"required_caps": None},
    "settings source": {"setting_sources": ("project", "user")},
    "settings changed": {"project_settings": {".claude/settings.json": "2"}},
    "settings new": {"project_settings": {".claude/settings.json": "1", ".mcp.json": "1"}},
    "plugin": {"plugins": (*AGENT.plugins, Plugin(path="/other", has_mcp_servers=False))},
    "plugin with its servers": {"plugins": (Plugin(path="/plug"),)},
    "server changed": {"mcp_servers": (server(args=("--all",)),)},
    "server's environment": {"mcp_servers": (server(env={"NODE_OPTIONS": "-r evil"}),)},
    "hook": {"hooks": (hook("notify"), hook("evil"))},
    "bot's approvers": {"bots": (replace(BOT, approvers={"U1": "ada", "U2": "mallory"}),)},
    "bot's channels": {"bots": (replace(BOT, channels=(*BOT.channels, ChannelSettings(id="C2"))),)},
    "bot's people": {"bots": (replace(BOT, users=UserRules(allowlist=frozenset({"U2"}))),)},
    "bot's token": {"bots": (replace(BOT, token_env="AWS_SECRET_ACCESS_KEY"),)},
    "another bot": {"bots": (BOT, replace(BOT, platform=Platform.DISCORD))},
    "no sandbox": {"sandbox": None},
    "other sandbox": {"sandbox": {"enabled": True, "excludedCommands": ["sh"]}},
    "more to spend": {"limits": replace(AGENT.limits, spend=MicroUsd(11))},
    "no limit": {"limits": Limits()},
    "more in a day": {"limits": replace(AGENT.limits, per_day=DayLimits(turns=10))},
    "more turns": {"max_turns": 8},
    "longer": {"job_timeout": None},
    "more at once": {"max_concurrent": 3},
    "schedule's limit": {
        "schedules": {"nightly": replace(NIGHTLY, limits=Limits(spend=MicroUsd(6)))}
    },
    "schedule without a limit": {"schedules": {"nightly": replace(NIGHTLY, limits=Limits())}},
    "new schedule": {
        "schedules": {
            "nightly": NIGHTLY,
            "x": replace(NIGHTLY, name="x", limits=Limits(spend=MicroUsd(50))),
        }
    },
    "shared directory": {"workspace": worktree(mode=WorkspaceMode.SHARED)},
    "no workspace": {"workspace": WorkspacePolicy()},
    "copy of everything": {"workspace": worktree(mode=WorkspaceMode.COPY)},
    "setup": {"workspace": worktree(setup=(SetupCommand(run="make"), EVIL))},
    "setup changed": {"workspace": worktree(setup=(SetupCommand(run="make", paths=("x",)),))},
    "other repository": {"workspace": worktree(clone=CloneTerms(url="https://evil.example/x"))},
    "other branch": {
        "workspace": worktree(clone=CloneTerms(url="https://git.example/x", branch="evil"))
    },
    "schedule in the shared directory": nightly(workspace=WorkspacePolicy()),
    "schedule without its workspace": nightly(workspace=None),
    "schedule's setup": nightly(workspace=WorkspacePolicy(mode=WorkspaceMode.EMPTY, setup=(EVIL,))),
    "schedule's directory": nightly(working_directory="/elsewhere"),
    "new schedule in the shared directory": {
        "schedules": {
            "nightly": NIGHTLY,
            "x": replace(NIGHTLY, name="x", workspace=WorkspacePolicy(), limits=AGENT.limits),
        }
    },
    "schedule's hook": {"schedules": {"nightly": replace(NIGHTLY, hooks=(hook("evil"),))}},
}
WIDER_FLEETS: dict[str, dict[str, Any]] = {
    "new agent": {"agents": {"a": AGENT, "b": replace(AGENT, name="b")}},
    "variable": {
        "dotenv": {"KEY": "secret", "PATH": "."},
        "environment": {"KEY": "secret", "PATH": "."},
    },
    "changed variable": {"dotenv": {"KEY": "other"}, "environment": {"KEY": "other"}},
    "spend": {"limits": Limits()},
    "at once": {"max_concurrent": None},
    "port": {"web": Web(enabled=True)},
    "webhook": {"webhooks": Webhooks(endpoints={"in": Endpoint(name="in", agent="a")})},
    "webhooks longer": {"webhooks": Webhooks(replay_window=timedelta(days=1))},
    "webhook port": {"webhooks": Webhooks(enabled=True)},
    "notify target": {"notify": (NotifyTarget(id="phone", url="json://evil.example/secret"),)},
    "agent's notify target": {
        "agents": {"a": replace(AGENT, notify=(NotifyTarget(id="a/own", url_env="KEY"),))}
    },
    "price": {"prices": {"local:x": ModelPrice()}},
    "reload": {"reload": "auto"},
}
SAME: dict[str, dict[str, Any]] = {
    "prompts": {"default_prompt": "x", "system_prompt": "y", "model": "opus", "description": "z"},
    "stricter mode": {"permission_mode": "plan"},
    "fewer": {"tools": (), "allowed_tools": (), "required_caps": (), "add_dirs": (), "hooks": ()},
    "inner directory": {"working_directory": "/fleet/desk/inner"},
    "rule of an allowed tool": {"allowed_tools": ("Write", "Edit(src/**)", "Bash(git *)")[:1]},
    "more denied": {"denied_tools": ("WebFetch", "Bash(rm *)")},
    "lower": {
        "max_turns": 1,
        "limits": Limits(spend=MicroUsd(1), turns=1, per_day=DayLimits(turns=1)),
    },
    "no bots": {"bots": ()},
    "how a bot speaks": {"bots": (replace(BOT, output=OutputSettings(tool_results=False)),)},
    "no servers": {"mcp_servers": (), "plugins": (), "setting_sources": (), "project_settings": {}},
    "schedules": {"schedules": {"nightly": replace(NIGHTLY, prompt="more", rule=None)}},
    "nothing of the directory": {"workspace": worktree(mode=WorkspaceMode.EMPTY)},
    "no setup and no clone": {"workspace": worktree(setup=(), clone=None)},
    "other token": {
        "workspace": worktree(clone=CloneTerms(url="https://git.example/x", password="other"))
    },
    "how long": {
        "workspace": worktree(
            keep=Keep.NEVER, base="main", scope=WorkspaceScope.RUN, largest_file=1
        )
    },
    "directory of a schedule inside": nightly(working_directory="/fleet/desk/inner"),
}


def with_agent(changes: dict[str, Any]) -> Fleet:
    return replace(FLEET, agents={"a": replace(AGENT, **changes)})


WIDER = {
    **{name: with_agent(one) for name, one in WIDER_AGENTS.items()},
    **{name: replace(FLEET, **one) for name, one in WIDER_FLEETS.items()},
}


def beyond(accepted: FleetGrants, fleet: Fleet) -> list[str]:
    return [one.text for one in widenings(accepted, grants_of(fleet), HOME)]


@pytest.mark.parametrize("name", WIDER)
@pytest.mark.parametrize("before", [None, FLEET], ids=["restart", "reload"])
def test_wider_is_named_and_held_back(name: str, before: Fleet | None) -> None:
    accepted, fleet = grants_of(FLEET), WIDER[name]

    found = beyond(accepted, fleet)
    held = restrained(fleet, accepted, before)

    assert found
    assert beyond(accepted, held) == []
    assert "secret" not in " ".join(found)
    assert beyond(narrowed(accepted, grants_of(fleet), HOME), held) == []
    assert beyond(narrowed(accepted, grants_of(fleet), HOME), FLEET) == [], (
        "going back is not wider"
    )


@pytest.mark.parametrize("name", SAME)
def test_what_narrows_or_grants_nothing_is_taken_as_it_is(name: str) -> None:
    accepted, fleet = grants_of(FLEET), with_agent(SAME[name])

    assert beyond(accepted, fleet) == []


def test_what_was_narrowed_has_to_be_accepted_again() -> None:
    less = with_agent({"allowed_tools": ("Write",)})

    after = narrowed(grants_of(FLEET), grants_of(less), HOME)

    assert beyond(after, less) == []
    assert beyond(after, FLEET) == ["agent a: allowed_tools Bash(git *)"]


def test_a_change_that_narrows_and_widens_is_narrowed_at_once() -> None:
    mixed = with_agent({"allowed_tools": ("Bash",), "denied_tools": ("WebFetch", "Write")})

    (agent,) = restrained(mixed, grants_of(FLEET)).agents.values()

    assert agent.allowed_tools == ()
    assert set(agent.denied_tools) == {"WebFetch", "Write"}


def test_what_was_in_place_stays_in_place_until_the_change_is_accepted() -> None:
    changed = with_agent({"mcp_servers": (server(args=("--all",)),), "runtime": SDK})
    variables = replace(changed, dotenv={"KEY": "new"}, environment={"KEY": "new"})

    held = restrained(variables, grants_of(FLEET), FLEET)

    assert held.agents["a"].mcp_servers == (server(),)
    assert held.environment == {"KEY": "secret"}


def test_grants_of_a_fleet_that_was_moved_are_the_same() -> None:
    moved = replace(
        FLEET,
        file="/other/nightherd.yaml",
        agents={"a": replace(AGENT, working_directory="/other/desk")},
    )

    assert grants_of(moved) == grants_of(FLEET)


@pytest.mark.parametrize(
    ("rules", "file", "is_writable"),
    [
        ({}, "/fleet/desk/agent.yaml", True),
        ({"allowed_tools": ()}, "/fleet/nightherd.yaml", False),
        ({"allowed_tools": ("Bash(git *)",)}, "/etc/nightherd.yaml", True),
        ({"permission_mode": "bypassPermissions"}, "/etc/nightherd.yaml", True),
        ({"permission_mode": "plan"}, "/etc/nightherd.yaml", False),
    ],
)
def test_files_that_an_agent_may_write(rules: dict[str, Any], file: str, is_writable: bool) -> None:
    assert may_write(grants_of(with_agent(rules)), HOME, file) is is_writable


def test_an_agent_that_gives_up_its_container_stays_away() -> None:
    accepted = grants_of(with_agent({"blocked_by": (BLOCKED,)}))

    assert beyond(accepted, FLEET) == ["agent a: without docker"]
    assert restrained(FLEET, accepted).agents == {}
    assert beyond(narrowed(accepted, grants_of(FLEET), HOME), FLEET) == ["agent a: without docker"]


def test_answer_links_that_lead_elsewhere_are_held_back_and_the_port_stays() -> None:
    served = replace(FLEET, web=Web(enabled=True, hosts=frozenset({"b.example", "a.example"})))
    moved = replace(served, web=replace(served.web, public_url="https://evil.example"))

    found = [one.text for one in widenings(grants_of(served), grants_of(moved), HOME)]
    held = restrained(moved, grants_of(served), served)

    assert any("answer links lead elsewhere" in text for text in found)
    assert held.web == served.web
    assert restrained(served, grants_of(served)).web == served.web
    # What was accepted before there were such links still is.
    assert grants_of(served).web == "016cfcbf5ad28e564f0d519ff67aabde"


def test_a_target_that_answers_for_another_person_is_held_back() -> None:
    target = NotifyTarget(id="phone", url_env="KEY")
    known = replace(FLEET, notify=(target,))
    other = replace(FLEET, notify=(replace(target, approver="alice"),))

    assert widenings(grants_of(known), grants_of(other), HOME)
    assert restrained(other, grants_of(known)).notify == ()


def test_a_schedule_that_cannot_be_cut_back_stays_as_it_was_or_away() -> None:
    other = nightly(limits=replace(NIGHTLY.limits, turns=100), session=None)
    wider = replace(FLEET, agents={"a": replace(AGENT, **other)})

    after_restart = restrained(wider, grants_of(FLEET)).agents["a"]
    after_reload = restrained(wider, grants_of(FLEET), FLEET).agents["a"]

    assert widenings(grants_of(FLEET), grants_of(wider), HOME)
    assert after_restart.schedules == {}
    assert after_reload.schedules["nightly"].session == NIGHTLY.session
    assert after_reload.schedules["nightly"].limits == NIGHTLY.limits


def test_a_workspace_that_was_in_place_stays_until_the_shared_directory_is_accepted() -> None:
    shared = with_agent({"workspace": WorkspacePolicy(), **nightly(workspace=None)})

    after_restart = restrained(shared, grants_of(FLEET)).agents["a"]
    after_reload = restrained(shared, grants_of(FLEET), FLEET).agents["a"]

    assert beyond(grants_of(FLEET), shared) == [
        "agent a: working_directory.mode worktree -> shared",
        "agent a: schedule nightly: working_directory.mode empty -> shared",
    ]
    assert after_reload.workspace == AGENT.workspace
    assert after_restart.workspace.mode is WorkspaceMode.WORKTREE
    assert for_schedule(after_restart, "nightly").workspace.mode is WorkspaceMode.EMPTY


def test_commands_and_repositories_are_held_back_one_by_one() -> None:
    more = with_agent(
        {
            "workspace": worktree(
                setup=(SetupCommand(run="make"), EVIL), clone=CloneTerms(url="https://evil.example")
            )
        }
    )

    held = restrained(more, grants_of(FLEET)).agents["a"].workspace

    assert held.setup == (SetupCommand(run="make"),)
    assert held.clone is None
    assert restrained(more, grants_of(FLEET), FLEET).agents["a"].workspace == AGENT.workspace


def test_a_repository_is_taken_as_accepted_where_the_record_is_older_than_cloning() -> None:
    grants = grants_of(with_agent({"workspace": WorkspacePolicy()}))
    record = msgspec.to_builtins(grants)
    for key in ("workspace", "schedule_workspaces", "setup", "clones"):
        del record["agents"]["a"][key]
    older = msgspec.convert(record, FleetGrants)
    cloned = with_agent({"workspace": replace(AGENT.workspace, setup=())})

    assert beyond(older, cloned) == []
    assert restrained(cloned, older).agents["a"].workspace == cloned.agents["a"].workspace
    assert narrowed(older, grants_of(cloned), HOME).agents["a"].clones != []
