"""Addresses of remotes: which are on this machine, and where a pull request for a branch is opened."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode, urlsplit

SCP = re.compile(
    r"(?:(?P<user>[^@/\s]+)@)?(?P<host>\[[^\]]+\]|[^:/\s]+):(?P<path>(?!//).*)", re.DOTALL
)
"""`git@host:owner/name.git`."""
GITEA = ("gitea", "forgejo", "codeberg")


def is_local(address: str) -> bool:
    """Whether the address is a directory of this machine."""
    if "://" in address:
        return urlsplit(address).scheme == "file"
    return SCP.fullmatch(address) is None


def pull_request_url(address: str, branch: str, base: str | None) -> str | None:
    """Return where a pull request for the branch is opened; None for a host that is not known."""
    where = _host_and_path(address)
    if where is None:
        return None
    host, path = where
    words = host.split(":")[0].lower().split(".")
    page, name = f"https://{host}/{quote(path)}", quote(branch)
    target = quote(base) if base is not None else None
    if "github" in words:
        compared = f"{target}...{name}" if target else name
        return f"{page}/compare/{compared}?expand=1"
    if "gitlab" in words:
        fields = {"merge_request[source_branch]": branch}
        fields |= {"merge_request[target_branch]": base} if base is not None else {}
        return f"{page}/-/merge_requests/new?{urlencode(fields)}"
    if host.lower() == "bitbucket.org":
        fields = {"source": branch} | ({"dest": base} if base is not None else {})
        return f"{page}/pull-requests/new?{urlencode(fields)}"
    if any(word in GITEA for word in words):
        return f"{page}/compare/{target}...{name}" if target else f"{page}/compare/{name}"
    return None


def _host_and_path(address: str) -> tuple[str, str] | None:
    """Return the host of the web pages and the path of the repository there; None for a local directory."""
    if "://" in address:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https", "ssh", "git") or not parts.hostname:
            return None
        # The port of ssh is not that of web pages.
        has_port = parts.scheme in ("http", "https") and _port(parts.netloc) is not None
        host = parts.hostname + (f":{_port(parts.netloc)}" if has_port else "")
        path = parts.path
    else:
        match = SCP.fullmatch(address)
        if match is None:
            return None
        host, path = match["host"], match["path"]
    path = path.strip("/").removesuffix(".git")
    return (host, path) if path else None


def _port(netloc: str) -> str | None:
    port = netloc.rpartition("@")[2].rpartition(":")[2]
    return port if port.isdecimal() else None
