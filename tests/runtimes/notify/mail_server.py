"""A mail server on this machine that keeps the letters it is given."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import StreamRequestHandler, ThreadingTCPServer


class MailServer:
    """The letters that came."""

    def __init__(self) -> None:
        self.letters: list[bytes] = []
        self.recipients: list[str] = []
        self.port = 0

    def read(self) -> EmailMessage:
        """The only letter."""
        (letter,) = self.letters
        return message_from_bytes(letter, policy=policy.default)


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Serve until the test is over."""
    kept = MailServer()

    class Handler(StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline():
                word = line.split()[0].upper() if line.split() else b""
                if word == b"RCPT":
                    kept.recipients.append(line.decode().strip())
                if word == b"QUIT":
                    self.say("221 bye")
                    return
                if word == b"DATA":
                    self.say("354 go on")
                    kept.letters.append(self.letter())
                self.say("250 fine")

        def letter(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line)
            return b"".join(lines)

    class Server(ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    kept.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
