"""The ports of the fleet file: where they listen, how they may be addressed, and who may come in by them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nightherd.errors import ConfigError
from nightherd.model.access.web import Tls, Web
from nightherd.model.agents.agent import Fleet
from nightherd.model.ids import RandomText
from nightherd.model.inbox.token import WEB_PERSON
from nightherd.model.webhooks import LOOPBACK, is_loopback
from nightherd.web.access.addressed import Addresses, networks_of, place_of
from nightherd.web.access.guard import Door
from nightherd.web.access.identify import Identify
from nightherd.web.api_context import ApiContext
from nightherd.wiring.stores import ensure_web_token

SHORTEST_TOKEN = 16
"""Characters of a token that other machines can try to guess."""
EVERY_INTERFACE = frozenset({"0.0.0.0", "::"})  # noqa: S104 (compared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port to listen on, and who may come in by it."""

    host: str
    port: int
    door: Door
    tls: Tls | None = None
    """The certificate to serve HTTPS with, as whole paths."""


def ports_of(
    fleet: Fleet, site: ApiContext, state_dir: Path, random_text: RandomText
) -> list[Port]:
    """The ports the fleet file asks for. `ConfigError` for one that could be reached without leave."""
    ports = []
    if fleet.web.enabled:
        web = fleet.web
        addresses = addresses_of(web)
        door = Door(
            counters=site.counters,
            hook_limit=lambda: site.fleet().webhooks.body_limit,
            addresses=addresses,
            identify=Identify(
                credentials=site,
                token=_token(fleet, site.environ, state_dir, random_text),
                person=WEB_PERSON,
                addresses=addresses,
                web=web,
            ),
        )
        tls = None if web.tls is None else find_certificate(web.tls, Path(fleet.file).parent)
        ports.append(Port(host=web.host, port=web.port, door=door, tls=tls))
    if fleet.webhooks.enabled:
        door = Door(
            counters=site.counters,
            hook_limit=lambda: site.fleet().webhooks.body_limit,
            only_hooks=True,
        )
        ports.append(Port(host=fleet.webhooks.host, port=fleet.webhooks.port, door=door))
    return ports


def addresses_of(web: Web) -> Addresses:
    """How the port may be addressed."""
    hosts = {web.host.lower(), *(host.lower() for host in web.hosts)}
    if is_loopback(web.host):
        hosts |= LOOPBACK
    public = None if web.public_url is None else place_of(web.public_url)
    if public is not None:
        hosts.add(public[1])
    return Addresses(
        hosts=frozenset(hosts),
        takes_any_ip=web.host in EVERY_INTERFACE,
        public_url=web.public_url,
        networks=networks_of(web.trusted_proxy),
        is_encrypted=web.tls is not None,
        is_open=not is_loopback(web.host),
        base_path=web.base_path,
    )


def find_certificate(tls: Tls, directory: Path) -> Tls:
    """The certificate with whole paths. `ConfigError` when it cannot be used."""
    found = Tls(cert=str(directory / tls.cert), key=str(directory / tls.key))
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            found.cert, found.key, password=_refuse_password
        )
    except OSError as error:  # an ssl.SSLError is one too
        why = error.strerror or str(error)
        raise ConfigError(
            f"the certificate of web.tls cannot be used: {why} (cert {found.cert}, key {found.key})",
            hint="web.tls.cert and web.tls.key name PEM files; the key has no password",
        ) from error
    return found


def _refuse_password() -> str:
    """Never ask at the terminal for the password of a key."""
    raise OSError("the key has a password")


def _token(
    fleet: Fleet, environ: Mapping[str, str], state_dir: Path, random_text: RandomText
) -> str:
    """The token to show: the configured one, else, for this machine alone, one that is made."""
    name = fleet.web.token_env
    chosen = {**fleet.environment, **environ}.get(name, "").strip()
    is_open = not is_loopback(fleet.web.host)
    if is_open and 0 < len(chosen) < SHORTEST_TOKEN:
        raise ConfigError(
            f"the API on {fleet.web.host} can be reached from other machines, and the token in {name} has only"
            f" {len(chosen)} characters; it needs at least {SHORTEST_TOKEN}",
            hint=f"set {name} to a long random text (openssl rand -hex 20), or listen on localhost",
        )
    if chosen:
        return chosen
    if is_open:
        raise ConfigError(
            f"the API on {fleet.web.host} can be reached from other machines, and {name} has no token",
            hint=f"set {name} to a long random text, or listen on localhost",
        )
    return ensure_web_token(state_dir, random_text)
