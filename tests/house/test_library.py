"""The package's own names: what a user of the library may rely on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nightherd


def test_public_names_are_sorted_and_there() -> None:
    assert nightherd.__all__ == sorted(nightherd.__all__)
    for name in nightherd.__all__:
        assert getattr(nightherd, name) is not None


def test_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'herdctl'"):
        nightherd.herdctl  # noqa: B018


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    script = "import sys, nightherd; print([n for n in sys.modules if n.startswith('nightherd.')])"
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout

    assert said.strip() == "[]"


def test_every_public_name_is_in_the_library_guide(repository: Path) -> None:
    guide = (repository / "docs/guide/library.md").read_text("utf-8")

    assert [name for name in nightherd.__all__ if f"`{name}" not in guide] == []
