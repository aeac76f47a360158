"""Keys of pushes: the fleet's pair, and those of a browser, as they are checked where they enter."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from nightherd.errors import InvalidValueError

POINT_LENGTH, NUMBER_LENGTH, AUTH_LENGTH = 65, 32, 16
UNCOMPRESSED = 4
"""The first byte of a point that has both coordinates."""
PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
"""The curve P-256 is y² = x³ - 3x + B, modulo PRIME."""


class PushKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The pair that signs a fleet's pushes (VAPID), each key as base64url without padding."""

    public_key: str
    """The uncompressed point: what a browser subscribes with."""
    private_key: str
    """The number."""

    def __repr__(self) -> str:
        return f"PushKeys(public_key={self.public_key!r})"


def encode_key(data: bytes) -> str:
    """Return a key as text."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_key(text: str) -> bytes:
    """Return the bytes of a key, or `InvalidValueError`; the message has nothing of it."""
    try:
        data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (UnicodeEncodeError, binascii.Error) as error:
        raise InvalidValueError("a key is not base64url") from error
    if encode_key(data) != text.rstrip("="):
        raise InvalidValueError("a key is not base64url")
    return data


def check_keys(keys: PushKeys) -> PushKeys:
    """`keys`, if they have the form of a pair, else `InvalidValueError`."""
    is_whole = len(decode_key(keys.private_key)) == NUMBER_LENGTH
    if not is_whole or not is_point(decode_key(keys.public_key)):
        raise InvalidValueError("the keys are cut or changed")
    return keys


def check_p256dh(text: str) -> str:
    """The public key of a browser without padding, or `InvalidValueError`."""
    data = decode_key(text)
    if not is_point(data):
        raise InvalidValueError("keys.p256dh is not a public key on the curve P-256")
    return encode_key(data)


def check_auth(text: str) -> str:
    """The authentication secret of a browser without padding, or `InvalidValueError`."""
    data = decode_key(text)
    if len(data) != AUTH_LENGTH:
        raise InvalidValueError(f"keys.auth has {len(data)} bytes instead of {AUTH_LENGTH}")
    return encode_key(data)


def is_point(data: bytes) -> bool:
    """Whether it is a point of the curve P-256, uncompressed."""
    if len(data) != POINT_LENGTH or data[0] != UNCOMPRESSED:
        return False
    x, y = int.from_bytes(data[1:33], "big"), int.from_bytes(data[33:], "big")
    return x < PRIME and y < PRIME and (y * y - (x * x * x - 3 * x + B)) % PRIME == 0
