"""Files that a container shares with this machine: known by one name, and shown without leading anybody out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from nightherd.files.regular import open_regular
from nightherd.model.permissions.permission import Denied, decide
from nightherd.model.permissions.protected import ProtectedPaths
from nightherd.runtimes.protection import permissions_for
from nightherd.runtimes.real_path import real_path_at
from nightherd.runtimes.review import preview_of
from runtimes.stage import Stage


class Mounted(msgspec.Struct, frozen=True, kw_only=True):
    """A container that has directories of this machine, by their paths there."""

    mounts: dict[str, str]
    python: str = "python3"
    programs: str = "/nowhere"
    is_container: bool = True

    def host_path(self, path: str) -> str | None:
        for target, source in self.mounts.items():
            if path == target or path.startswith(f"{target}/"):
                return source + path.removeprefix(target)
        return None


@pytest.fixture
def place(stage: Stage) -> Mounted:
    work = str(stage.directory.resolve())
    return Mounted(mounts={work: work, "/workspace": work})


def preview(stage: Stage, place: Mounted, name: str) -> str | None:
    return preview_of(
        "Write", {"file_path": name, "content": "new\n"}, str(stage.directory.resolve()), place
    )


@pytest.mark.parametrize("name", ["notes", "/workspace/notes", "link", "/workspace/sub/up"])
def test_a_preview_shows_a_file_that_is_shared(stage: Stage, place: Mounted, name: str) -> None:
    (stage.directory / "notes").write_text("old\n")
    (stage.directory / "link").symlink_to("/workspace/notes")
    (stage.directory / "sub").mkdir()
    (stage.directory / "sub/up").symlink_to("../notes")

    shown = preview(stage, place, name)

    assert shown == "--- notes\n+++ notes\n@@ -1 +1 @@\n-old\n+new\n"


def test_a_preview_of_a_new_file_is_all_of_it(stage: Stage, place: Mounted) -> None:
    assert preview(stage, place, "sub/new") == "--- sub/new\n+++ sub/new\n@@ -0,0 +1 @@\n+new\n"


@pytest.mark.parametrize("name", ["link", "there/outside", "{outside}", "../outside", "/etc/hosts"])
def test_a_preview_shows_no_file_that_only_this_machine_has(
    stage: Stage, place: Mounted, name: str
) -> None:
    outside = stage.directory.parent.resolve() / "outside"
    outside.write_text("secret\n")
    (stage.directory / "link").symlink_to(outside)
    (stage.directory / "there").symlink_to(outside.parent)

    assert preview(stage, place, name.format(outside=outside)) is None


def test_no_link_is_followed_that_is_put_into_a_path_later(tmp_path: Path) -> None:
    real = tmp_path.resolve()
    (real / "outside").mkdir()
    (real / "outside/file").write_text("secret")
    (real / "work").mkdir()
    (real / "work/sub").symlink_to(real / "outside")
    (real / "work/file").symlink_to(real / "outside/file")

    for path in ("work/sub/file", "work/file", "work/sub"):
        with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
            open_regular(real / path, follows_links=False)
    with open_regular(real / "outside/file", follows_links=False) as file:
        assert file.read() == b"secret"


@pytest.mark.parametrize(
    "name",
    [
        "fleet.yaml",
        "/workspace/fleet.yaml",
        "/tmp/../workspace/./fleet.yaml",
        "link",
        "/workspace/link",
        "there/fleet.yaml",
        "secrets/key",
        "/workspace/secrets/key",
    ],
)
def test_a_second_name_of_a_file_evades_no_rule(stage: Stage, place: Mounted, name: str) -> None:
    work = stage.directory.resolve()
    (work / "fleet.yaml").write_text("agents: []\n")
    (work / "link").symlink_to("/workspace/fleet.yaml")
    (work / "there").symlink_to("/workspace")
    request = stage.request(None)
    agent = replace(
        request.agent, working_directory=str(work), denied_tools=("Edit(./secrets/**)",)
    )
    protected = ProtectedPaths(files=(str(work / "fleet.yaml"),))
    permissions = permissions_for(replace(request, agent=agent, protected=protected), place)

    decision = decide(permissions, "Write", {"file_path": name, "content": ""})

    assert isinstance(decision, Denied)
    assert not isinstance(decide(permissions, "Write", {"file_path": "ok", "content": ""}), Denied)


def test_links_are_followed_as_they_are_inside(stage: Stage, place: Mounted) -> None:
    """Not as on this machine, where the same names may lead elsewhere."""
    work = stage.directory.resolve()
    (work / "sub").mkdir()
    (work / "circle").symlink_to("circle")
    (stage.directory.parent / "elsewhere").symlink_to(work)
    real_path = real_path_at(place)

    assert real_path("/workspace/sub/../x") == str(work / "x")
    assert real_path("/workspace/../etc/hosts") == "/etc/hosts"
    assert real_path(f"{work.parent}/elsewhere/x") == f"{work.parent}/elsewhere/x"
    assert real_path("/workspace/circle/x").startswith(str(work))
    assert real_path("/") == "/"


def test_a_preview_of_a_directory_leaves_nothing_open(stage: Stage, place: Mounted) -> None:
    before = len([*Path("/dev/fd").iterdir()])

    assert preview(stage, place, ".") is None
    assert preview(stage, place, "/workspace") is None
    assert preview_of("Write", {"file_path": ".", "content": ""}, "/") is None

    assert len([*Path("/dev/fd").iterdir()]) == before
