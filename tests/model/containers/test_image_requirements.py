"""What an image needs, from the facts that a container of it told."""

from __future__ import annotations

import pytest

from nightherd.model.containers.image import (
    ImageReport,
    Requirement,
    claude_skew,
    requirements,
)

WHOLE = {
    "python3": "/usr/bin/python3",
    "python3.version": "3.11.2",
    "sh": "/bin/sh",
    "git": "/usr/bin/git",
    "git.version": "2.39.5",
    "claude": "/usr/local/bin/claude",
    "claude.version": "2.1.300",
    "uid": "1000",
    "certificates": "/etc/ssl/certs/ca-certificates.crt",
}


def report(facts: dict[str, str], *, needs_claude: bool = True) -> ImageReport:
    found = tuple(requirements(facts, needs_claude=needs_claude))
    return ImageReport(image="a", image_id="sha256:a", size_bytes=1, requirements=found)


def missing(facts: dict[str, str], *, needs_claude: bool = True) -> list[str]:
    found = requirements(facts, needs_claude=needs_claude)
    return [one.name for one in found if one.is_required and not one.is_met]


def test_image_with_everything_is_usable_without_ripgrep() -> None:
    assert report(WHOLE).is_usable
    assert missing(WHOLE) == []


@pytest.mark.parametrize("name", ["python3", "sh", "git", "claude", "certificates"])
def test_what_is_required_and_missing_is_named(name: str) -> None:
    facts = {key: value for key, value in WHOLE.items() if key.partition(".")[0] != name}

    assert missing(facts) == [name]
    assert not report(facts).is_usable


def test_claude_is_not_required_by_runtimes_that_do_not_run_it() -> None:
    facts = {key: value for key, value in WHOLE.items() if not key.startswith("claude")}

    assert missing(facts, needs_claude=False) == []


def test_names_and_certificates_are_not_required_by_runtimes_that_do_not_run_claude() -> None:
    facts = {key: value for key, value in WHOLE.items() if key not in ("uid", "certificates")}

    assert missing(facts, needs_claude=False) == []
    assert missing(facts) == ["certificates"]


def test_python_without_its_whole_library_does_not_run_the_keeper() -> None:
    lacks = "ModuleNotFoundError: No module named 'ctypes'"
    (python, *_) = requirements({**WHOLE, "python3.lacks": lacks}, needs_claude=True)

    assert not python.is_met
    assert lacks in str(python.note)
    assert missing({**WHOLE, "python3.lacks": ""}) == []


@pytest.mark.parametrize(
    ("version", "is_met"), [("3.8.19", False), ("3.9.0", True), ("3.13.1", True), ("2.7.18", False)]
)
def test_python_has_to_be_new_enough(version: str, is_met: bool) -> None:
    assert (missing({**WHOLE, "python3.version": version}) == []) is is_met


def test_program_that_does_not_run_counts_as_missing() -> None:
    facts = {key: value for key, value in WHOLE.items() if key != "claude.version"}

    (claude,) = [one for one in requirements(facts, needs_claude=True) if one.name == "claude"]

    assert not claude.is_met
    assert claude.note == "/usr/local/bin/claude does not run in this image"


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"uid": "0"}, None),
        ({"uid": "0", "user": "agent (1000)"}, "agent (1000)"),
        ({"uid": "1001"}, "uid 1001"),
        ({}, None),
    ],
)
def test_user_that_is_not_root_is_the_images_own_or_one_it_knows(
    facts: dict[str, str], found: str | None
) -> None:
    (user,) = [one for one in requirements(facts, needs_claude=True) if one.name == "user"]

    assert (user.found, user.is_met) == (found, found is not None)


def test_image_that_told_nothing_is_not_usable() -> None:
    assert missing({}) == ["python3", "sh", "git", "claude", "certificates"]
    assert Requirement(name="x", is_met=True, is_required=True).found is None


def test_skew_names_both_versions() -> None:
    assert claude_skew("2.1.1", "2.1.1") is None
    assert claude_skew(None, "2.1.1") is None
    assert claude_skew("2.1.1", None) is None
    assert "claude 2.1.1, this machine has 2.1.2" in str(claude_skew("2.1.1", "2.1.2"))
