"""Workflows as a part of the fleet: files and inline, sub-fleets, agents and webhooks, and which files count."""

from __future__ import annotations

import os

import pytest

from config.folder import Folder
from nightherd.model.workflows.definition import AgentAction, CommandAction, WorkflowAction

AGENTS = "agents: [{name: coder, runtime: scripted, script: []}]\n"
ONE = "phases: [{name: a, agent: coder, prompt: 'Do ${inputs.title}'}]\ninputs: {title: text}\n"
COMMAND = "phases: [{name: a, bash: ls}]\n"
WEBHOOK = "webhooks: {secret_env: SECRET, endpoints: {github: {}}}\n"


def test_workflows_of_files_and_of_the_fleet_file_are_in_the_fleet(folder: Folder) -> None:
    folder.write("workflows/build.yaml", ONE)
    folder.write("workflows/other.yml", COMMAND)
    folder.write("workflows/notes.txt", "no workflow")
    folder.fleet(
        f"{AGENTS}workflows:\n  inline:\n    inputs: {{x: text}}\n"
        "    phases: [{name: a, agent: coder, prompt: 'Use ${inputs.x} and $HOME'}]\n"
    )

    workflows = folder.load(x="wrong", HOME="/wrong").fleet.workflows

    assert list(workflows) == ["inline", "build", "other"]
    action = workflows["inline"].phases[0].action
    assert isinstance(action, AgentAction)
    assert action.prompt == "Use ${inputs.x} and $HOME"


def test_a_mistake_is_located_in_the_file_that_has_it(folder: Folder) -> None:
    folder.write(
        "workflows/build.yaml", "phases:\n  - {name: a, agent: codr, prompt: x, tries: 2}\n"
    )
    folder.write("workflows/other.yaml", "phases:\n  - {name: a, agent: codr, prompt: '${nope}'}\n")
    folder.fleet(f"{AGENTS}workflows: {{x: {{phases: [{{name: a, bash: ls, when: nope}}]}}}}\n")

    assert folder.errors() == [
        "nightherd.yaml:2:52 unknown name 'nope'",
        "workflows/build.yaml:2:39 unknown key 'tries'",
        "workflows/other.yaml:2:22 the fleet has no agent 'codr'",
        "workflows/other.yaml:2:39 unknown name 'nope'",
    ]


def test_two_workflows_of_one_name_are_an_error(folder: Folder) -> None:
    folder.write("workflows/build.yaml", COMMAND)
    folder.fleet("workflows: {build: {phases: [{name: a, bash: ls}]}}\n")

    assert folder.errors() == ["workflows/build.yaml:1:1 a second workflow called 'build'"]


def test_workflows_of_a_sub_fleet_are_qualified_and_use_its_agents(folder: Folder) -> None:
    folder.write("sub/nightherd.yaml", AGENTS)
    folder.write("sub/workflows/build.yaml", ONE)
    folder.write("sub/workflows/all.yaml", "phases: [{name: b, workflow: build}]\n")
    folder.fleet("fleets: [{path: sub}]\n")

    workflows = folder.load().fleet.workflows

    assert sorted(workflows) == ["sub.all", "sub.build"]
    action, child = (workflows[name].phases[0].action for name in ("sub.build", "sub.all"))
    assert isinstance(action, AgentAction)
    assert isinstance(child, WorkflowAction)
    assert (workflows["sub.build"].name, action.agent) == ("sub.build", "sub.coder")
    assert (child.workflow, child.definition) == ("sub.build", workflows["sub.build"])


def test_a_workflow_of_a_sub_fleet_sees_no_agent_or_workflow_outside(folder: Folder) -> None:
    folder.write("sub/nightherd.yaml", "fleet: {name: below}\nagents: [{name: codes}]\n")
    folder.write("sub/workflows/build.yaml", ONE)
    folder.write("sub/workflows/all.yaml", "phases: [{name: b, workflow: outside}]\n")
    folder.write("workflows/outside.yaml", COMMAND)
    folder.fleet(f"{AGENTS}fleets: [{{path: sub}}]\n")

    found = folder.found()

    assert [folder.line(one) for one in found] == [
        "sub/workflows/all.yaml:1:30 the fleet 'below' has no workflow 'outside'",
        "sub/workflows/build.yaml:1:27 the fleet 'below' has no agent 'coder'",
    ]
    assert [one.hint for one in found] == [None, "did you mean 'codes'?"]
    assert found[1].path == "workflows.below.build.phases.a.agent"


def test_overrides_of_a_fleet_change_its_workflows_and_keep_their_expressions(
    folder: Folder,
) -> None:
    folder.write("sub/nightherd.yaml", f"{AGENTS}workflows: {{build: {{inputs: {{n: text}}}}}}\n")
    folder.fleet("""\
        fleets:
          - path: sub
            overrides:
              workflows:
                build: {phases: [{name: a, bash: ls, env: {N: "${inputs.n}"}}]}
        """)

    action = folder.load().fleet.workflows["sub.build"].phases[0].action

    assert isinstance(action, CommandAction)
    assert action.env == {"N": "${inputs.n}"}


def test_of_two_fleet_files_in_a_directory_the_outer_has_its_workflows(folder: Folder) -> None:
    folder.write("second.yaml", f"fleet: {{name: second}}\n{AGENTS}")
    folder.write("workflows/build.yaml", ONE)
    folder.fleet(f"{AGENTS}fleets: [{{path: second.yaml}}]\n")

    assert list(folder.load().fleet.workflows) == ["build"]


