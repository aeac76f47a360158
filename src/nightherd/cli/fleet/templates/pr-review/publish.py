"""An MCP server with one tool: push. It alone has the credential, and nightherd lets no call through without approval.

The agent's repository can hold hooks and settings that run programs, so nothing in it runs here: the commit is fetched
into an empty repository first, and only the push from there has the token.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROTECTED = ("main", "master")
HELPER = '!f() { echo username=x-access-token; echo "password=$PUSH_TOKEN"; }; f'
TOOL = {
    "name": "push",
    "description": "Push the latest commit of the working directory to the remote. A person has to approve it.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "branch": {"type": "string", "description": "Name of the branch at the remote."},
            "commit": {"type": "string", "description": "Whole id of the commit, as a check."},
            "why": {"type": "string", "description": "What the person should know."},
        },
        "required": ["branch"],
    },
}


class Refusal(Exception):
    """Why nothing was pushed."""


def git(*arguments: str, **environment: str) -> str:
    """Run git without the settings of the user or the machine; return what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    isolated = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    done = subprocess.run(
        ["git", *arguments],
        env={**kept, **isolated, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Refusal(done.stderr.strip() or f"git {arguments[0]} failed")
    return done.stdout.strip()


def push(branch: str, commit: str | None = None, why: str | None = None) -> str:
    """Push what is committed in the working directory as `branch`; `why` is for the person who approves."""
    if branch in PROTECTED:
        raise Refusal(f"{branch} is not pushed to: use another branch")
    git("check-ref-format", "--branch", branch)
    ref = f"refs/heads/{branch}"
    url = os.environ["PUSH_URL"]
    remote = url if ":" in url else str(HERE / url)
    with tempfile.TemporaryDirectory() as folder:
        git("init", "--quiet", "--bare", folder)
        fetch = ("-C", folder, "fetch", "--quiet", str(Path.cwd()), f"HEAD:{ref}")
        git(*fetch, GIT_ALLOW_PROTOCOL="file", GIT_NO_LAZY_FETCH="1")
        found = git("-C", folder, "rev-parse", ref)
        if commit is not None and commit != found:
            raise Refusal(f"the latest commit is {found}, not {commit}")
        token = (HERE / os.environ["PUSH_TOKEN_FILE"]).read_text().strip()
        options = ("-c", "credential.helper=", "-c", f"credential.helper={HELPER}")
        git("-C", folder, *options, "push", "--quiet", remote, f"{ref}:{ref}", PUSH_TOKEN=token)
    return f"pushed {found} to {branch}"


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        server = {"name": "publish", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        try:
            text, is_error = push(**params["arguments"]), False
        except (Refusal, OSError, TypeError) as error:
            text, is_error = f"not pushed: {error}", True
        return {"content": [{"type": "text", "text": text}], "isError": is_error}
    return {}


def main() -> None:
    """Answer requests, one JSON object a line, until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            result = answer(request["method"], request.get("params") or {})
            response = {"jsonrpc": "2.0", "id": request["id"], "result": result}
            sys.stdout.write(json.dumps(response) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
