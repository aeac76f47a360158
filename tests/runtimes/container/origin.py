"""Servers that the egress proxy is tried with, and clients that use it, on real sockets."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from nightherd.model.containers.egress import EgressRules
from nightherd.model.containers.policy import AllowedHost
from nightherd.runtimes.container.egress import EgressLimits, Refusal, egress_proxy

T = TypeVar("T")
WAIT_S = 30.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"


@dataclass
class Origin:
    """A server that gives one answer to each connection, and keeps what it got."""

    port: int
    got: list[bytes] = field(default_factory=list)
    """What each connection sent, once it has ended."""
    ended: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def wait(self) -> bytes:
        """What the next connection that ends has sent."""
        assert self.ended.acquire(timeout=WAIT_S), "no connection has ended"
        return self.got[-1]


@contextmanager
def origin(
    answer: bytes = OK,
    context: ssl.SSLContext | None = None,
    *,
    address: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[Origin]:
    """Serve on this machine's loopback, or at another address of it, with TLS where there is a context."""
    listener = socket.create_server((address, port))
    made = Origin(port=listener.getsockname()[1])

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=attend, args=(connection,), daemon=True).start()

    def attend(connection: socket.socket) -> None:
        connection.settimeout(WAIT_S)
        received = bytearray()
        with suppress(OSError), secured(connection, context) as stream:
            while b"\r\n\r\n" not in received and (piece := stream.recv(65536)):
                received += piece
            stream.sendall(answer)
            if context is None:
                stream.shutdown(socket.SHUT_WR)
                while piece := stream.recv(65536):
                    received += piece
        connection.close()
        made.got.append(bytes(received))
        made.ended.release()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def secured(connection: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    return connection if context is None else context.wrap_socket(connection, server_side=True)


@dataclass
class Proxy:
    """A proxy that runs, and what it has refused so far."""

    port: int
    refused: list[Refusal]

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.settimeout(WAIT_S)
        return connection

    def ask(self, data: bytes, *, then_end: bool = False) -> bytes:
        """All that comes back for these bytes."""
        with self.connect() as connection:
            connection.sendall(data)
            if then_end:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def tunnel(self, target: str) -> tuple[socket.socket, bytes]:
        """A connection after CONNECT, and the first line that came back."""
        connection = self.connect()
        connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = bytearray()
        while b"\r\n\r\n" not in head and (piece := connection.recv(1)):
            head += piece
        return connection, bytes(head).partition(b"\r\n")[0]

    @property
    def destinations(self) -> list[str]:
        return [one.destination for one in self.refused]


def read_all(connection: socket.socket) -> bytes:
    data = bytearray()
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            data += piece
    return bytes(data)


def rules(*hosts: tuple[str, int]) -> EgressRules:
    return EgressRules(allowed=tuple(AllowedHost(name=name, port=port) for name, port in hosts))


def here(_name: str, _port: int) -> list[str]:
    """Every name is this machine's."""
    return ["127.0.0.1"]


def with_proxy(
    allowed: EgressRules,
    work: Callable[[Proxy], T],
    *,
    resolve: Callable[[str, int], list[str]] = here,
    allow_private: bool = True,
    limits: EgressLimits | None = None,
) -> T:
    """Do `work` in a thread while a proxy runs."""

    async def run() -> T:
        refused: list[Refusal] = []
        listener = socket.create_server(("127.0.0.1", 0))
        async with egress_proxy(
            listener,
            allowed,
            refused.append,
            resolve=resolve,
            allow_private=allow_private,
            limits=limits,
        ) as port:
            return await to_thread.run_sync(work, Proxy(port, refused))

    return anyio.run(run)


def certificate(openssl: str, folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts of a server with a certificate of its own for `name`, and of a client that trusts it."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    command: list[Any] = [
        *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
        *("-keyout", key, "-out", cert, "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=str(cert))
