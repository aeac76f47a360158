"""Fleets that take in fleets: names, defaults, diamonds, cycles, collisions."""

from __future__ import annotations

from config.folder import Folder
from nightherd.config.schema.agent import Agent as AgentSchema


def test_agents_of_sub_fleets_have_qualified_names(folder: Folder) -> None:
    folder.write("one/nightherd.yaml", "agents: [{name: x}]\nfleets: [{path: ../three}]\n")
    folder.write("two/nightherd.yml", "fleet: {name: second}\nagents: [{name: x}]\n")
    folder.write("three/nightherd.yaml", "fleet: {name: third}\nagents: [{name: x}]\n")
    folder.fleet("""\
        agents: [{name: x}]
        fleets:
          - path: one
          - path: two/nightherd.yml
          - {path: three, name: own}
        """)

    assert list(folder.load().fleet.agents) == ["x", "one.x", "one.third.x", "second.x", "own.x"]


def test_defaults_reach_down_and_the_inner_fleet_wins(folder: Folder) -> None:
    folder.write(
        "sub/nightherd.yaml",
        "defaults: {model: inner, docker: {memory: 1g}}\nagents: [{name: x, description: own}]\n",
    )
    folder.fleet("""\
        defaults: {model: outer, description: outer, docker: {enabled: true, memory: 4g}}
        fleets: [{path: sub, overrides: {defaults: {permission_mode: plan}}}]
        """)

    agent = folder.load().agents["sub.x"].model
    assert isinstance(agent, AgentSchema)

    assert (agent.model, agent.description, agent.permission_mode) == ("inner", "own", "plan")
    assert agent.docker is not None
    assert (agent.docker.enabled, agent.docker.memory) == (True, 1024**3)


def test_overrides_of_a_fleet_win_over_its_file(folder: Folder) -> None:
    folder.write(
        "sub/nightherd.yaml", "fleet: {name: old}\ndefaults: {model: old}\nagents: [{name: x}]\n"
    )
    folder.fleet("fleets: [{path: sub, overrides: {fleet: {name: new}, defaults: {model: new}}}]\n")

    agent = folder.load().agents["new.x"].model

    assert isinstance(agent, AgentSchema)
    assert agent.model == "new"


def test_a_diamond_is_not_a_cycle(folder: Folder) -> None:
    folder.write("left/nightherd.yaml", "fleets: [{path: ../shared}]\n")
    folder.write("right/nightherd.yaml", "fleets: [{path: ../shared}]\n")
    folder.write("shared/nightherd.yaml", "agents: [{name: x}]\n")
    folder.fleet("fleets: [{path: left}, {path: right}]\n")

    assert list(folder.load().fleet.agents) == ["left.shared.x", "right.shared.x"]


def test_a_cycle_is_an_error_that_names_the_chain(folder: Folder) -> None:
    folder.write("a/one.yaml", "fleets: [{path: ../b/two.yaml}]\n")
    folder.write("b/two.yaml", "fleets: [{path: ../a/one.yaml}]\n")
    folder.fleet("fleets: [{path: a/one.yaml}]\n")

    assert folder.errors() == [
        "b/two.yaml:1:17 this fleet takes itself in: nightherd.yaml -> one.yaml -> two.yaml -> one.yaml"
    ]


def test_a_cycle_through_a_symbolic_link_is_found(folder: Folder) -> None:
    folder.fleet("fleets: [{path: again/nightherd.yaml}]\n")
    (folder.root / "again").symlink_to(folder.root, target_is_directory=True)

    errors = folder.errors()

    assert len(errors) == 1
    assert "takes itself in" in errors[0]


def test_two_fleets_of_one_name_are_an_error_that_names_both(folder: Folder) -> None:
    folder.write("a/sub/nightherd.yaml", "agents: [{name: x}]\n")
    folder.write("b/sub/nightherd.yaml", "agents: [{name: x}]\n")
    folder.fleet("fleets:\n  - path: a/sub\n  - path: b/sub\n")

    found = folder.found()

    assert [folder.line(one) for one in found] == [
        "nightherd.yaml:3:11 a second fleet called 'sub'"
    ]
    assert "nightherd.yaml:2" in (found[0].hint or "")


def test_two_agents_of_one_name_are_an_error_that_names_both(folder: Folder) -> None:
    folder.write("agent.yaml", "name: a\n")
    folder.fleet("agents:\n  - name: a\n  - path: agent.yaml\n")

    found = folder.found()

    assert [folder.line(one) for one in found] == ["nightherd.yaml:3:11 a second agent called 'a'"]
    assert "nightherd.yaml:2:5" in (found[0].hint or "")


def test_a_directory_that_cannot_be_a_name_asks_for_one(folder: Folder) -> None:
    folder.write("sub.dir/nightherd.yaml", "agents: [{name: x}]\n")
    folder.fleet("fleets: [{path: sub.dir}]\n")

    found = folder.found()

    assert folder.line(found[0]).startswith("nightherd.yaml:1:17 'sub.dir' is not a name")
    assert found[0].hint == "give it a 'name' here"


def test_problems_of_a_sub_fleet_are_located_in_its_file(folder: Folder) -> None:
    folder.write("sub/nightherd.yaml", "webb: {}\nagents: [{name: x, modle: y}]\n")
    folder.fleet("fleets: [{path: sub}, {path: nowhere}, {pth: x}, 5]\n")

    assert folder.errors() == [
        "nightherd.yaml:1:30 the file 'nowhere' cannot be read: there is no such file",
        "nightherd.yaml:1:41 unknown key 'pth'",
        "nightherd.yaml:1:50 expected a fleet, a mapping with 'path', got the number 5",
        "sub/nightherd.yaml:1:1 unknown key 'webb'",
        "sub/nightherd.yaml:2:20 unknown key 'modle'",
    ]


def test_fleets_that_multiply_are_bounded(folder: Folder) -> None:
    for number in range(12):
        entries = ", ".join(f"{{path: ../f{number + 1}, name: n{twin}}}" for twin in range(4))
        folder.write(f"f{number}/nightherd.yaml", f"fleets: [{entries}]\n")
    folder.write("f12/nightherd.yaml", "agents: [{name: x}]\n")
    folder.fleet("fleets: [{path: f0}]\n")

    errors = folder.errors()

    assert errors
    assert all("more than 1,000 fleets" in one for one in errors)
