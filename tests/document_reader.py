"""A reader of documents: writes the files that a page shows, types its commands and compares what they print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import warm_command
from document_blocks import Block, Command, blocks, commands, matches

REPOSITORY = Path(__file__).resolve().parents[1]

PLAIN = re.compile(r"""nightherd(?: (?:[\w@./:=,+-]+|'[^']*'|"[^"$`\\]*"))+""")
"""A command that the shell adds nothing to."""
WHOLE = {"README.md", "daemon.md"}
"""Pages whose every command is a process of its own, as for a person. Elsewhere plain ones are forked: a third of the time."""


def environment(home: Path) -> dict[str, str]:
    """What a person's shell would have, with the installed `nightherd` on PATH and nothing of ours set."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    git = {name: value for name, value in os.environ.items() if name.startswith("GIT_")}
    return {**kept, **git, "PATH": path, "HOME": str(home), "NO_COLOR": "1", "COLUMNS": "100"}


class Reader:
    """Someone who follows a page literally: writes the files it shows and types the commands it shows."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "work"
        self.directory.mkdir()
        self.environment = environment(directory)

    def follow(self, page: Path) -> None:
        for block in blocks(page):
            if block.file is not None:
                self.write(block)
            elif block.language in {"console", "sh"}:
                for command in commands(block):
                    self.run(command, page)

    def write(self, block: Block) -> None:
        assert block.file is not None
        target = self.directory / block.file
        target.parent.mkdir(parents=True, exist_ok=True)
        is_changed = target.exists()
        target.write_text(block.text)
        if is_changed and (self.directory / ".nightherd").is_dir():
            # At a terminal the next command accepts it; here there is none.
            words = ["reload", "--accept"]
            warm_command.run(words, self.directory, self.environment, is_mixed=True)

    def run(self, command: Command, page: Path) -> None:
        if re.match(r"make \w+", command.text):
            # These prepare or test the checkout itself: that they exist is what a page can promise.
            self.check(command, page, ["make", "-n", *command.text.split()[1:]], REPOSITORY)
        elif command.text.startswith("cd "):
            self.directory = (self.directory / command.text.removeprefix("cd ")).resolve()
            assert self.directory.is_dir(), f"{page.name}:{command.line}: {command.text}"
        elif PLAIN.fullmatch(command.text) and page.name not in WHOLE:
            self.fork(command, page)
        else:
            # A line someone types ends as its last command does; a script stops where one fails.
            shell = ["sh", "-e", "-c"] if command.is_script else ["sh", "-c"]
            self.check(command, page, [*shell, command.text], self.directory)

    def fork(self, command: Command, page: Path) -> None:
        words = shlex.split(command.text)[1:]
        done = warm_command.run(words, self.directory, self.environment, is_mixed=True)
        self.compare(command, page, done.returncode, done.stdout + done.stderr)

    def check(self, command: Command, page: Path, arguments: list[str], directory: Path) -> None:
        done = subprocess.run(
            arguments,
            cwd=directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.compare(command, page, done.returncode, done.stdout)

    def compare(self, command: Command, page: Path, code: int, printed: str) -> None:
        where = f"{page.name}:{command.line}: $ {command.text}"
        assert code == 0, f"{where}\nended with {code}:\n{printed}"
        if command.expected and not command.text.startswith("make "):
            assert matches(command.expected, printed), (
                f"{where}\nshould print:\n{command.expected}\nbut printed:\n{printed}"
            )
