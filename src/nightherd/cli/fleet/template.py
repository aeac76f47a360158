"""Templates: whole fleets that `nightherd init --template` writes, with a README and the files they need."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nightherd.config.discovery import FLEET_FILE_NAMES
from nightherd.errors import RefusedError

FOLDER = Path(__file__).parent / "templates"
SHARED = "shared"
"""The folder of files that several templates have."""
WORKTREES = re.compile(r"^( *)(working_directory: \{mode: worktree\}\n)", re.MULTILINE)
"""The line of a template that gives each job a worktree of the repository that the fleet is in."""


@dataclass(frozen=True, slots=True)
class Template:
    """One fleet to begin with."""

    description: str
    first_command: str
    """What to type first."""
    shared: tuple[str, ...] = ()
    """Files that it has from the folder of shared ones."""


TEMPLATES: Mapping[str, Template] = {
    "issue-to-pr": Template(
        description="A labelled issue starts a run: plan, approval, code, tests, review, approval, push.",
        first_command="sh sample.sh && nightherd workflow run issue-to-pr --input title='Discounts raise the price'",
        shared=("publish.py", "sample.sh"),
    ),
    "nightly": Template(
        description="An agent works every night within limits; a digest, the inbox and diffs in the morning.",
        first_command="nightherd schedule run caretaker/nightly",
    ),
    "pr-review": Template(
        description="A pull request starts a run: review, your approval, push.",
        first_command="sh sample.sh && nightherd workflow run pr-review",
        shared=("publish.py", "sample.sh"),
    ),
}


def template_texts(name: str) -> dict[str, str]:
    """Return the files of a template by their names, the fleet file first."""
    own = (path for path in (FOLDER / name).iterdir() if path.is_file())
    shared = (FOLDER / SHARED / file for file in TEMPLATES[name].shared)
    files = sorted((*own, *shared), key=lambda path: (path.name != FLEET_FILE_NAMES[0], path.name))
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def without_worktrees(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the same files for a directory that no worktree can be made of: the line that asks for it is a comment."""
    return {name: WORKTREES.sub(r"\1#\2", text) for name, text in texts.items()}


def refuse_existing(directory: Path, texts: Mapping[str, str]) -> None:
    """Raise `RefusedError` when a file of the template, or another fleet file, is in the directory already."""
    names = dict.fromkeys((*texts, *FLEET_FILE_NAMES))
    present = [name for name in names if os.path.lexists(directory / name)]
    if present:
        raise RefusedError(
            f"{directory} has {', '.join(present)} already, and nothing is overwritten",
            hint="nightherd init --template NAME DIR",
        )


def write_template(directory: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the files of the template except its fleet file; no file is replaced."""
    written = []
    for file, text in texts.items():
        if file not in FLEET_FILE_NAMES:
            with (directory / file).open("x", encoding="utf-8") as stream:
                stream.write(text)
            written.append(directory / file)
    return written
