"""Layers: defaults, agents, overrides and sub-fleets, merged before anything is filled in or checked."""

from __future__ import annotations

import pytest

from config.folder import Folder
from nightherd.config.schema.agent import Agent as AgentSchema


def settings(folder: Folder, name: str = "a") -> AgentSchema:
    model = folder.load().agents[name].model
    assert isinstance(model, AgentSchema)
    return model


def test_an_agent_that_mentions_docker_keeps_the_fleets_sandbox(folder: Folder) -> None:
    folder.write("agent.yaml", "name: a\ndocker: {pids_limit: 10}\n")
    folder.fleet("""\
        defaults: {docker: {enabled: true, memory: 8g}, instances: {max_concurrent: 4}}
        agents: [{path: agent.yaml}]
        """)

    agent = settings(folder)

    assert agent.docker is not None
    assert agent.docker.enabled is True
    assert agent.docker.memory == 8 * 1024**3
    assert agent.docker.pids_limit == 10
    assert agent.instances is not None
    assert agent.instances.max_concurrent == 4


def test_each_layer_wins_over_the_one_below(folder: Folder) -> None:
    folder.write(
        "agent.yaml", "name: a\nmodel: agent\ntools: [Read]\nsession: {mode: persistent}\n"
    )
    folder.fleet("""\
        defaults:
          model: default
          description: default
          tools: [Bash, Edit]
          session: {timeout: 1h}
        agents:
          - path: agent.yaml
            overrides: {model: override, session: {idle_timeout: 5m}}
        """)

    agent = settings(folder)

    assert agent.model == "override"
    assert agent.description == "default"
    assert agent.tools == ("Read",)
    assert agent.session.mode == "persistent"
    assert agent.session.timeout is not None
    assert agent.session.idle_timeout is not None


def test_an_empty_value_takes_a_default_back(folder: Folder) -> None:
    folder.fleet("""\
        defaults: {model: x, docker: {enabled: true}}
        agents:
          - name: a
            model:
            docker: ~
        """)

    agent = settings(folder)

    assert agent.model is None
    assert agent.docker is None


def test_schedules_in_the_list_form_merge_by_name(folder: Folder) -> None:
    folder.write(
        "agent.yaml",
        "name: a\nschedules:\n  - name: nightly\n    trigger: {type: cron, expression: '@daily'}\n",
    )
    folder.fleet("""\
        agents:
          - path: agent.yaml
            overrides: {schedules: {nightly: {prompt: tidy up}}}
        """)

    schedules = settings(folder).schedules

    assert schedules is not None
    assert schedules["nightly"].prompt == "tidy up"
    assert schedules["nightly"].trigger is not None
    assert schedules["nightly"].trigger.expression == "0 0 * * *"


def test_overrides_are_checked_like_everything_else(folder: Folder) -> None:
    folder.write("agent.yaml", "name: a\n")
    folder.fleet("""\
        agents:
          - path: agent.yaml
            overrides:
              max_turns: "12"
              no_such_key: 1
        """)

    assert folder.errors() == [
        "nightherd.yaml:4:18 expected a whole number, got the text '12'",
        "nightherd.yaml:5:7 unknown key 'no_such_key'",
    ]


def test_defaults_are_checked_once_also_without_agents(folder: Folder) -> None:
    wrong = "defaults: {modle: x, session: {mod: x}}\n"

    alone = folder.fleet(wrong).errors()
    many = folder.fleet(wrong + "agents: [{name: a}, {name: b}, {name: c}]\n").errors()

    assert (
        alone
        == many
        == [
            "nightherd.yaml:1:12 unknown key 'modle'",
            "nightherd.yaml:1:32 unknown key 'mod'",
        ]
    )


def test_what_defaults_leave_out_the_agent_may_add(folder: Folder) -> None:
    folder.fleet("""\
        defaults: {mcp_servers: {x: {env: {A: b}}}}
        agents:
          - {name: a, mcp_servers: {x: {command: run}}}
        """)

    servers = settings(folder).mcp_servers

    assert servers is not None
    assert servers["x"].env == {"A": "b"}


def test_a_name_cannot_be_a_default(folder: Folder) -> None:
    folder.fleet("defaults: {name: x}\nagents: [{name: a}]\n")

    assert folder.errors() == ["nightherd.yaml:1:12 unknown key 'name'"]


def test_older_names_of_keys_are_understood_in_every_layer(folder: Folder) -> None:
    (folder.root / "here").mkdir()
    (folder.root / "there").mkdir()
    folder.write("agents/agent.yaml", "name: a\nworkspace: ../here\n")
    folder.fleet("""\
        defaults: {working_directory: there, docker: {base_image: old}}
        agents:
          - path: agents/agent.yaml
            overrides: {schedules: {x: {type: cron, expression: "0 9 * * *", prompt: go}}}
          - {name: b, docker: {image: new}}
        """)

    loaded = folder.load()
    a, b = settings(folder), settings(folder, "b")

    assert loaded.fleet.agents["a"].working_directory == str(folder.root / "here")
    assert loaded.fleet.agents["b"].working_directory == str(folder.root / "there")
    assert a.docker is not None
    assert a.docker.image == "old"
    assert a.schedules is not None
    assert a.schedules["x"].cron == "0 9 * * *"
    assert b.docker is not None
    assert b.docker.image == "new"


