"""Every command block in README and the guide is run, top to bottom, and prints what the page shows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components import Components
from docker_engine import DockerEngine
from document_reader import REPOSITORY, Reader
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import make_stage

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs/guide").glob("*.md"))]


WITH_CLAUDE = "claude.md"
"""The page that shows a real agent: it is followed with the real `claude`, whose model says this."""
SAID = (
    Say(text="I will look at what is there.", calls=(Call("Bash", {"command": "ls *.yaml"}),)),
    Say(text="There is a fleet file, and nothing else yet."),
)


WITH_ENGINE = "containers.md"
"""The page whose agents run in containers, of the image that a user has built."""


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != WITH_ENGINE],
    ids=lambda page: str(page.relative_to(REPOSITORY)),
)
def test_page_does_what_it_says(page: Path, components: Components, tmp_path: Path) -> None:
    components.program("git")
    reader = Reader(tmp_path)
    if page.name != WITH_CLAUDE:
        reader.follow(page)
        return
    (tmp_path / "claude").mkdir()
    stage = make_stage(tmp_path / "claude", components.claude())
    with MessagesApi(*SAID) as api:
        theirs = stage.environment(api)
        path = f"{stage.programs}:{reader.environment['PATH']}"
        reader.environment = {**reader.environment, **theirs, "PATH": path}
        reader.follow(page)

    assert len(api.asked) == len(SAID)


def test_page_about_containers_does_what_it_says(
    docker_engine: DockerEngine, container_image: str, components: Components, tmp_path: Path
) -> None:
    components.program("git")
    reader = Reader(tmp_path)
    os.chown(reader.directory, 1000, 1000)  # as that of a user; the tests are root
    docker = f"unix://{docker_engine.socket_path}"
    reader.environment = {**reader.environment, "DOCKER_HOST": docker}
    tag = f"/images/{container_image}/tag?repo=nightherd/runtime&tag=latest"
    assert docker_engine.request("POST", tag)[0] == 201

    reader.follow(REPOSITORY / "docs/guide" / WITH_ENGINE)
