"""What the doctor says: to a person, to a program, on a terminal, and with its exit code."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Iterator

import anyio
import pytest

from engine.doctor.ward import Ward
from nightherd.engine.doctor.doctor import Check, examine
from nightherd.errors import RefusedError
from nightherd.model.doctor import Finding, Level
from surfaces.drivers import Shell


def test_document_has_every_check_with_its_findings(used: Ward) -> None:
    (used.root / "state.yaml").chmod(0o644)

    document = used.doctor().result.document

    assert document["schema"] == "nightherd/v1/doctor"
    data = document["data"]
    assert set(data) == {"state_dir", "level", "kept_aside", "lost", "checks"}
    assert (data["state_dir"], data["level"], data["kept_aside"]) == (str(used.root), "warning", [])
    assert all(
        set(check) == {"name", "title", "level", "notes", "findings"} for check in data["checks"]
    )
    assert [check["name"] for check in data["checks"]] == [
        "sqlite",
        "filesystem",
        "disk",
        "files",
        "directory",
        "permissions",
        "temp-files",
        "rows",
        "database",
        "ledger",
        "stuck",
        "workers",
        "record",
        "orphans",
        "runs",
        "workspaces",
        "mirror",
        "suspended-state-files",
        "run-projections",
        "agents",
        "git",
        "clock",
        "runtimes",
        "claude",
    ]
    findings = [one for check in data["checks"] for one in check["findings"]]
    (finding,) = (one for one in findings if one["path"] is not None)
    assert set(finding) == {
        "level",
        "message",
        "path",
        "job_id",
        "remedy",
        "is_fixable",
        "is_fixed",
    }


def test_verify_adds_the_checks_that_read_everything(used: Ward) -> None:
    names = [check["name"] for check in used.doctor("--verify").data["checks"]]

    read, night = names[:-5], names[-5:]
    assert night == ["agents", "git", "clock", "runtimes", "claude"]
    assert read[-6:] == [
        "whole-database",
        "agreement",
        "run-projections",
        "journals",
        "mirror-files",
        "state-files",
    ]


def test_person_reads_one_line_per_check_and_what_would_help(used: Ward) -> None:
    shutil.rmtree(used.root / "logs")

    found = used.cli("doctor")
    assert found.code == 1
    assert "✗ problem directories" in found.out
    assert "      --fix: it is created" in found.out
    assert "✔ ok database" in found.out

    repaired = used.cli("doctor", "--fix")
    assert repaired.code == 0
    assert "✔ ok directories, 1 fixed" in repaired.out


def test_many_findings_of_a_check_are_counted_not_listed(used: Ward) -> None:
    for number in range(15):
        path = used.root / "logs" / f"{number}.log"
        path.touch(0o600)
        path.chmod(0o644)

    out = used.cli("doctor").out

    assert out.count("has mode 0644") == 10
    assert "and 5 more; --json has them all" in out


def test_database_that_is_gone_is_explained_once(used: Ward) -> None:
    used.delete_database()

    out = used.cli("doctor").out

    assert out.count("is gone, and the ledger beside it has its rows") == 1
    assert out.count("as above") == 6


def test_name_of_a_file_cannot_write_to_the_terminal(used: Ward) -> None:
    path = used.root / "logs" / "a\x1b]0;title\x07.log"
    path.touch(0o600)
    path.chmod(0o644)

    assert "\x1b" not in used.cli("doctor").out


@pytest.mark.parametrize("option", ["--verify", "--rebuild"])
def test_progress_is_on_a_terminals_stderr_and_never_in_the_data(
    option: str, used: Ward, shell: Shell
) -> None:
    master, slave = pty.openpty()
    process = shell.start(
        "doctor",
        option,
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(slave)

    talk = read_terminal(master)
    out, _ = process.communicate()

    assert process.returncode == 0
    assert ("ledger replayed" if option == "--verify" else "rebuilding: changes") in talk
    assert b"\x1b" not in out
    assert b"rebuilding" not in out


def test_nobody_is_told_of_progress_without_a_terminal(used: Ward) -> None:
    assert used.cli("doctor", "--verify").err == ""


def read_terminal(master: int) -> str:
    """Everything written to the other side until that closes."""
    chunks = b""
    while True:
        try:
            chunk = os.read(master, 65_536)
        except OSError:  # Linux reports the end of a terminal as an input error
            chunk = b""
        if not chunk:
            os.close(master)
            return chunks.decode()
        chunks += chunk


def finding(message: str) -> Finding:
    return Finding(check="x", level=Level.PROBLEM, message=message, is_fixable=True)


def test_what_a_check_found_before_it_failed_is_found_and_the_next_check_runs() -> None:
    def fails() -> Iterator[Finding]:
        yield finding("first")
        raise RefusedError("no further")

    def breaks() -> list[Finding]:
        raise OSError(5, "Input/output error")

    checks = [Check("a", "a", fails), Check("b", "b", breaks), Check("c", "c", list)]

    examined = anyio.run(lambda: examine(checks, is_deep=False, is_fixing=False))

    messages = [[one.message for one in each.findings] for each in examined]
    assert messages == [
        ["first", "cannot be examined: no further"],
        ["cannot be examined: [Errno 5] Input/output error"],
        [],
    ]
    assert [each.level for each in examined] == [Level.PROBLEM, Level.PROBLEM, Level.OK]


def test_mend_that_fails_leaves_the_finding_and_says_why() -> None:
    async def repair(one: Finding) -> None:
        if one.message == "second":
            raise RefusedError("locked")

    check = Check("a", "a", lambda: [finding("first"), finding("second")], repair)

    (examined,) = anyio.run(lambda: examine([check], is_deep=False, is_fixing=True))

    assert [(one.message, one.is_fixed) for one in examined.findings] == [
        ("first", True),
        ("second; not fixed: locked", False),
    ]


def test_what_is_mended_together_is_looked_at_again() -> None:
    left = [finding("first"), finding("second")]

    async def repair_all(findings: object) -> None:
        del left[0]

    check = Check("a", "a", lambda: list(left), repair_all=repair_all)

    (examined,) = anyio.run(lambda: examine([check], is_deep=False, is_fixing=True))

    assert [(one.message, one.is_fixed) for one in examined.findings] == [
        ("first", True),
        ("second", False),
    ]
