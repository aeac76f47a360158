"""Apply: the changes of a workspace made to the user's files, merged with what the user changed; all of them or none."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from nightherd.errors import RefusedError, WorkspaceError
from nightherd.model.workspaces.policy import WorkspaceMode
from workspaces.landing.landing_ground import (
    TEXT,
    Ground,
    Meddling,
    commit,
    dump,
    first_line,
    git,
    last_line,
    lay,
    write,
)

BINARY = bytes(range(256)) * 4


def test_files_are_added_changed_and_deleted(ground: Ground) -> None:
    workspace = ground.worked(
        {"a.txt": last_line(TEXT), "new/deep/x.txt": "x\n", "dir/c.txt": None}
    )

    result = ground.apply(workspace)

    assert result.target == str(ground.project)
    assert result.paths == ("a.txt", "dir/c.txt", "new/deep/x.txt")
    assert ground.read("a.txt") == last_line(TEXT)
    assert ground.read("new/deep/x.txt") == "x\n"
    assert not (ground.project / "dir").exists()
    assert ground.leftovers == []


def test_nothing_of_git_is_touched(ground: Ground) -> None:
    write(ground.project, {"b.txt": "stashed\n"})
    ground.git("stash")
    write(ground.project, {"b.txt": first_line(TEXT)})
    ground.git("add", "b.txt")
    workspace = ground.worked({"a.txt": last_line(TEXT), "b.txt": last_line(TEXT)})
    before = dump(ground.project / ".git")

    ground.apply(workspace)

    assert dump(ground.project / ".git") == before
    assert ground.read("b.txt") == first_line(last_line(TEXT))


def test_changes_of_the_user_are_merged_committed_or_not(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT), "b.txt": last_line(TEXT)})
    write(ground.project, {"a.txt": first_line(TEXT)})
    commit(ground.project, "mine")
    write(ground.project, {"b.txt": first_line(TEXT), "mine.txt": "mine\n"})

    result = ground.apply(workspace)

    assert not result.conflicts
    assert ground.read("a.txt") == ground.read("b.txt") == first_line(last_line(TEXT))
    assert ground.read("mine.txt") == "mine\n"


def test_a_second_time_there_is_nothing_to_do(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT), "n.txt": "n\n", "b.txt": None})
    ground.apply(workspace)
    write(ground.project, {"a.txt": first_line(last_line(TEXT))})
    before = dump(ground.project)

    again = ground.apply(workspace)

    assert again.is_nothing
    assert again.paths == ()
    assert dump(ground.project) == before


def test_dry_run_says_what_would_change_and_changes_nothing(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT), "n.txt": "n\n"})
    before = dump(ground.folder, without=("fleet/.nightherd/landing",))

    result = ground.apply(workspace, is_dry_run=True)

    assert result.paths == ("a.txt", "n.txt")
    assert not result.is_nothing
    assert dump(ground.folder, without=("fleet/.nightherd/landing",)) == before
    assert ground.leftovers == []


def content(ground: Ground) -> None:
    write(ground.project, {"a.txt": TEXT.replace("line 20\n", "line XX\n")})


def deleted(ground: Ground) -> None:
    write(ground.project, {"a.txt": None})


def both_added(ground: Ground) -> None:
    write(ground.project, {"new.txt": "of the user\n"})


def directory_for_file(ground: Ground) -> None:
    write(ground.project, {"new.txt/mine.txt": "mine\n"})


def empty_directories_for_file(ground: Ground) -> None:
    (ground.project / "new.txt" / "empty").mkdir(parents=True)


def file_for_directory(ground: Ground) -> None:
    write(ground.project, {"new": "a file\n"})


def link_for_directory(ground: Ground) -> None:
    outside = ground.folder / "outside"
    outside.mkdir()
    (ground.project / "new").symlink_to(outside)


def link_for_tracked_directory(ground: Ground) -> None:
    outside = ground.folder / "outside"
    (ground.project / "dir").rename(outside)
    (ground.project / "dir").symlink_to(outside)


def link_for_file(ground: Ground) -> None:
    (ground.project / "a.txt").unlink()
    (ground.project / "a.txt").symlink_to(ground.folder / "secret")


def changed_deleted_by_agent(ground: Ground) -> None:
    write(ground.project, {"b.txt": first_line(TEXT)})


CONFLICTS = {
    content: "a.txt",
    deleted: "a.txt",
    both_added: "new.txt",
    directory_for_file: "new.txt",
    empty_directories_for_file: "new.txt",
    file_for_directory: "new",
    link_for_directory: "new",
    link_for_tracked_directory: "dir",
    link_for_file: "a.txt",
    changed_deleted_by_agent: "b.txt",
}


@pytest.mark.parametrize("change", CONFLICTS, ids=lambda change: change.__name__)
def test_conflict_is_named_and_nothing_is_changed(ground: Ground, change: object) -> None:
    workspace = ground.worked(
        {
            "a.txt": last_line(TEXT),
            "b.txt": None,
            "new.txt": "of the agent\n",
            "new/x.txt": "x\n",
            "dir/c.txt": last_line(TEXT),
            "other.txt": "would be written\n",
        }
        if change not in (file_for_directory, link_for_directory)
        else {"new/x.txt": "x\n", "other.txt": "would be written\n"}
    )
    assert callable(change)
    change(ground)
    before = dump(ground.folder, without=("fleet/.nightherd/landing",))

    result = ground.apply(workspace)

    assert CONFLICTS[change] in {path[: len(CONFLICTS[change])] for path in result.conflicts}
    assert result.paths == ()
    assert dump(ground.folder, without=("fleet/.nightherd/landing",)) == before
    assert ground.leftovers == []


def test_binary_files_are_replaced_and_conflict_as_a_whole(ground: Ground) -> None:
    write(ground.project, {"image": BINARY, "other": BINARY})
    commit(ground.project, "images")
    workspace = ground.worked({"image": BINARY[::-1], "other": BINARY[1:]})

    assert ground.apply(workspace).paths == ("image", "other")
    assert (ground.project / "image").read_bytes() == BINARY[::-1]

    ground.git("checkout", "-q", ".")
    write(ground.project, {"image": BINARY + b"\0"})
    assert ground.apply(workspace).conflicts == ["image"]
    assert (ground.project / "other").read_bytes() == BINARY


NAMES = (
    "with\nnewline",
    "with\ttab and 'quotes\" \\back",
    "-dash",
    "naïve ☃",
    " ",
    os.fsdecode(b"latin-\xe9"),
    "~home",
    "a\nb/c\nd",
    ":(top)magic",
)


def test_any_name_of_a_file_is_brought_home(ground: Ground) -> None:
    workspace = ground.worked({name: f"{number}\n" for number, name in enumerate(NAMES)})

    result = ground.apply(workspace)

    assert sorted(result.paths) == sorted(NAMES)
    for number, name in enumerate(NAMES):
        assert (ground.project / name).read_text() == f"{number}\n"

    write(ground.project, {NAMES[0]: "mine\n", NAMES[5]: "mine\n"})
    directory = ground.directory(workspace)
    write(directory, {NAMES[0]: "theirs\n", NAMES[5]: "theirs\n"})
    assert set(ground.apply(ground.snapshot(workspace)).conflicts) == {NAMES[0], NAMES[5]}


def test_modes_links_and_types_follow(ground: Ground) -> None:
    write(
        ground.project,
        {
            "run.sh": "#!/bin/sh\n",
            "off.sh": "#!/bin/sh\n",
            "becomes-dir": "x\n",
            "becomes-file/x": "x\n",
        },
    )
    (ground.project / "off.sh").chmod(0o755)
    (ground.project / "link").symlink_to("a.txt")
    (ground.project / "becomes-plain").symlink_to("a.txt")
    commit(ground.project, "kinds")
    workspace = ground.make()
    top = ground.directory(workspace)
    (top / "run.sh").chmod(0o755)
    (top / "off.sh").chmod(0o644)
    for name in ("link", "becomes-plain", "becomes-dir", "becomes-file/x", "b.txt"):
        (top / name).unlink()
    (top / "becomes-file").rmdir()
    (top / "link").symlink_to("/etc/passwd")
    (top / "b.txt").symlink_to("nowhere")
    write(top, {"becomes-plain": "plain\n", "becomes-dir/x": "x\n", "becomes-file": "file\n"})
    (ground.project / "run.sh").chmod(0o640)

    ground.apply(ground.snapshot(workspace))

    assert (ground.project / "run.sh").stat().st_mode & 0o777 == 0o750
    assert (ground.project / "off.sh").stat().st_mode & 0o777 == 0o644
    assert (ground.project / "link").readlink() == Path("/etc/passwd")
    assert (ground.project / "b.txt").readlink() == Path("nowhere")
    assert ground.read("becomes-dir/x") == "x\n"
    assert ground.read("becomes-file") == "file\n"
    assert not (ground.project / "becomes-plain").is_symlink()
    assert ground.read("becomes-plain") == "plain\n"


def test_private_file_stays_private(ground: Ground) -> None:
    (ground.project / "a.txt").chmod(0o600)
    workspace = ground.worked({"a.txt": last_line(TEXT)})

    ground.apply(workspace)

    assert (ground.project / "a.txt").stat().st_mode & 0o777 == 0o600


def test_line_endings_and_encodings_stay_what_the_attributes_say(tmp_path: Path) -> None:
    attributes = (
        "*.bat text eol=crlf\n*.u16 text working-tree-encoding=UTF-16LE\n*.auto text=auto\n"
    )
    ground = lay(tmp_path, {".gitattributes": attributes})
    dos = TEXT.replace("\n", "\r\n")
    wide = TEXT.encode("utf-16-le")
    write(ground.project, {"x.bat": dos, "y.bat": dos, "w.u16": wide, "z.auto": TEXT})
    commit(ground.project, "dos")
    workspace = ground.worked(
        {
            "x.bat": last_line(TEXT).replace("\n", "\r\n"),
            "w.u16": last_line(TEXT).encode("utf-16-le"),
            "z.auto": last_line(TEXT).replace("\n", "\r\n"),
            "new.bat": dos,
        }
    )
    write(ground.project, {"x.bat": first_line(TEXT).replace("\n", "\r\n")})
    write(ground.project, {"w.u16": first_line(TEXT).encode("utf-16-le")})

    result = ground.apply(workspace)

    both = first_line(last_line(TEXT))
    assert result.paths == ("new.bat", "w.u16", "x.bat", "z.auto")
    assert (ground.project / "x.bat").read_bytes() == both.replace("\n", "\r\n").encode()
    assert (ground.project / "w.u16").read_bytes() == both.encode("utf-16-le")
    assert (ground.project / "z.auto").read_bytes() == last_line(TEXT).encode()
    assert (ground.project / "new.bat").read_bytes() == dos.encode()


def test_user_whose_git_writes_dos_line_endings_keeps_them(ground: Ground) -> None:
    home = Path(os.environ["HOME"])
    (home / ".gitconfig").write_text("[core]\n\tautocrlf = true\n")
    write(ground.project, {"a.txt": first_line(TEXT).replace("\n", "\r\n")})
    workspace = ground.worked({"a.txt": last_line(TEXT)})

    ground.apply(workspace)

    assert (ground.project / "a.txt").read_bytes() == first_line(last_line(TEXT)).replace(
        "\n", "\r\n"
    ).encode()


def test_agent_in_a_directory_of_the_repository_changes_files_beside_it(ground: Ground) -> None:
    workspace = ground.make(root=ground.project / "dir")
    write(ground.directory(workspace), {"c.txt": last_line(TEXT), "../a.txt": last_line(TEXT)})

    result = ground.apply(ground.snapshot(workspace))

    assert result.target == str(ground.project)
    assert result.paths == ("a.txt", "dir/c.txt")
    assert ground.read("a.txt") == ground.read("dir/c.txt") == last_line(TEXT)


@pytest.mark.parametrize("mode", [WorkspaceMode.COPY, WorkspaceMode.EMPTY])
def test_copies_and_empty_directories_are_applied_byte_for_byte(
    ground: Ground, mode: WorkspaceMode
) -> None:
    plain = ground.folder / "plain"
    write(plain, {".gitattributes": "* text eol=crlf\n", "a.txt": TEXT, "mixed": "a\r\nb\nc\r\n"})
    made = ground.with_mode(mode).make(root=plain)
    write(ground.directory(made), {"a.txt": last_line(TEXT), "n.txt": "x\r\ny\n"})
    workspace = ground.with_mode(mode).snapshot(made)
    write(plain, {"a.txt": first_line(TEXT)}) if mode is WorkspaceMode.COPY else write(
        plain, {"a.txt": None}
    )

    result = ground.apply(workspace)

    assert result.paths == ("a.txt", "n.txt")
    expected = first_line(last_line(TEXT)) if mode is WorkspaceMode.COPY else last_line(TEXT)
    assert (plain / "a.txt").read_bytes() == expected.encode()
    assert (plain / "n.txt").read_bytes() == b"x\r\ny\n"
    assert (plain / "mixed").read_bytes() == b"a\r\nb\nc\r\n"


def test_state_directory_is_never_written_to(ground: Ground) -> None:
    outer = Ground(ground.folder, ground.project, policy=ground.policy)
    git(ground.folder, "init", "-q", "-b", "main")
    write(
        ground.folder,
        {".gitignore": "/project\n/home\n/fleet/.nightherd-workspaces\n/fleet/.nightherd/\n"},
    )
    commit(ground.folder, "the folder of the fleet itself")
    workspace = outer.make(root=ground.folder)
    write(
        outer.directory(workspace), {".gitignore": "", "fleet/.nightherd/nightherd.db": "hostile\n"}
    )

    with pytest.raises(RefusedError, match="nightherd's own directory"):
        outer.apply(outer.snapshot(workspace))

    assert not (ground.state / "nightherd.db").exists()


def test_file_that_changes_at_the_last_moment_stays_and_nothing_is_applied(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT), "b.txt": last_line(TEXT), "z.txt": "z\n"})
    before = dump(ground.project)
    edit = Meddling("landing.after_file", lambda: write(ground.project, {"b.txt": "mine\n"}))

    with pytest.raises(RefusedError, match=r"'b\.txt' changed just now; nothing was changed"):
        replace(ground, probe=edit).apply(workspace)

    assert ground.read("b.txt") == "mine\n"
    write(ground.project, {"b.txt": TEXT})
    assert dump(ground.project) == before
    assert ground.leftovers == []


def test_full_disk_in_the_middle_puts_everything_back(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT), "b.txt": None, "n/z.txt": "z\n"})
    before = dump(ground.project)

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(WorkspaceError, match="nothing was changed") as raised:
        replace(ground, probe=Meddling("landing.before_file", fail, nth=3)).apply(workspace)

    assert raised.value.can_pass
    assert dump(ground.project) == before
    assert ground.leftovers == []


def test_files_on_another_filesystem_are_copied_and_renamed(
    ground: Ground, small_disk: Path
) -> None:
    away = replace(ground, project=lay(small_disk).project)
    workspace = away.worked({"a.txt": last_line(TEXT), "n/x.txt": "x\n", "b.txt": None})
    (away.directory(workspace) / "link").symlink_to("a.txt")

    away.apply(away.snapshot(workspace))

    assert away.read("a.txt") == last_line(TEXT)
    assert away.read("n/x.txt") == "x\n"
    assert (away.project / "link").readlink() == Path("a.txt")
    assert sorted(path.name for path in away.project.iterdir()) == [
        ".git",
        "a.txt",
        "dir",
        "link",
        "n",
    ]


def test_only_later_changes_are_applied_when_asked(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT)})
    earlier = workspace.tree
    write(ground.directory(workspace), {"b.txt": last_line(TEXT)})

    result = ground.apply(ground.snapshot(workspace), before=earlier)

    assert result.paths == ("b.txt",)
    assert ground.read("a.txt") == TEXT


def test_directory_that_is_gone_is_an_error_that_names_it(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT)})
    ground.project.rename(ground.folder / "moved")

    with pytest.raises(WorkspaceError, match=str(ground.project)):
        ground.apply(workspace)


def test_another_repository_in_its_place_is_refused(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT)})
    ground.project.rename(ground.folder / "moved")
    (ground.folder / "moved" / ".git").rename(ground.folder / "elsewhere.git")
    (ground.folder / "moved").rename(ground.project)
    git(ground.project, "init", "-q", "--separate-git-dir", str(ground.folder / "new.git"))

    with pytest.raises(WorkspaceError, match="another repository"):
        ground.apply(workspace)
    assert ground.read("a.txt") == TEXT
