"""Remotes: fetching from the server that a clone comes from.

Credentials reach no argument and no file: git asks a helper that answers from two variables of its environment. What
git stores elsewhere, such as the helpers of the user, gets none of them.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import CloneTerms
from nightherd.workspaces.environment import OVERRIDES
from nightherd.workspaces.git import FULL, TIMEOUT_S, URL_USER, Git, Output, Place

USERNAME, PASSWORD = "NIGHTHERD_GIT_USERNAME", "NIGHTHERD_GIT_PASSWORD"
HELPER = (
    '!f() { if test "$1" = get; then '
    rf"""printf 'username=%s\npassword=%s\n' "${USERNAME}" "${PASSWORD}"; fi; }}; f"""
)
"""A credential helper that keeps nothing."""
SETTINGS = {
    # A server that sends less than 1000 bytes a second for a minute is given up.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    # Nothing is asked of repositories that the clone borrows objects from: an agent can name any.
    "core.alternateRefsCommand": "true",
}
LONGEST_REASON = 1_000
CHATTER = re.compile(
    r"fatal: Could not read from remote repository\.\s+Please make sure you have the correct access rights\s+"
    r"and the repository exists\."
)
"""What git says after every reason of another program."""

DENIED = re.compile(
    r"Authentication failed|could not read (Username|Password)|Permission denied|terminal prompts disabled"
    r"|Host key verification failed|Invalid username or|returned error: (401|403|407)|access denied",
    re.IGNORECASE,
)
MISSING = re.compile(
    r"repository '[^']*' not found|Repository not found|does not appear to be a git repository|does not exist"
    r"|returned error: (404|410)|no such file or directory|Could not find (the )?repository|project you were looking for",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(
    r"transport '[^']*' not allowed|strange \w+ '.*' blocked|mismatched algorithms"
)
WITHOUT_LOGIN = "set GITHUB_TOKEN, or write the credentials as a variable: repo: https://USER:${PASSWORD}@HOST/PATH"


def fetch(
    git: Git, place: Place, terms: CloneTerms, *options: str, timeout: float = TIMEOUT_S
) -> None:
    """Fetch every branch into `refs/remotes/origin`; force-pushed and deleted ones are followed.

    `WorkspaceError` otherwise, which can pass unless the server refuses, or has no such repository.
    """
    done = git.attempt(
        place, "fetch", "--quiet", "--force", "--prune", "--no-recurse-submodules",
        "--no-write-fetch-head", "--no-auto-maintenance", *options, "--", terms.url,
        "+refs/heads/*:refs/remotes/origin/*",
        timeout=timeout, needs_credentials=True, variables=login_variables(terms),
    )  # fmt: skip
    if done.status != 0:
        raise _error(done, terms)


def login_variables(terms: CloneTerms) -> dict[str, str]:
    """Return what git's environment needs to log in at the server of `terms`, and nowhere else."""
    settings = list(SETTINGS.items())
    # No window and no terminal: a question that nobody answers is an error.
    variables = {"GIT_ASKPASS": "", "GIT_NO_LAZY_FETCH": "1"}
    address = urlsplit(terms.url)
    place = f"credential.{address.scheme}://{address.netloc}"
    if terms.password is not None:
        # The empty one removes every helper of the user's configuration: none may store this password.
        settings += [("credential.helper", ""), (f"{place}.helper", HELPER)]
        variables |= {USERNAME: terms.username or "", PASSWORD: terms.password}
    elif terms.username is not None:
        settings.append((f"{place}.username", terms.username))
    return variables | _numbered(settings)


def _numbered(settings: list[tuple[str, str]]) -> dict[str, str]:
    """Configuration as variables, after the settings of every command."""
    first = len(OVERRIDES)
    variables = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings, first):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _error(done: Output, terms: CloneTerms) -> WorkspaceError:
    reason = _readable(done, terms)
    message = f"{terms.url} cannot be fetched: {reason}"
    if FULL.search(done.err):
        return WorkspaceError(message, hint="free some space on the disk", can_pass=True)
    if DENIED.search(reason):
        hint = "check the user name, password or token" if terms.password else WITHOUT_LOGIN
        return WorkspaceError(message, hint=hint)
    if MISSING.search(reason):
        hint = (
            "check 'repo'; a server also says this of a repository that the credentials do not open"
        )
        return WorkspaceError(message, hint=hint)
    return WorkspaceError(message, can_pass=FORBIDDEN.search(reason) is None)


def _readable(done: Output, terms: CloneTerms) -> str:
    """What git said, without credentials."""
    lines = CHATTER.sub("", done.err.decode(errors="replace")).splitlines()
    said = "; ".join(line.strip().removeprefix("fatal: ") for line in lines if line.strip())
    said = URL_USER.sub("", said)
    for secret in filter(None, (terms.password, quote(terms.password or "", safe=""))):
        said = said.replace(secret, "[secret:repo]")
    if done.is_timed_out:
        return "it took too long"
    return said[-LONGEST_REASON:] or f"git ended with {done.status}"
