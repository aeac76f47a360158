"""What a `claude` is started with, as a value: program, options, environment, and files for what is too private for options.

Options are in the list of processes, which every user of the machine can read. A value that could be
secret is an `InFile`: the option then says only where the file is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from nightherd.model.secrets import NO_SECRETS, Secrets


class InFile(msgspec.Struct, frozen=True):
    """A value that is passed by a file of this name, in a directory that only its owner can enter."""

    name: str
    text: str | Callable[[Path], str]
    """What is in it; a function of the directory where it says so."""


class Option(msgspec.Struct, frozen=True):
    """One option of the program; without a value, a switch."""

    name: str
    value: str | InFile | None = None

    def word(self, files: Path) -> str:
        """Name and value in one word, so that no value is taken for an option."""
        match self.value:
            case None:
                return f"--{self.name}"
            case InFile(name=name):
                return f"--{self.name}={files / name}"
            case value:
                return f"--{self.name}={value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything a process needs to be started."""

    program: str | None
    """None when there is none to be found."""
    directory: str
    execution: str
    options: tuple[Option, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All of it."""
    secrets: Secrets = field(default=NO_SECRETS, repr=False)
    """Masked in what it says about a failure, before that is cut."""

    def arguments(self, files: Path) -> list[str]:
        """The words after the program, once `write_files` has been called for `files`."""
        return ["-p", *(option.word(files) for option in self.options)]

    def write_files(self, files: Path) -> None:
        """Put what options refer to into `files`."""
        for option in self.options:
            if isinstance(option.value, InFile):
                file = files / option.value.name
                text = option.value.text
                file.touch(mode=0o600)
                file.write_text(text if isinstance(text, str) else text(files), encoding="utf-8")
