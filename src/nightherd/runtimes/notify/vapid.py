"""Making the key pair that signs a fleet's pushes (VAPID)."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from nightherd.model.push.keys import NUMBER_LENGTH, PushKeys, encode_key


def make_push_keys() -> PushKeys:
    """Return a new pair on the curve P-256."""
    key = ec.generate_private_key(ec.SECP256R1())
    number = key.private_numbers().private_value.to_bytes(NUMBER_LENGTH, "big")
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return PushKeys(public_key=encode_key(point), private_key=encode_key(number))