def test_a_key_under_both_its_names_is_an_error(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, working_directory: ., workspace: .}]\n")

    assert folder.errors() == [
        "nightherd.yaml:1:42 'workspace' is an older name of 'working_directory'; give one of them"
    ]


def test_paths_count_from_the_file_they_are_written_in(folder: Folder) -> None:
    for name in ("shared", "agents/own", "sub/shared"):
        (folder.root / name).mkdir(parents=True)
    folder.write("agents/a.yaml", "name: a\nworking_directory: own\nadd_dirs: [../shared]\n")
    folder.write("agents/b.yaml", "name: b\n")
    folder.write("agents/c.yaml", "name: c\n")
    folder.fleet("""\
        agents:
          - path: agents/a.yaml
          - path: agents/b.yaml
            overrides: {working_directory: {root: shared}}
          - path: agents/c.yaml
          - name: d
        """)

    agents = folder.load().fleet.agents
    a = settings(folder)

    assert agents["a"].working_directory == str(folder.root / "agents/own")
    assert a.add_dirs == (str(folder.root / "shared"),)
    assert agents["b"].working_directory == str(folder.root / "shared")
    assert agents["c"].working_directory == str(folder.root / "agents")
    assert agents["d"].working_directory == str(folder.root)


def test_a_working_directory_that_is_named_must_exist(folder: Folder) -> None:
    folder.write("file.txt", "x")
    folder.fleet("""\
        agents:
          - {name: a, working_directory: nowhere}
          - {name: b, workspace: {root: file.txt}}
        """)

    assert folder.errors() == [
        f"nightherd.yaml:2:34 the directory '{folder.root}/nowhere' does not exist",
        f"nightherd.yaml:3:33 the directory '{folder.root}/file.txt' does not exist",
    ]


def test_an_agent_file_may_not_open_its_container_but_the_fleet_file_may(folder: Folder) -> None:
    folder.write("agent.yaml", "name: a\ndocker: {enabled: true, network: host, base_image: x}\n")
    folder.fleet("""\
        defaults: {docker: {network: none}}
        agents:
          - path: agent.yaml
            overrides: {docker: {user: "1000:1000"}}
          - {name: b, docker: {volumes: ["/a:/b:ro"], host_config: {Privileged: false}}}
        """)

    assert folder.errors() == [
        "agent.yaml:2:25 'network' may only be set in the fleet file",
        "agent.yaml:2:40 'base_image' may only be set in the fleet file",
    ]


def test_agents_may_be_given_by_name(folder: Folder) -> None:
    folder.write("agents/c.yaml", "name: c\n")
    folder.fleet("""\
        agents:
          a: {description: first}
          b: {name: b}
          c: {path: agents/c.yaml, overrides: {description: third}}
        """)

    agents = folder.load().fleet.agents

    assert list(agents) == ["a", "b", "c"]
    assert [agents[name].description for name in agents] == ["first", None, "third"]


def test_an_agent_under_another_name_than_its_own_is_an_error(folder: Folder) -> None:
    folder.fleet("agents: {a: {name: b}}\n")

    assert folder.errors() == ["nightherd.yaml:1:10 this agent calls itself the text 'b', not 'a'"]


def test_a_script_may_stand_in_a_file_of_its_own(folder: Folder) -> None:
    folder.write("scripts/hello.yaml", "- say: hello ${prompt} from ${WHO}\n- sleep: 5ms\n")
    folder.write("agents/a.yaml", "name: a\nruntime: scripted\nscript: ../scripts/hello.yaml\n")
    folder.fleet("agents: [{path: agents/a.yaml}]\n")

    script = folder.agent("a", WHO="me").script

    assert script is not None
    assert script.turn_count == 2
    assert "hello ${prompt} from me" in repr(script)


def test_a_mistake_in_a_script_file_is_located_there(folder: Folder) -> None:
    folder.write("script.yaml", "- say: x\n- sya: y\n")
    folder.fleet("agents: [{name: a, runtime: scripted, script: script.yaml}]\n")

    assert folder.errors() == ["script.yaml:2:3 unknown key 'sya'"]


@pytest.mark.parametrize("count", [1, 3])
def test_the_same_agent_file_may_be_used_under_several_names(folder: Folder, count: int) -> None:
    folder.write("agent.yaml", "name: a\nmodel: x\n")
    entries = "".join(
        f"  - {{path: agent.yaml, overrides: {{name: copy-{number}}}}}\n" for number in range(count)
    )
    folder.fleet("agents:\n" + entries)

    assert list(folder.load().fleet.agents) == [f"copy-{number}" for number in range(count)]
