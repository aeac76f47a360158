"""A fleet whose agents run in containers, and the command to run it with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docker_engine import DockerEngine
from nightherd.files.paths import directory_identity
from runtimes.commanded import Commanded
from runtimes.keeper.kept_worker import wait_until

SECRET = "very-secret-value-of-the-tests"
USER = 1000


class ContainerHerd(Commanded):
    """Agents as a list of their settings; each runs in `work` unless it says otherwise."""

    def __init__(
        self,
        root: Path,
        engine: DockerEngine,
        image: str,
        agents: list[dict[str, Any]],
        *,
        environment: Mapping[str, str] | None = None,
        workflows: Mapping[str, Any] | None = None,
        **docker: Any,
    ) -> None:
        self.engine = engine
        self.work = root / "work"
        self.work.mkdir()
        section = {
            "enabled": True,
            "image": image,
            "socket": engine.socket_path,
            "network": "none",
            **docker,
        }
        fleet = {
            "defaults": {
                "runtime": "scripted",
                "working_directory": "work",
                "permission_mode": "bypassPermissions",
                "docker": section,
            },
            "lease": "6s",
            "heartbeat": "1s",
            "agents": agents,
            "workflows": workflows or {},
        }
        given = {"PATH": os.environ["PATH"], "HOME": str(root), "OF_THE_WORKER": SECRET}
        super().__init__(root, json.dumps(fleet), {**given, **(environment or {})})
        for path in (root, self.work):
            os.chown(path, USER, USER)

    def containers(self) -> list[dict[str, Any]]:
        """Those of this fleet, ended ones too."""
        if not (self.root / ".nightherd").exists():
            return []
        label = f"nightherd.fleet={directory_identity(self.root / '.nightherd')}"
        query = quote(json.dumps({"label": [label]}))
        found = self.engine.json("GET", f"/containers/json?all=true&filters={query}")
        assert isinstance(found, list)
        return found

    def wait_for_container(self) -> str:
        """The id of the only one, once it runs."""
        wait_until(lambda: [one["State"] for one in self.containers()] == ["running"])
        return str(self.containers()[0]["Id"])

    def results(self) -> list[str]:
        """What tools answered."""
        found = (line for line in self.journal() if line["type"] == "tool_result")
        return [str(line.get("result") or line.get("error")) for line in found]

    def container_ids(self) -> list[str]:
        """The containers that the journal names, in order."""
        lines = [line for line in self.journal() if line["type"] == "system"]
        return [found for line in lines if (found := find(line, "container_id"))]


def find(value: Any, name: str) -> str | None:
    """The first value with this name, however deep."""
    if isinstance(value, dict):
        if isinstance(value.get(name), str):
            return str(value[name])
        return next((one for inner in value.values() if (one := find(inner, name))), None)
    return None


def bash(command: str) -> dict[str, Any]:
    """A step of a script."""
    return {"tool": "Bash", "input": {"command": command}}
