"""Repository: the address that an agent's `repo` stands for, with the credentials in it taken out."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec

from nightherd.errors import InvalidValueError

GITHUB = "github.com"
ACCESS_USER = "x-access-token"
"""The user name that goes with a token."""

_SHORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/(?!\.{1,2}$)[A-Za-z0-9._-]+")
"""`owner/name`, on GitHub."""
_SCP = re.compile(r"(?P<user>[A-Za-z0-9._-]+)@(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>[^\s]+)")
"""`git@host:path`."""
_URL = re.compile(r"(?P<scheme>https?|ssh|git|file)://\S+", re.IGNORECASE)
_LOGIN = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/?#\s]*@", re.IGNORECASE)
_TOKEN = re.compile(r"(?:gh[pousr]_|github_pat_|glpat-)\S+|[0-9a-f]{40}")
"""What is a token where a user name is expected."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PORTS = {"https": 443, "http": 80, "ssh": 22, "git": 9418}
LOCAL = ("/", "./", "../", "~/")
"""How the path of a repository on this machine begins."""


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """Where a repository is."""

    url: str
    """Without credentials."""
    username: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"Repository(url={self.url!r})"

    @property
    def takes_github_token(self) -> bool:
        """Whether a token of GitHub opens it."""
        place = urlsplit(self.url)
        return self.password is None and (place.scheme, place.hostname) == ("https", GITHUB)


def parse_repository(text: str) -> Repository | None:
    """Return the repository that `text` names; None for a text that names none that can be cloned.

    A path has to be absolute. `InvalidValueError` for an address whose credentials cannot be used.
    """
    if _SHORT.fullmatch(text):
        return Repository(url=f"https://{GITHUB}/{text.removesuffix('.git')}.git")
    if text.startswith("/") and not _CONTROL.search(text):
        return Repository(url=text)
    if _URL.fullmatch(text):
        return _of_url(text)
    return Repository(url=text) if _SCP.fullmatch(text) else None


def _of_url(text: str) -> Repository | None:
    try:
        place = urlsplit(text)
        host = place.hostname
        port = place.port
    except ValueError:
        return None
    if place.scheme == "file":
        return Repository(url=text) if place.path.startswith("/") and not host else None
    if not host or host.startswith("-") or not place.path.strip("/") or place.query:
        return None
    host = f"[{host}]" if ":" in host else host
    username, password = _part(place.username), _part(place.password)
    address = host if port is None else f"{host}:{port}"
    if place.scheme == "ssh":
        if password is not None:
            raise InvalidValueError("an ssh address cannot hold a password; use a key, or https")
        user = "" if username is None else f"{quote(username)}@"
        return Repository(url=_joined(place, f"{user}{address}"))
    if username is not None and password is None and _TOKEN.fullmatch(username):
        username, password = ACCESS_USER, username
    return Repository(url=_joined(place, address), username=username, password=password)


def _part(written: str | None) -> str | None:
    """A part of the login as it is meant; None where nothing stands."""
    if not written:
        return None
    part = unquote(written)
    if _CONTROL.search(part):
        raise InvalidValueError("the user name or password of the address has a control character")
    return part


def _joined(place: SplitResult, address: str) -> str:
    return f"{place.scheme}://{address}{place.path}"


def without_credentials(text: str) -> str:
    """Return an address as people may see it; any other text as it is."""
    try:
        repository = parse_repository(text)
    except InvalidValueError:
        repository = None
    if repository is not None and _URL.fullmatch(text):
        return repository.url
    return _LOGIN.sub(r"\g<scheme>", text)


def is_same_repository(one: str, other: str) -> bool:
    """Whether two addresses lead to one repository, however each spells it."""
    return _place(one) == _place(other)


def _place(address: str) -> tuple[str, int | None, str]:
    """Host, port unless it is the usual one, and path without what makes no difference."""
    host, port, path = "", None, address
    scp = _SCP.fullmatch(address)
    if scp is not None:
        host, path = scp["host"], scp["path"]
    elif "://" in address:
        try:
            split = urlsplit(address)
            host, port, path = split.hostname or "", split.port, unquote(split.path)
        except ValueError:
            return "", None, address
        port = None if port == _PORTS.get(split.scheme) else port
    path = path.rstrip("/").removesuffix(".git").rstrip("/")
    return host.lower(), port, path.lstrip("/") if host else path
