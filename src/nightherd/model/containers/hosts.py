"""`allowed_hosts` and `private_hosts`: the destinations of `network: egress`, by name and port."""

from __future__ import annotations

import ipaddress
import re

from nightherd.errors import InvalidValueError
from nightherd.model.containers.policy import AllowedHost

LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
NAME = re.compile(rf"(\*\.)?{LABEL}(\.{LABEL})*")
LONGEST_NAME = 253
NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A name that ends in one is read as an address by some resolvers: 127.1, 0x7f000001."""
LARGEST_PORT = 65_535


def parse_allowed_host(text: str) -> AllowedHost:
    """The destination that `host`, `host:port` or `*.host` spells; an address is refused."""
    if is_address(text):
        raise InvalidValueError(f"{text!r} is an address; write the name of the host")
    name, colon, port = text.partition(":")
    name = name.lower().removesuffix(".")
    is_name = NAME.fullmatch(name) is not None and len(name) <= LONGEST_NAME
    is_port = port.isascii() and port.isdigit() and len(port) <= len(str(LARGEST_PORT))
    if not is_name or (colon and not is_port):
        raise InvalidValueError(
            f"{text!r} is not a host; write example.com, example.com:8443 or *.example.com"
        )
    if NUMERIC_LABEL.fullmatch(name.rpartition(".")[2]) is not None:
        raise InvalidValueError(f"{text!r} is an address; write the name of the host")
    if not colon:
        return AllowedHost(name=name)
    if not 1 <= int(port) <= LARGEST_PORT:
        raise InvalidValueError(f"{text!r} is not a host: ports are from 1 to {LARGEST_PORT}")
    return AllowedHost(name=name, port=int(port))


def is_address(text: str) -> bool:
    """Whether the text is an IP address, perhaps in brackets or with a port."""
    bare = text.removeprefix("[").partition("]")[0] if text.startswith("[") else text
    for one in (bare, bare.rpartition(":")[0]):
        try:
            ipaddress.ip_address(one)
        except ValueError:
            continue
        return True
    return False
