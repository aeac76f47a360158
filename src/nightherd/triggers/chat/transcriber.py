"""Voice notes turned into text by an API that speaks OpenAI's `audio/transcriptions`."""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import msgspec
from anyio import to_thread

from nightherd.decoding import decode_json
from nightherd.errors import NightherdError
from nightherd.model.chat.settings import VoiceSettings
from nightherd.model.ids import RandomText
from nightherd.model.webhooks import is_loopback

API_URL = "https://api.openai.com/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
"""Variable of the process that names another address, as OpenAI's own clients read it."""
TIMEOUT_S = 60.0
ANSWER_LIMIT = 1024 * 1024
DONE = 300

_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)


class _Answer(msgspec.Struct):
    text: str


class OpenAiTranscriber:
    """Sends a file and returns what is said in it. The key is read anew for each file."""

    def __init__(
        self,
        settings: VoiceSettings,
        environment: Mapping[str, str],
        random_text: RandomText,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._random_text = random_text
        self._timeout_s = timeout_s
        self._url = checked_address(environment.get(URL_VARIABLE, "").strip() or API_URL)

    async def transcribe(self, path: str, media_type: str) -> str:
        """Return what is said in the file. `NightherdError` when that cannot be found out."""
        key = self._environment.get(self._settings.api_key_env, "").strip()
        if not key:
            raise NightherdError(f"{self._settings.api_key_env} is not set")
        try:
            with anyio.fail_after(self._timeout_s):
                return await to_thread.run_sync(
                    self._send, Path(path), media_type, key, abandon_on_cancel=True
                )
        except TimeoutError:
            raise NightherdError(
                f"the voice note was not transcribed within {self._timeout_s:g}s"
            ) from None

    def _send(self, path: Path, media_type: str, key: str) -> str:
        address = urlsplit(self._url)
        boundary = self._random_text(32)
        try:
            body = b"".join(self._parts(path, media_type, boundary))
            connection = _connection(
                address.hostname or "",
                address.port,
                self._timeout_s,
                is_tls=address.scheme == "https",
            )
            try:
                connection.request(
                    "POST",
                    f"{address.path.rstrip('/')}/audio/transcriptions",
                    body,
                    {
                        "authorization": f"Bearer {key}",
                        "content-type": f"multipart/form-data; boundary={boundary}",
                    },
                )
                answer = connection.getresponse()
                text = answer.read(ANSWER_LIMIT)
            finally:
                connection.close()
        except TimeoutError:
            raise  # as when all of it takes too long
        except (OSError, http.client.HTTPException) as error:
            raise NightherdError(f"{address.hostname} cannot be asked: {error}") from error
        if answer.status >= DONE:
            raise NightherdError(f"{address.hostname} answered {answer.status}")
        try:
            return decode_json(text, _Answer).text.strip()
        except msgspec.MsgspecError as error:
            raise NightherdError(f"{address.hostname} answered without a text") from error

    def _parts(self, path: Path, media_type: str, boundary: str) -> Iterator[bytes]:
        """The body of the request: the fields, then the file."""
        fields = {"model": self._settings.model, "response_format": "json"}
        if self._settings.language is not None:
            fields["language"] = self._settings.language
        for name, value in fields.items():
            head = f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n'
            yield f"{head}{value}\r\n".encode()
        kind = media_type.partition(";")[0].strip()
        kind = kind if _MEDIA_TYPE.fullmatch(kind) else "application/octet-stream"
        name = f"voice{path.suffix or '.ogg'}"
        disposition = f'form-data; name="file"; filename="{name}"'
        yield f"--{boundary}\r\ncontent-disposition: {disposition}\r\n".encode()
        yield f"content-type: {kind}\r\n\r\n".encode()
        yield path.read_bytes()
        yield f"\r\n--{boundary}--\r\n".encode()


def checked_address(url: str) -> str:
    """Return the address; `NightherdError` for one that would send a key in the open."""
    address = urlsplit(url)
    is_safe = address.scheme == "https" or (
        address.scheme == "http" and is_loopback(address.hostname or "")
    )
    if not (is_safe and address.hostname):
        raise NightherdError(f"{URL_VARIABLE} has to begin with https://, or lead to this machine")
    return url


def _connection(
    host: str, port: int | None, timeout_s: float, *, is_tls: bool
) -> http.client.HTTPConnection:
    if not is_tls:
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
