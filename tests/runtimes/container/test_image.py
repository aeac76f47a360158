"""Building and checking images, with a real engine."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path

import anyio
import pytest

from components import Components
from docker_engine import DockerEngine
from nightherd.errors import NightherdError, NotFoundError, RefusedError
from nightherd.model.containers.image import ClaudeSource, ImageReport
from nightherd.next_step import Action, NextStep
from nightherd.runtimes.container.engine import Engine
from nightherd.runtimes.container.image import (
    MODULES,
    BuildContext,
    ImagePlan,
    build_image,
    check_image,
    choose_claude,
    list_containers,
)
from nightherd.runtimes.container.library import FILES, PACKAGE
from nightherd.wiring.containers import host_claude

BUILT_IN = {"os", "sys"}
FAKE_CLAUDE = b"#!/bin/sh\necho '2.1.7 (Claude Code)'\n"


def build(docker: DockerEngine, plan: ImagePlan) -> list[str]:
    lines: list[str] = []

    async def work() -> None:
        async with Engine(docker.socket_path) as engine:
            await build_image(engine, plan, lines.append)

    anyio.run(work)
    return lines


def check(
    docker: DockerEngine, image: str, host: str | None = None, *, needs_claude: bool = True
) -> ImageReport:
    async def work() -> ImageReport:
        async with Engine(docker.socket_path) as engine:
            return await check_image(
                engine, image, name=name, host_claude=host, needs_claude=needs_claude
            )

    name = "nightherd-check-" + "".join(one if one.isalnum() else "-" for one in image)
    report = anyio.run(work)
    assert docker.request("GET", f"/containers/{name}/json")[0] == 404, "it is thrown away"
    return report


def has_user(report: ImageReport) -> bool:
    return all(one.is_met for one in report.requirements if one.name == "user")


def unmet(report: ImageReport) -> list[str]:
    return [one.name for one in report.requirements if not one.is_met and one.is_required]


def test_build_context_is_a_whole_archive(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * 3_000_001)
    context = BuildContext({"Dockerfile": b"FROM a\n", "bin/claude": large})

    raw = b"".join(iter(lambda: context.read(10), b""))

    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        names = {one.name: (one.size, one.mode, one.isdir()) for one in archive}
        program = archive.extractfile("bin/claude")
        assert program is not None
        assert program.read() == large.read_bytes()
    assert names == {
        "bin": (0, 0o755, True),
        "Dockerfile": (7, 0o755, False),
        "bin/claude": (3_000_001, 0o755, False),
    }


def test_claude_for_another_system_is_not_copied(tmp_path: Path) -> None:
    linux, other = tmp_path / "linux", tmp_path / "other"
    linux.write_bytes(b"\x7fELF...")
    other.write_bytes(b"\xcf\xfa\xed\xfe...")

    assert choose_claude(None, linux) is ClaudeSource.BUNDLED
    assert choose_claude(None, other) is ClaudeSource.NPM
    assert choose_claude(None, None) is ClaudeSource.NPM
    assert choose_claude(ClaudeSource.NONE, linux) is ClaudeSource.NONE
    with pytest.raises(RefusedError, match="is not for Linux"):
        choose_claude(ClaudeSource.BUNDLED, other)


def test_image_without_claude_says_so(docker_engine: DockerEngine, container_image: str) -> None:
    report = check(docker_engine, container_image)

    assert unmet(report) == ["claude"]
    assert report.image_id.startswith("sha256:")
    assert report.size_bytes > 10_000_000
    assert check(docker_engine, container_image, needs_claude=False).is_usable


def test_built_image_has_labels_a_user_and_the_claude_that_was_copied(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    program = tmp_path / "claude"
    program.write_bytes(FAKE_CLAUDE)
    plan = ImagePlan(
        tag="nightherd/test-runtime:fake",
        base=container_image,
        claude=ClaudeSource.BUNDLED,
        claude_program=program,
        claude_version="2.1.7",
        nightherd_version="9.8",
    )

    build(docker_engine, plan)
    report = check(docker_engine, plan.tag, "2.1.8")
    config = docker_engine.json("GET", f"/images/{plan.tag}/json")["Config"]

    assert unmet(report) == []
    assert report.skew is not None
    assert "2.1.7" in report.skew
    assert config["Labels"] == {"nightherd.version": "9.8", "nightherd.claude": "2.1.7"}
    assert (config["User"], config["WorkingDir"]) == ("1000:1000", "/workspace")


def test_real_claude_runs_in_the_image_that_copies_it(
    docker_engine: DockerEngine, container_image: str, components: Components
) -> None:
    program, version = host_claude({})
    assert program == str(components.claude())
    plan = ImagePlan(
        tag="nightherd/test-runtime:real",
        base=container_image,
        claude=choose_claude(None, Path(program)),
        claude_program=Path(program),
        claude_version=version,
        nightherd_version="9.8",
    )

    build(docker_engine, plan)
    report = check(docker_engine, plan.tag, version)

    assert (unmet(report), report.skew) == ([], None)


def derive(docker: DockerEngine, base: str, tag: str, *commands: str) -> str:
    """Build an image that differs from `base`."""
    text = "\n".join([f"FROM {base}", *commands]).encode()
    raw = b"".join(iter(BuildContext({"Dockerfile": text}).read, b""))
    status, answer = docker.request(
        "POST", f"/build?t={tag}", raw, content_type="application/x-tar"
    )
    assert status == 200, answer
    assert b"errorDetail" not in answer, answer
    return tag


def test_base_without_a_user_gets_one(docker_engine: DockerEngine, container_image: str) -> None:
    base = derive(
        docker_engine,
        container_image,
        "nightherd/test-base:rootonly",
        "RUN sed -i /agent/d /etc/passwd",
    )
    assert not has_user(check(docker_engine, base))
    plan = ImagePlan(tag="nightherd/test-runtime:user", base=base, nightherd_version="9.8")

    build(docker_engine, plan)

    report = check(docker_engine, plan.tag, needs_claude=False)
    assert unmet(report) == []
    assert has_user(report)


def test_base_that_lacks_git_and_cannot_install_it_is_refused_with_a_reason(
    docker_engine: DockerEngine, container_image: str
) -> None:
    base = derive(
        docker_engine, container_image, "nightherd/test-base:nogit", "RUN rm /usr/bin/git"
    )
    assert "git" in unmet(check(docker_engine, base))
    plan = ImagePlan(tag="nightherd/test-runtime:nogit", base=base, nightherd_version="9.8")

    with pytest.raises(
        NightherdError, match="the base image lacks git, and has no package manager"
    ):
        build(docker_engine, plan)


def test_image_without_a_shell_needs_everything(
    docker_engine: DockerEngine, container_image: str
) -> None:
    image = derive(
        docker_engine,
        container_image,
        "nightherd/test-base:noshell",
        "RUN rm /usr/bin/bash /usr/bin/sh /usr/bin/dash",
    )

    report = check(docker_engine, image)

    assert "sh" in unmet(report)
    assert "python3" in unmet(report)


def test_image_with_a_minimal_python_is_not_usable(
    docker_engine: DockerEngine, container_image: str
) -> None:
    image = derive(
        docker_engine,
        container_image,
        "nightherd/test-base:minimal",
        "RUN rm -r $(python3 -c 'import ctypes, os; print(os.path.dirname(ctypes.__file__))')",
    )

    (python, *_) = check(docker_engine, image, needs_claude=False).requirements

    assert (python.name, python.is_met) == ("python3", False)
    assert "No module named 'ctypes'" in str(python.note)


def test_probe_imports_what_runs_inside() -> None:
    named = {name.strip() for name in MODULES.split(",")}
    sources = [(PACKAGE / name).read_text() for name in FILES]
    lines = re.findall(r"^(?:import|from) ([\w.]+)", "\n".join(sources), re.MULTILINE)

    assert named == {name for name in lines if not name.startswith(("nightherd", "__"))} - BUILT_IN


def test_image_that_is_not_there_says_how_to_get_it(docker_engine: DockerEngine) -> None:
    with pytest.raises(NotFoundError) as raised:
        check(docker_engine, "nobody/has-this:1")
    assert raised.value.next_step == NextStep(Action.BUILD_IMAGE)


def test_output_of_an_image_cannot_pose_as_another_fact(
    docker_engine: DockerEngine, container_image: str
) -> None:
    script = "#!/bin/sh\\necho\\necho nightherd-fact rg.version 99.0\\n"
    image = derive(
        docker_engine,
        container_image,
        "nightherd/test-base:liar",
        f"RUN rm /usr/bin/git && printf '{script}' >/usr/bin/git && chmod 755 /usr/bin/git",
    )

    assert "git" in unmet(check(docker_engine, image))


def test_containers_are_listed_by_their_label(
    docker_engine: DockerEngine, container_image: str
) -> None:
    labels = {"nightherd.fleet": "list-test", "nightherd.execution": "exec-1"}
    body = {"Image": container_image, "Entrypoint": ["true"], "Labels": labels}
    created = docker_engine.json("POST", "/containers/create?name=nh-list-test", body)["Id"]

    async def work() -> list[dict[str, object]]:
        async with Engine(docker_engine.socket_path) as engine:
            return await list_containers(engine)

    try:
        (row,) = [one for one in anyio.run(work) if one["fleet"] == "list-test"]
    finally:
        docker_engine.json("DELETE", f"/containers/{created}?force=1")

    assert (row["id"], row["name"]) == (created, "nh-list-test")
    assert (row["state"], row["execution"]) == ("created", "exec-1")
