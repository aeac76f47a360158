"""A shop under git whose agents work in worktrees of it, on the real `claude`."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Call, Say
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.commanded import Commanded

FLEET = """\
defaults:
  runtime: {runtime}
  permission_mode: bypassPermissions
lease: 2s
heartbeat: 500ms
agents:
"""
FIRST = {"price": "100\n", "sign": "open\n", "src/till.py": "coins = 3\n"}
WORKING_DIRECTORY = re.compile(r"working directory: (/[\w./-]+)")
MARKS = {"100755": "*", "120000": "@"}
"""Behind the names of programs and links."""
Row = dict[str, Any]


def git(directory: Path, *words: str) -> str:
    """Run git as the user would; return what it prints."""
    done = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files_in(directory: Path) -> dict[str, bytes]:
    """Every file below a directory that is not git's own, with its content; programs and links have a mark."""
    files: dict[str, bytes] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if ".git" in Path(name).parts:
            continue
        if path.is_symlink():
            files[name + MARKS["120000"]] = os.fsencode(path.readlink())
        elif path.is_file():
            is_program = path.stat().st_mode & stat.S_IXUSR
            files[name + MARKS["100755"] if is_program else name] = path.read_bytes()
    return files


class LocatedModel(MessagesApi):
    """A model that reads where it works off its instructions, and names files there by `{here}`."""

    def take(self, asked: Asked) -> tuple[Answer, str]:
        """The answer of the script, with the directory in its calls."""
        answer, name = super().take(asked)
        if isinstance(answer, Say):
            here = WORKING_DIRECTORY.findall(json.dumps(asked.body))[-1]
            calls = (
                Call(call.name, json.loads(json.dumps(dict(call.input)).replace("{here}", here)))
                for call in answer.calls
            )
            answer = replace(answer, calls=tuple(calls))
        return answer, name


class Shop(Commanded):
    """A fleet beside a repository, and the command to run it with. `agents` are lines of YAML."""

    def __init__(self, stage: ClaudeStage, api: MessagesApi, agents: str) -> None:
        super().__init__(
            stage.root, FLEET.format(runtime=stage.runtime) + agents, stage.environment(api)
        )
        self.stage = stage
        self.shop = stage.root / "shop"
        self.shop.mkdir()
        git(self.shop, "init", "-q", "-b", "main")
        for name, text in FIRST.items():
            (self.shop / name).parent.mkdir(exist_ok=True)
            (self.shop / name).write_text(text)
        git(self.shop, "add", "-A")
        git(self.shop, "commit", "-qm", "first")

    def run(self, *words: str) -> Row:
        """Run the command, which ends a job well; return that job."""
        done = self.nightherd(*words, "--quiet")
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return self.job()

    def data(self, *words: str) -> Any:
        """What the command shows as JSON."""
        done = self.nightherd(*words, "--json")
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)["data"]

    def journal_of(self, job_id: str) -> list[Row]:
        """Every line on record of a job."""
        path = self.root / ".nightherd" / "jobs" / f"{job_id}.jsonl"
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]

    def lines(self, job_id: str, subtype: str) -> list[Row]:
        """The system events of a job with that subtype."""
        return [line for line in self.journal_of(job_id) if line.get("subtype") == subtype]

    def directory(self, job_id: str) -> Path:
        """Where the job works, by its journal."""
        return Path(self.lines(job_id, "workspace")[-1]["extra"]["directory"])

    def by_hand(self, job_id: str) -> list[Row]:
        """What is on record of a job as added outside nightherd."""
        return [
            line
            for line in self.journal_of(job_id)
            if (line.get("extra") or {}).get("by") == "hand"
        ]

    def snapshots(self, job_id: str) -> list[tuple[str, int | None]]:
        """When the snapshots of a job were taken: why, and after which turn."""
        return [(line["extra"]["at"], line.get("turn")) for line in self.lines(job_id, "snapshot")]

    def files_at(self, snapshot: Row) -> dict[str, bytes]:
        """What a snapshot holds, as `files_in` names it."""
        (store,) = (self.root / ".nightherd" / "snapshots").glob("*.git")
        files: dict[str, bytes] = {}
        for entry in git(store, "ls-tree", "-r", "-z", snapshot["extra"]["tree"]).split("\0")[:-1]:
            about, _, name = entry.partition("\t")
            mode, _, blob = about.split()
            shown = ["git", "cat-file", "blob", blob]
            content = subprocess.run(shown, cwd=store, capture_output=True, check=True).stdout
            files[name + MARKS.get(mode, "")] = content
        return files
