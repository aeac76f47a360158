"""What a fleet file says about the API and the dashboard on a port."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_network
from urllib.parse import urlsplit

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.access.role import Role, parse_role
from nightherd.model.webhooks import is_loopback

EVERYONE = "*"
BASE_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
CONTACT = re.compile(
    r"mailto:[^@\s:]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|https://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
)
NO_CONTACT = "mailto:nightherd@localhost"
"""What push services are told where there is no address: most of them need one, and do not read it."""
OWN_HEADERS = frozenset({"authorization", "cookie", "host", "origin", "content-length"})
"""Headers that cannot name a person: they mean something else, or are the client's own."""


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """The certificate that the port is served with."""

    cert: str
    key: str


class WebPush(msgspec.Struct, frozen=True, kw_only=True):
    """How pushes to devices are sent."""

    contact: str | None = None
    """Whom push services may write to about them: a `mailto:` or `https:` address."""
    allow_hosts: tuple[str, ...] = ()
    """Push services, by name or number, that may be reached although their address is private."""


class Web(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API is served besides its socket, and who may use it there."""

    enabled: bool = False
    host: str = "localhost"
    port: int = 3232
    token_env: str = "NIGHTHERD_WEB_TOKEN"  # noqa: S105 - the name of a variable
    hosts: frozenset[str] = frozenset()
    """Names by which it may be addressed, besides its own."""
    public_url: str | None = None
    """Where people reach it: answer links begin so."""
    tls: Tls | None = None
    trusted_proxy: tuple[str, ...] = ()
    """Networks of reverse proxies: only they may say who a person is and how the proxy was addressed."""
    identity_header: str | None = None
    """The header by which such a proxy names the person it has logged in."""
    people: Mapping[str, Role] = msgspec.field(default_factory=dict)
    """The role of each person whom a proxy names; `*` for everyone else."""
    base_path: str = ""
    """Path below which everything is served, without a last slash; empty for the root."""
    session_expiry_hours: float = 24
    push: WebPush = WebPush()
    open_browser: bool = False
    tool_results: bool = True
    message_grouping: str = "separate"

    def role_of(self, person: str) -> Role | None:
        """The role of a person whom a proxy names; None for one who is not let in."""
        if not self.people:
            return Role.VIEWER
        return self.people.get(person, self.people.get(EVERYONE))


APPEARANCE = frozenset({"open_browser", "tool_results", "message_grouping"})
"""Fields that change only what is shown."""


def check_base_path(text: str) -> str:
    """`text` without a last slash, if requests can begin with it; else `InvalidValueError`."""
    path = text.rstrip("/")
    if path and (BASE_PATH.fullmatch(path) is None or {".", ".."} & set(path.split("/"))):
        raise InvalidValueError(f"{text!r} is not a path; write /NAME or /NAME/NAME")
    return path


def check_network(text: str) -> str:
    """`text` as a network, if it is one; else `InvalidValueError`."""
    try:
        return str(ip_network(text))
    except ValueError:
        raise InvalidValueError(
            f"{text!r} is not a network; write an address or ADDRESS/BITS, such as 10.0.0.0/8"
        ) from None


def check_header_name(text: str) -> str:
    """`text` in lower case, if it can be the name of an identity header; else `InvalidValueError`."""
    name = text.lower()
    if HEADER_NAME.fullmatch(text) is None or name in OWN_HEADERS:
        raise InvalidValueError(
            f"{text!r} is not the name of an identity header; write for example X-Forwarded-User"
        )
    return name


def check_contact(text: str) -> str:
    """`text`, if a push service can write there; else `InvalidValueError`."""
    if CONTACT.fullmatch(text) is None:
        raise InvalidValueError(
            f"{text!r} is not a contact; write mailto:NAME@HOST or https://HOST"
        )
    return text


def contact_of(web: Web) -> str:
    """Return whom push services may write to: what the fleet file says, else where the dashboard is reached."""
    if web.push.contact is not None:
        return web.push.contact
    host = None if web.public_url is None else urlsplit(web.public_url).hostname
    address = f"https://{host}"
    return address if CONTACT.fullmatch(address) is not None else NO_CONTACT


def check_role(text: str) -> str:
    """`text`, if it is a role; else `InvalidValueError`."""
    return parse_role(text).value


def dashboard_url(web: Web, port: int) -> str:
    """Return where a browser on this machine opens the dashboard, with a last slash; `port` is the one it listens on."""
    is_local = is_loopback(web.host) and web.tls is None
    if web.public_url is not None and not is_local:
        return f"{web.public_url}/"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(web.host, web.host)  # noqa: S104 (compared)
    shown = f"[{host}]" if ":" in host else host
    scheme = "http" if web.tls is None else "https"
    return f"{scheme}://{shown}:{port}{web.base_path}/"