def test_every_file_of_a_workflow_counts_and_so_does_the_directory(folder: Folder) -> None:
    folder.write("workflows/build.yaml", "phases: [{name: a, agent: coder, prompt_file: ask.md}]\n")
    folder.write("workflows/ask.md", "Do it")
    folder.fleet(AGENTS)

    checked = folder.check()

    assert checked.loaded is not None
    files = [os.path.relpath(file, folder.root) for file in checked.loaded.fleet.files]
    assert files == ["nightherd.yaml", "workflows/build.yaml", "workflows/ask.md"]
    assert checked.directories == (str(folder.root / "workflows"),)


def test_a_directory_is_looked_for_also_where_there_is_none(folder: Folder) -> None:
    folder.fleet(AGENTS)

    assert folder.check().directories == (str(folder.root / "workflows"),)


def test_a_webhook_that_starts_a_workflow_needs_no_agent(folder: Folder) -> None:
    folder.write("workflows/build.yaml", f"on: {{webhooks: [github]}}\n{COMMAND}")
    folder.fleet(WEBHOOK)

    fleet = folder.load(SECRET="s").fleet

    assert fleet.webhooks.endpoints["github"].agent is None
    assert list(fleet.workflows["build"].triggers.webhooks) == ["github"]


@pytest.mark.parametrize(
    ("endpoint", "workflow", "errors"),
    [
        (
            "{}",
            COMMAND,
            [
                "nightherd.yaml:1:52 the webhook starts nothing: name an 'agent', or name it under"
                " 'on.webhooks' of a workflow"
            ],
        ),
        (
            "{prompt: x}",
            f"on: {{webhooks: [github]}}\n{COMMAND}",
            ["nightherd.yaml:1:53 'prompt' is for the job of an agent, and no 'agent' is named"],
        ),
        (
            "{}",
            f"on: {{webhooks: [gitub]}}\n{COMMAND}",
            ["workflows/build.yaml:1:17 the fleet has no webhook 'gitub'"],
        ),
    ],
)
def test_a_webhook_that_starts_nothing_is_an_error(
    folder: Folder, endpoint: str, workflow: str, errors: list[str]
) -> None:
    folder.write("workflows/build.yaml", workflow)
    folder.fleet(f"webhooks: {{secret_env: SECRET, endpoints: {{github: {endpoint}}}}}\n")

    assert folder.errors() == errors


def test_what_is_wrong_with_an_agent_is_not_said_again_of_its_workflows(folder: Folder) -> None:
    folder.write("workflows/build.yaml", ONE)
    folder.fleet("agents: [{name: coder, runtime: scripted, scrip: []}]\n")

    assert folder.errors() == ["nightherd.yaml:1:43 unknown key 'scrip'"]


def test_a_file_called_workflows_holds_none(folder: Folder) -> None:
    folder.write("workflows", "a file")
    folder.fleet(AGENTS)

    assert folder.load().fleet.workflows == {}


def test_command_runs_in_the_container_of_an_agent_that_has_one(folder: Folder) -> None:
    folder.write(
        "workflows/build.yaml",
        "phases:\n"
        "  - {name: a, bash: ls, container: codr}\n"
        "  - {name: b, bash: ls, container: coder}\n"
        "  - {name: c, agent: coder, prompt: x, loop: {max_iterations: 2, until_command: {bash: ls, container: coder}}}\n"
        "  - {name: d, phases: [{name: e, python: x, container: boxed}]}\n",
    )
    folder.write("workflows/other.yaml", "phases: [{name: a, bash: ls, container: [coder]}]\n")
    boxed = "  - {name: boxed, runtime: scripted, script: [], docker: {enabled: true}}\n"
    folder.fleet(f"agents:\n  - {{name: coder, runtime: scripted, script: []}}\n{boxed}")

    assert folder.errors() == [
        "workflows/build.yaml:2:36 the fleet has no agent 'codr'",
        "workflows/build.yaml:3:36 agent 'coder' has no container",
        "workflows/build.yaml:4:103 agent 'coder' has no container",
        "workflows/other.yaml:1:41 must be the name of an agent, true or false",
    ]


def test_agent_of_a_container_is_one_of_the_same_fleet(folder: Folder) -> None:
    docker = "docker: {enabled: true}\n"
    folder.write("sub/nightherd.yaml", f"{docker}{AGENTS}")
    folder.write("sub/workflows/build.yaml", "phases: [{name: a, bash: ls, container: coder}]\n")
    folder.fleet("fleets: [{path: sub}]\n")

    action = folder.load().fleet.workflows["sub.build"].phases[0].action

    assert isinstance(action, CommandAction)
    assert action.container == "sub.coder"


@pytest.mark.parametrize(("mode", "is_wrong"), [("worktree", True), ("copy", False)])
def test_command_on_this_machine_cannot_share_a_worktree_with_a_container(
    folder: Folder, mode: str, is_wrong: bool
) -> None:
    folder.write(
        "workflows/build.yaml",
        f"working_directory: {{mode: {mode}}}\n"
        "phases:\n"
        "  - {name: a, agent: coder, prompt: x}\n"
        "  - {name: b, bash: ls, container: false}\n",
    )
    folder.fleet(f"docker: {{enabled: true}}\n{AGENTS}")

    text = "with mode: worktree, this command cannot run on this machine: agent 'coder' has a container"
    found = [one for one in folder.errors() if "needs a git repository" not in one]
    assert found == ([f"workflows/build.yaml:4:36 {text}"] if is_wrong else [])
