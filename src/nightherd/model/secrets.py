"""Halves of secrets: what is left of one where Claude has cut the output of its own tools before we see it.

Claude marks such places. A text beside a mark that is the beginning or the end of a secret is masked too, when it is
long enough to be no accident.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.hooks import HttpRequest
from nightherd.model.journal.event import Event, ToolResultEvent
from nightherd.model.notifications.routing import targets_of
from nightherd.model.notifications.target import secret_parts

CUT = re.compile(
    r"(?:\.\.\. ?\[[\d,. ]+ (?:lines|characters|chars|bytes) truncated\](?: ?\.\.\.)?"
    r"|\.\.\.\n</persisted-output>)\s*"
)
LEAST = 8
"""Characters of a part that is masked, and no less than a quarter of the secret."""


def mask_at_cuts(text: str, names: Mapping[str, str]) -> str:
    """Mask the parts of secrets, given with their names, beside the marks of a cut in `text`."""
    pieces, done = [], 0
    for mark in CUT.finditer(text):
        pieces += [_without_beginning(text[done : mark.start()], names), mark[0]]
        done = mark.end()
        for value, name in names.items():
            size = _common(value[::-1], text[done : done + len(value)][::-1])
            if size:
                pieces.append(f"[secret:{name}]")
                done += size
                break
    return "".join((*pieces, text[done:]))


def _without_beginning(text: str, names: Mapping[str, str]) -> str:
    """The text, masked where it ends with the beginning of a secret; white space may follow that."""
    said = text.rstrip()
    for value, name in names.items():
        size = _common(value, said[-len(value) :])
        if size:
            return f"{said[:-size]}[secret:{name}]{text[len(said) :]}"
    return text


def _common(value: str, text: str) -> int:
    """How many characters at the end of `text` begin `value`; 0 when they may be an accident."""
    least = max(LEAST, len(value) // 4)
    for start in range(len(text) - least + 1):
        if value.startswith(text[start:]):
            return len(text) - start
    return 0


class SecretFilter:
    """Masks what is fed to it. It holds back as many bytes as a secret that may have begun there needs."""

    def __init__(self, secrets: Secrets) -> None:
        self._names = {value.encode(): name for value, name in secrets.names.items()}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = (
            re.compile(b"|".join(map(re.escape, longest_first))) if self._names else None
        )
        self._longest = max(map(len, self._names), default=0)
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take `chunk`; return what can be passed on by now."""
        if self._pattern is None:
            return chunk
        data = self._held + chunk
        # Every secret that begins before this place is there to its end.
        safe, done = max(len(data) - self._longest + 1, 0), 0
        masked: list[bytes] = []
        for secret in self._pattern.finditer(data):
            if secret.start() >= safe:
                break
            masked += (data[done : secret.start()], self._mask(secret))
            done = secret.end()
        masked.append(data[done:safe])
        self._held = data[max(done, safe) :]
        return b"".join(masked)

    def finish(self) -> bytes:
        """Return the rest: nothing follows it."""
        rest, self._held = self._held, b""
        return rest if self._pattern is None else self._pattern.sub(self._mask, rest)

    def _mask(self, secret: re.Match[bytes]) -> bytes:
        return b"[secret:%s]" % self._names[secret[0]].encode()


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


MASK_BEGINS = "[secret:"
"""How what stands for a secret begins."""
MASKED_FIELDS = frozenset(
    {"content", "thinking", "input", "result", "error", "message", "stack", "extra"}
)


