"""A push service and browsers on this machine: HTTPS with a certificate of its own, and what only the browser can read."""

from __future__ import annotations

import datetime as dt
import json
import os
import ssl
import threading
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import http_ece  # type: ignore[import-untyped]
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from nightherd.model.push.keys import encode_key

HOST = "localhost"


@dataclass
class Browser:
    """A browser that subscribed: its keys, and how it reads what it is sent."""

    private: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    secret: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def p256dh(self) -> str:
        """Its public key."""
        point = self.private.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )
        return encode_key(point)

    @property
    def auth(self) -> str:
        """Its authentication secret."""
        return encode_key(self.secret)

    def read(self, body: bytes) -> Any:
        """The payload of a push to it."""
        plain = http_ece.decrypt(
            body, private_key=self.private, auth_secret=self.secret, version="aes128gcm"
        )
        return json.loads(plain)


@dataclass
class Received:
    """One request to the push service."""

    path: str
    headers: dict[str, str]
    body: bytes

    def claims(self, public_key: str) -> dict[str, Any]:
        """What the request's token says, if it is signed with the key that `public_key` belongs to."""
        scheme, _, words = self.headers["authorization"].partition(" ")
        fields = dict(word.strip().split("=", 1) for word in words.split(","))
        assert (scheme, fields["k"]) == ("vapid", public_key)
        signed, _, signature = fields["t"].rpartition(".")
        head, claims = (json.loads(decoded(part)) for part in signed.split("."))
        assert (head["typ"], head["alg"]) == ("JWT", "ES256")
        raw = decoded(signature)
        r, s = (int.from_bytes(half, "big") for half in (raw[:32], raw[32:]))
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(public_key))
        key.verify(utils.encode_dss_signature(r, s), signed.encode(), ec.ECDSA(hashes.SHA256()))
        assert isinstance(claims, dict)
        return claims


class PushService:
    """What it got, and how it answers."""

    def __init__(self, certificate: Path) -> None:
        self.certificate = certificate
        self.status = 201
        self.headers: dict[str, str] = {}
        self.hangs = False
        self.received: list[Received] = []
        self.asked = threading.Event()
        self.released = threading.Event()
        self.port = 0

    def endpoint(self, name: str = "one", host: str = HOST) -> str:
        """The endpoint of a subscription."""
        return f"https://{host}:{self.port}/send/{name}"

    @property
    def origin(self) -> str:
        """Whom a request's token is for."""
        return f"https://{HOST}:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """An environment in which its certificate is believed."""
        return {**os.environ, "REQUESTS_CA_BUNDLE": str(self.certificate)}


def decoded(text: str) -> bytes:
    """The bytes of base64url without padding."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@contextmanager
def push_service(folder: Path) -> Iterator[PushService]:
    """Serve until the test is over; a request that hangs is released then."""
    certificate, key = make_certificate(folder)
    served = PushService(certificate)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            served.received.append(Received(self.path, headers, body))
            served.asked.set()
            if served.hangs:
                served.released.wait(60)
                return
            self.send_response(served.status)
            for name, value in served.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that left has its reasons."""

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    served.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield served
    finally:
        served.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, HOST)])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName(HOST), x509.IPAddress(IPv4Address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "push-cert.pem", folder / "push-cert-key.pem"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, private
