"""Voice notes are sent to an API that speaks OpenAI's `audio/transcriptions`, and come back as text."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest

from nightherd.errors import NightherdError
from nightherd.model.chat.settings import VoiceSettings
from nightherd.testing.determinism import CountingText
from nightherd.triggers.chat.transcriber import OpenAiTranscriber, checked_address

KEY = "sk-a-key-that-nobody-sees"


class SpeechServer:
    """What the server got, and how it answers."""

    def __init__(self) -> None:
        self.status = 200
        self.answer = json.dumps({"text": " water the plants "}).encode()
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.released = threading.Event()
        self.hangs = False
        self.port = 0


@pytest.fixture
def server() -> Iterator[SpeechServer]:
    served = SpeechServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers["content-length"]))
            served.requests.append((self.path, headers, body))
            if served.hangs:
                served.released.wait(60)
                return
            self.send_response(served.status)
            self.send_header("content-length", str(len(served.answer)))
            self.end_headers()
            self.wfile.write(served.answer)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.port = http.server_port
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield served
    served.released.set()
    http.shutdown()
    thread.join()
    http.server_close()


def transcriber(
    server: SpeechServer, *, key: str = KEY, timeout_s: float = 30.0, language: str | None = None
) -> OpenAiTranscriber:
    environment = {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1/",
        "OPENAI_API_KEY": key,
    }
    settings = VoiceSettings(language=language)
    return OpenAiTranscriber(settings, environment, CountingText(), timeout_s=timeout_s)


@pytest.fixture
def note(tmp_path: Path) -> str:
    file = tmp_path / "1-v.ogg"
    file.write_bytes(b"OggS\r\n--not-a-boundary\r\n")
    return str(file)


def test_the_file_is_sent_with_its_settings_and_the_text_comes_back(
    server: SpeechServer, note: str
) -> None:
    heard = anyio.run(transcriber(server, language="de").transcribe, note, "audio/ogg; codecs=opus")

    assert heard == "water the plants"
    ((path, headers, body),) = server.requests
    assert path == "/v1/audio/transcriptions"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"].startswith("multipart/form-data; boundary=")
    boundary = headers["content-type"].partition("boundary=")[2].encode()
    parts = body.split(b"--" + boundary)
    assert parts[-1] == b"--\r\n"
    fields = [part.partition(b"\r\n\r\n") for part in parts[1:-1]]
    named = {head.split(b'name="')[1].split(b'"')[0]: value for head, _, value in fields}
    assert named[b"model"] == b"whisper-1\r\n"
    assert named[b"language"] == b"de\r\n"
    assert named[b"file"] == Path(note).read_bytes() + b"\r\n"
    assert b'filename="voice.ogg"' in body
    assert b"content-type: audio/ogg\r\n" in body


def test_a_media_type_cannot_add_headers(server: SpeechServer, note: str) -> None:
    anyio.run(transcriber(server).transcribe, note, "audio/ogg\r\nx-evil: yes")
    assert b"x-evil" not in server.requests[0][2]


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (401, b'{"error": "bad key"}', "127.0.0.1 answered 401"),
        (302, b"", "127.0.0.1 answered 302"),
        (200, b"<html>", "127.0.0.1 answered without a text"),
        (200, b'{"words": []}', "127.0.0.1 answered without a text"),
    ],
)
def test_a_refusal_is_told_without_the_key(
    server: SpeechServer, note: str, status: int, answer: bytes, message: str
) -> None:
    server.status, server.answer = status, answer
    with pytest.raises(NightherdError, match=message) as raised:
        anyio.run(transcriber(server).transcribe, note, "audio/ogg")
    assert KEY not in str(raised.value)


def test_a_server_that_does_not_answer_is_given_up(server: SpeechServer, note: str) -> None:
    server.hangs = True
    with pytest.raises(NightherdError, match=r"not transcribed within 0\.2s"):
        anyio.run(transcriber(server, timeout_s=0.2).transcribe, note, "audio/ogg")


def test_a_server_that_is_not_there_is_told(server: SpeechServer, note: str) -> None:
    server.port = 9  # the discard port: nobody listens there
    asked = transcriber(server)
    with pytest.raises(NightherdError, match=r"127\.0\.0\.1 cannot be asked"):
        anyio.run(asked.transcribe, note, "audio/ogg")


def test_without_a_key_nothing_is_sent(server: SpeechServer, note: str) -> None:
    with pytest.raises(NightherdError, match="OPENAI_API_KEY is not set"):
        anyio.run(transcriber(server, key=" ").transcribe, note, "audio/ogg")
    assert server.requests == []


@pytest.mark.parametrize(
    "url", ["http://speech.example/v1", "ftp://127.0.0.1/", "https://", "127.0.0.1:80"]
)
def test_an_address_that_would_show_the_key_is_refused(url: str) -> None:
    with pytest.raises(NightherdError, match="OPENAI_BASE_URL has to begin with https://"):
        checked_address(url)


@pytest.mark.parametrize("url", ["https://speech.example/v1", "http://localhost:8080/v1"])
def test_other_addresses_are_taken(url: str) -> None:
    assert checked_address(url) == url