class Secrets(msgspec.Struct, frozen=True):
    """The secret values known, and the pattern that finds any of them."""

    names: Mapping[str, str]
    """Name by value."""
    pattern: re.Pattern[str] | None

    def mask(self, value: Any) -> Any:
        """`value` with every secret in its texts replaced by `[secret:NAME]`; containers are walked."""
        if self.pattern is None:
            return value
        if isinstance(value, str):
            masked = self.pattern.sub(lambda found: f"[secret:{self.names[found[0]]}]", value)
            return mask_at_cuts(masked, self.names) if "..." in masked else masked
        if isinstance(value, Mapping):
            return {self.mask(key): self.mask(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask(item) for item in value]
        return value

    def mask_stream(self, pieces: Iterable[str]) -> Iterator[str]:
        """The text that `pieces` make, masked, in bounded memory; a secret may lie across pieces."""
        if self.pattern is None:
            yield from pieces
            return
        longest, rest = max(map(len, self.names)), ""
        for piece in pieces:
            text = rest + piece
            # Before this place every secret that begins is there to its end.
            safe, done = max(len(text) - longest + 1, 0), 0
            for found in self.pattern.finditer(text):
                if found.start() >= safe:
                    break
                yield text[done : found.start()] + f"[secret:{self.names[found[0]]}]"
                done = found.end()
            yield text[done:safe]
            rest = text[max(done, safe) :]
        yield str(self.mask(rest))

    def joined(self, other: Secrets) -> Secrets:
        """Every secret that either knows."""
        return knowing({**self.names, **other.names})

    def mask_event(self, event: Event) -> Event:
        """`event` with every secret in it masked."""
        if self.pattern is None:
            return event
        changed = {
            name: masked
            for name in MASKED_FIELDS.intersection(event.__struct_fields__)
            if (masked := self.mask(found := getattr(event, name))) != found
        }
        output = event.full_output if isinstance(event, ToolResultEvent) else None
        if output is not None and output.text is not None:
            changed["full_output"] = msgspec.structs.replace(output, text=self.mask(output.text))
        return msgspec.structs.replace(event, **changed) if changed else event


NO_SECRETS = Secrets({}, None)


def _never(path: str) -> bool:
    """Nothing is known of any path."""
    return False


def find_secrets(
    environment: Mapping[str, str], *, named: Collection[str] = (), exists: Exists = _never
) -> Secrets:
    """The secrets of an environment; `named` are variables that the fleet file calls secret."""
    return knowing(secret_values(environment, named=named, exists=exists))


def knowing(names: Mapping[str, str]) -> Secrets:
    """The secrets of which these are the names by their values."""
    if not names:
        return NO_SECRETS
    longest_first = sorted(names, key=len, reverse=True)
    return Secrets(names, re.compile("|".join(re.escape(value) for value in longest_first)))


def secrets_of(
    fleet: Fleet | None, environment: Mapping[str, str], *, exists: Exists = _never
) -> Secrets:
    """The secrets of an environment, of what the fleet adds to it, and those that its file holds or names.

    `exists` says whether a path is there: paths that are stay readable.
    """
    if fleet is None:
        return find_secrets(environment, exists=exists)
    whole = {**fleet.environment, **environment}
    secrets = secrets_of_agents(
        fleet.agents.values(), whole, named=fleet.secret_variables, exists=exists
    )
    return secrets.joined(knowing(_addresses(fleet, whole)))


def _addresses(fleet: Fleet, environment: Mapping[str, str]) -> dict[str, str]:
    """What in the addresses of notify targets may be a key."""
    found: dict[str, str] = {}
    for name, target in targets_of(fleet).items():
        url = target.url or environment.get(target.url_env or "", "")
        found |= dict.fromkeys(secret_parts(url) if url else (), f"notify:{name}")
    return found


def secrets_of_agents(
    agents: Iterable[Agent],
    environment: Mapping[str, str],
    *,
    named: Collection[str] = (),
    exists: Exists = _never,
) -> Secrets:
    """The secrets of an environment, and those given to containers, MCP servers, hooks and repositories of `agents`."""
    found: dict[str, str] = {}
    for agent in agents:
        for values in _given_values(agent):
            found |= secret_values(values, exists=exists)
        found |= dict.fromkeys(_passwords(agent), "repo")
    return knowing({**found, **secret_values(environment, named=named, exists=exists)})


def _passwords(agent: Agent) -> Iterator[str]:
    """The passwords of the repositories that it works on, as they are and as an address spells them."""
    policies = (agent.workspace, *(one.workspace for one in agent.schedules.values()))
    for policy in policies:
        password = policy.clone.password if policy is not None and policy.clone else None
        if password is not None and len(password) >= SHORTEST_NAMED:
            yield from (password, quote(password, safe=""))


def _given_values(agent: Agent) -> Iterator[Mapping[str, str]]:
    """Return the values given to the agent's container, servers and hooks, by name; addresses and arguments under the server's or hook's."""
    if agent.container is not None:
        yield agent.container.environment
    for server in agent.mcp_servers:
        yield server.env
        yield server.headers
        yield from ({server.name: text} for text in (server.url, *server.args) if text)
        for option, value in pairwise(server.args):
            if is_secret_name(option) and not value.startswith("-"):
                yield {option: value}
    for hook in agent.hooks:
        if isinstance(hook.action, HttpRequest):
            yield hook.action.headers
            yield {hook.id: hook.action.url}
