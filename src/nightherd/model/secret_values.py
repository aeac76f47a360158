"""Which values of an environment are secrets: by the variable's name, by the fleet file, or by their form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from urllib.parse import unquote

NAME_PART = re.compile(
    r"key|token|secret|passw(or)?d|passphrase|credential|auth|dsn|cookie|jwt|bearer|webhook"
    r"|connection_?str|private",
    re.IGNORECASE,
)
"""Anywhere in a name."""
NAME_WORD = re.compile(
    r"(^|[_.-])(pat|pw|otp|creds?|salt)($|[_.\d-])|(pass|pwd)($|[_.\d-])", re.IGNORECASE
)
"""A word of a name, its end included: `DB_PASS`, `MYSQL_PWD`, `GH_PAT`."""
CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
NOT_SECRET = frozenset({"PWD", "OLDPWD"})

PASSWORD_IN_URL = re.compile(
    r"[a-z][a-z\d+.-]*://(?P<login>[^/\s:@]*:(?P<password>[^\s@/]+))@", re.IGNORECASE
)
PASSWORD_IN_TEXT = re.compile(
    r"(?:^|[\s;?&])(?:password|passwd|pwd|accountkey|sharedaccesskey)\s*=\s*(?P<password>[^\s;&]+)",
    re.IGNORECASE,
)
"""As in `host=db user=me password=...` and `AccountName=me;AccountKey=...`."""
PASSWORD_IN_QUERY = re.compile(
    r"[?&][^=&\s]*(?:key|token|secret|signature)=(?P<password>[^&\s]+)", re.IGNORECASE
)
SCHEME = re.compile(r"(?:bearer|basic|token)\s+(?P<credential>\S+)$", re.IGNORECASE)
"""The value of an `Authorization` header."""

LINE = re.compile(r"(?!-----)\S{24,}")
"""A line that is secret by itself in a secret of several lines, such as a private key."""

SHORTEST = 8
"""Values shorter than this are not masked: they would blot out ordinary words."""
SHORTEST_NAMED = 4
"""The same for variables that the fleet file calls secret."""

Exists = Callable[[str], bool]


def is_secret_name(name: str) -> bool:
    """Whether a variable's name says that its value is secret."""
    if name.upper() in NOT_SECRET:
        return False
    return bool(NAME_PART.search(name) or NAME_WORD.search(CAMEL.sub("_", name)))


def secret_values(
    environment: Mapping[str, str], *, named: Collection[str] = (), exists: Exists
) -> dict[str, str]:
    """Return the secret values of `environment`, each with the name of its variable.

    `named` are variables that the fleet file calls secret. A path that exists is no secret.
    """
    found: dict[str, str] = {}
    for name, value in sorted(environment.items()):
        is_named = name in named
        least = SHORTEST_NAMED if is_named else SHORTEST
        secrets = [*_secrets_in(value, is_whole=is_named or is_secret_name(name))]
        if is_named:
            # Two secrets with a space between them are both good, while one replaces the other.
            secrets += value.split()
        for secret in secrets:
            if len(secret) >= least and not (secret.startswith("/") and exists(secret)):
                found[secret] = name
    return found


def _secrets_in(value: str, *, is_whole: bool) -> Iterator[str]:
    """The secrets that a value holds; itself, where `is_whole`, and what it is put together from."""
    login = PASSWORD_IN_URL.search(value)
    if is_whole or login is not None:
        yield value
    if login is not None:
        yield from (login["login"], login["password"], unquote(login["password"]))
    for written in (*PASSWORD_IN_TEXT.finditer(value), *PASSWORD_IN_QUERY.finditer(value)):
        yield written["password"]
    if is_whole and "\n" in value:
        # Tools read, find and cut texts by lines.
        yield from filter(LINE.fullmatch, value.splitlines())
    scheme = SCHEME.match(value)
    if is_whole and scheme is not None:
        yield scheme["credential"]
