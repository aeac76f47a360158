"""Publishes the commits of a workspace. It alone reads the credential.

    python3 publish.py head WORKSPACE
    python3 publish.py push WORKSPACE COMMIT BRANCH
    python3 publish.py pull-request BRANCH TITLE

The workspace can hold hooks and settings that run programs, so nothing in it runs here: the commit is fetched
into an empty repository first, and only the push from there has the token.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROTECTED = ("main", "master")
HELPER = '!f() { echo username=x-access-token; echo "password=$PUSH_TOKEN"; }; f'


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


def token() -> str:
    """Return the credential."""
    return (HERE / (os.environ.get("PUSH_TOKEN_FILE") or "push-token")).read_text().strip()


def fetch(folder: str, workspace: str) -> str:
    """Fetch the latest commit of the workspace into a new repository; return its id."""
    git("init", "--quiet", "--bare", folder)
    source = str(Path(workspace).resolve())
    command = ("-C", folder, "fetch", "--quiet", source, "HEAD:refs/heads/fetched")
    git(*command, GIT_ALLOW_PROTOCOL="file", GIT_NO_LAZY_FETCH="1")
    return git("-C", folder, "rev-parse", "refs/heads/fetched")


def head(workspace: str) -> str:
    """Return the id of the latest commit of the workspace."""
    with tempfile.TemporaryDirectory() as folder:
        return fetch(folder, workspace)


def push(workspace: str, commit: str, branch: str) -> str:
    """Push the commit, which has to be the latest of the workspace, as `branch`."""
    if branch in PROTECTED:
        raise Refusal(f"{branch} is not pushed to: use another branch")
    git("check-ref-format", "--branch", branch)
    url = os.environ.get("PUSH_URL") or "origin.git"
    remote = url if ":" in url else str(HERE / url)
    with tempfile.TemporaryDirectory() as folder:
        found = fetch(folder, workspace)
        if commit != found:
            raise Refusal(f"the latest commit is {found}, not {commit}")
        options = ("-c", "credential.helper=", "-c", f"credential.helper={HELPER}")
        refs = f"refs/heads/fetched:refs/heads/{branch}"
        git("-C", folder, *options, "push", "--quiet", remote, refs, PUSH_TOKEN=token())
    return f"pushed {found} to {branch}"


def pull_request(branch: str, title: str) -> str:
    """Open a pull request with `gh`, unless the branch has one, in the repository that PULL_REQUESTS names."""
    repository = os.environ.get("PULL_REQUESTS")
    if not repository:
        return "no pull request: PULL_REQUESTS is not set"
    select = ("--repo", repository, "--head", branch)
    known = gh("pr", "list", *select, "--state", "all", "--json", "url", "--jq", ".[].url")
    return known or gh("pr", "create", *select, "--title", title, "--body", f"From {branch}.")


def gh(*arguments: str) -> str:
    """Run GitHub's own program with the token; return what it printed."""
    done = subprocess.run(
        ["gh", *arguments],
        cwd=tempfile.gettempdir(),
        env={**os.environ, "GH_TOKEN": token(), "GH_PROMPT_DISABLED": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Refusal(done.stderr.strip() or "gh failed")
    return done.stdout.strip()


VERBS: dict[str, Callable[..., str]] = {
    "head": head,
    "push": push,
    "pull-request": pull_request,
}


def main() -> None:
    """Do what the arguments say, and print the result."""
    try:
        result = VERBS[sys.argv[1]](*sys.argv[2:])
    except (Refusal, OSError) as error:
        sys.exit(f"not published: {error}")
    sys.stdout.write(f"{result}\n")


if __name__ == "__main__":
    main()
