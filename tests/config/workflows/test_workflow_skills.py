"""`skill` of a phase: where its text is found, what of it counts, and what is said when it is missing."""

from __future__ import annotations

import os

import pytest

from config.folder import Folder
from nightherd.model.workflows.definition import AgentAction

FLEET = "agents: [{name: coder, runtime: scripted, script: [], working_directory: app}]\n"
USES = "phases:\n  - {name: a, agent: coder, skill: tidy}\n"
PLACES = (
    "skills/tidy/SKILL.md",
    ".claude/skills/tidy/SKILL.md",
    "app/.claude/skills/tidy/SKILL.md",
)


@pytest.fixture
def project(folder: Folder) -> Folder:
    (folder.root / "app").mkdir()
    folder.write("workflows/w.yaml", USES)
    return folder.fleet(FLEET)


def skill_text(folder: Folder) -> str:
    action = folder.load().fleet.workflows["w"].phases[0].action
    assert isinstance(action, AgentAction)
    assert action.skill == "tidy"
    return action.skill_text


@pytest.mark.parametrize("place", PLACES)
def test_a_skill_is_read_without_its_front_matter(project: Folder, place: str) -> None:
    project.write(place, "---\nname: tidy\n---\n\n# Tidy\n\nUse ${nothing} --- of it.\n\n")

    assert skill_text(project) == "# Tidy\n\nUse ${nothing} --- of it."


def test_the_first_place_that_has_the_skill_counts(project: Folder) -> None:
    for place in PLACES:
        project.write(place, f"from {place}\n")

    assert skill_text(project) == "from skills/tidy/SKILL.md"


def test_every_place_that_was_looked_at_is_a_file_of_the_fleet(project: Folder) -> None:
    project.write(PLACES[1], "Tidy up.\n")

    files = [os.path.relpath(file, project.root) for file in project.load().fleet.files]

    assert files == ["nightherd.yaml", "workflows/w.yaml", *PLACES[:2]]


def test_a_missing_skill_is_located_and_says_where_it_was_looked_for(project: Folder) -> None:
    (problem,) = project.found()

    assert project.line(problem) == "workflows/w.yaml:2:36 there is no skill 'tidy'"
    assert problem.hint == "looked for " + ", ".join(str(project.root / one) for one in PLACES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("---\nname: tidy\n", "has front matter without a last '---'"),
        ("---\nname: tidy\n---\n \n", "has no text"),
        ("", "has no text"),
    ],
)
def test_a_skill_without_a_text_is_an_error(project: Folder, content: str, message: str) -> None:
    path = project.write(PLACES[0], content)

    assert project.errors() == [f"workflows/w.yaml:2:36 the skill file '{path}' {message}"]


def test_a_skill_that_cannot_be_read_is_an_error(project: Folder) -> None:
    (project.root / PLACES[0]).mkdir(parents=True)

    (error,) = project.errors()

    assert error.startswith("workflows/w.yaml:2:36 the skill file")
    assert error.endswith("cannot be read: it is a directory, not a file")


def test_a_skill_is_a_name_and_no_path(project: Folder) -> None:
    project.write("workflows/w.yaml", "phases:\n  - {name: a, agent: coder, skill: ../tidy}\n")

    (error,) = project.errors()

    assert error.startswith("workflows/w.yaml:2:36 '../tidy' is not a name")


def test_a_skill_of_an_unknown_agent_is_not_reported_too(project: Folder) -> None:
    project.write("workflows/w.yaml", "phases:\n  - {name: a, agent: codr, skill: tidy}\n")

    assert project.errors() == ["workflows/w.yaml:2:22 the fleet has no agent 'codr'"]


def test_a_sub_fleet_has_skills_of_its_own(folder: Folder) -> None:
    folder.write("sub/nightherd.yaml", "agents: [{name: coder, runtime: scripted, script: []}]\n")
    folder.write("sub/workflows/w.yaml", USES)
    folder.write("sub/skills/tidy/SKILL.md", "inner")
    folder.write("skills/tidy/SKILL.md", "outer")
    folder.fleet("fleets: [{path: sub}]\n")

    action = folder.load().fleet.workflows["sub.w"].phases[0].action

    assert isinstance(action, AgentAction)
    assert action.skill_text == "inner"


def test_a_fix_of_a_review_takes_its_prompt_from_a_file(project: Folder) -> None:
    project.write(
        "workflows/w.yaml",
        "phases:\n- name: polish\n  review: {agent: coder, prompt: Look,"
        " fix: {agent: coder, prompt_file: fix.md}}\n",
    )
    project.write("workflows/fix.md", "Fix ${phases.review.output.comments}")

    fix = project.load().fleet.workflows["w"].phases[0].block[1].action

    assert isinstance(fix, AgentAction)
    assert fix.prompt == "Fix ${phases.review.output.comments}"
