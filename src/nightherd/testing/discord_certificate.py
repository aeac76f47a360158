"""A certificate for Discord's host names on the loopback interface, made when it is needed."""

from __future__ import annotations

import ssl
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from nightherd.ports import Clock

HOSTS = ("discord.com", "gateway.discord.gg", "cdn.discordapp.com", "localhost")
VALID = timedelta(days=2)


def make_certificate(directory: Path, clock: Clock) -> tuple[Path, ssl.SSLContext]:
    """Write a self-signed certificate into the directory; return its file and what a server answers with."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOSTS[0])])
    names = [*map(x509.DNSName, HOSTS), x509.IPAddress(ip_address("127.0.0.1"))]
    now = clock.now()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file = directory / "discord.pem"
    key_file = directory / "discord.key"
    directory.mkdir(parents=True, exist_ok=True)
    certificate_file.write_bytes(certificate.public_bytes(Encoding.PEM))
    key_file.touch(mode=0o600)
    key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file, key_file)
    return certificate_file, context
