"""More directories that an agent in a container is given: what must not be seen or written is not, under their names either."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from components import Components
from docker_engine import DockerEngine
from runtimes.container.container_herd import SECRET, USER, ContainerHerd, bash

LOOK = (
    # By names in pieces: a command that names these files is not even started.
    "e=.en; n=nightherd; ls -A {0}/.$n {0}/.$n/jobs; echo .; cat {0}/$e'v'; echo .;"
    " echo x >> {0}/$n.yaml; touch {0}/free"
)


def given_to_user(root: Path) -> None:
    """Let the container's user write what is below: only its mounts are in the way then."""
    subprocess.run(["chown", "-R", f"{USER}:{USER}", root], check=True)


@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_what_is_of_the_fleet_is_not_seen_in_a_volume(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path, mode: str
) -> None:
    agent = {"name": "player", "script": [bash(LOOK.format("/project")), {"say": "done"}]}
    volumes = [f".:/project:{mode}"]
    herd = ContainerHerd(tmp_path, docker_engine, container_image, [agent], volumes=volumes)
    (tmp_path / ".env").write_text(f"SECRET={SECRET}\n")
    (tmp_path / ".nightherd").mkdir()
    given_to_user(tmp_path)
    done = herd.nightherd("run", "player", "-p", "go")
    state, dotenv, last = herd.results()[0].split(".\n", 2)

    assert done.returncode == 0, done.stderr
    assert "jobs: No such file" in state.replace("'", "")
    assert "db" not in state
    assert dotenv.strip() == ""
    assert last.count("Read-only file system") == (1 if mode == "rw" else 2)
    assert (tmp_path / "free").exists() is (mode == "rw")
    assert not (tmp_path / "nightherd.yaml").read_text().endswith("x\n")


def test_git_directory_of_a_further_directory_cannot_be_written(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    command = "cd ../other; touch free; touch .git/hooks/pre-commit .git/config; git status -s"
    agent = {
        "name": "player",
        "add_dirs": ["other"],
        "script": [bash(command), {"say": "done"}],
    }
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", other], check=True)
    herd = ContainerHerd(tmp_path, docker_engine, container_image, [agent])
    given_to_user(tmp_path)
    herd.nightherd("run", "player", "-p", "go")
    (result,) = herd.results()

    assert result.count("Read-only file system") == 2
    assert "?? free" in result
    assert not (other / ".git" / "hooks" / "pre-commit").exists()


@pytest.mark.parametrize(
    "place",
    [
        {"add_dirs": [".nightherd"]},
        {"add_dirs": [".nightherd/containers/sessions"]},
        {"working_directory": ".nightherd/jobs"},
    ],
    ids=["add_dirs", "below", "working_directory"],
)
def test_directory_of_the_state_is_not_mounted(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path, place: dict[str, object]
) -> None:
    agent = {"name": "player", "script": [bash("ls -R"), {"say": "done"}], **place}
    herd = ContainerHerd(tmp_path, docker_engine, container_image, [agent])
    (tmp_path / ".nightherd" / "containers" / "sessions").mkdir(parents=True)
    (tmp_path / ".nightherd" / "jobs").mkdir()
    os.chown(tmp_path / ".nightherd", USER, USER)
    done = herd.nightherd("run", "player", "-p", "go")

    assert done.returncode != 0
    assert "is part of the state directory" in done.stdout
    assert herd.results() == []
    assert herd.containers() == []


def test_full_disk_of_the_working_directory_ends_the_command_alone(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path, components: Components
) -> None:
    fill, after = bash("head -c 1G /dev/zero > full"), bash("rm full; echo went on")
    agent = {"name": "player", "script": [fill, after, {"say": "done"}]}
    herd = ContainerHerd(tmp_path, docker_engine, container_image, [agent])
    # Where the engine is, because it does not see what is mounted elsewhere since it started.
    there = [components.program("nsenter"), "--mount", "--target", str(docker_engine.pid)]
    disk = ["mount", "-t", "tmpfs", "-o", f"size=4m,uid={USER}", "tmpfs", str(herd.work)]
    subprocess.run([*there, *disk], check=True)
    try:
        done = herd.nightherd("run", "player", "-p", "go", "--quiet")
    finally:
        subprocess.run([*there, "umount", herd.work], check=True)
    filled, last = herd.results()

    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
    assert "No space left on device" in filled
    assert last == "went on\n"
    assert herd.containers() == []
