"""Files to and from Slack. The token is shown to Slack's own hosts only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import anyio

from nightherd.errors import NightherdError
from nightherd.model.chat.incoming import IncomingFile
from nightherd.model.chat.platform import ChatPlace
from nightherd.ports.chat import ChatUpload, PostResult
from nightherd.triggers.chat.slack_client import CLOSING_S, SlackClient
from nightherd.triggers.chat.slack_errors import SlackAnswer, post_result
from nightherd.triggers.chat.slack_posts import SlackPosts, file_blocks

CHUNK = 256 * 1024
MOST_REDIRECTS = 3
TIMEOUT_S = 300.0
LOOKS = 4
"""How often it is looked for the message of a file, with growing pauses: Slack makes it a little later."""
FIRST_LOOK_S = 0.2
NO_ACCESS = "Slack does not give the file out: add the scope files:read and install the app again"


class SlackFiles:
    """Uploads and downloads of one bot."""

    def __init__(self, client: SlackClient, posts: SlackPosts) -> None:
        self._client = client
        self._posts = posts

    async def upload(self, upload: ChatUpload) -> PostResult:
        """Send a file with what is said about it."""
        known = await self._posts.known(upload.place, upload.nonce)
        if known is not None:
            return known
        try:
            size = (await anyio.Path(upload.path).stat()).st_size
        except OSError as error:
            return PostResult(error=f"the file cannot be read: {error.strerror}", is_permanent=True)
        if not size:
            return PostResult(error="Slack takes no empty file", is_permanent=True)
        target = await self._client.call(
            "files.getUploadURLExternal", filename=upload.name, length=size
        )
        url, id = str(target.data.get("upload_url")), str(target.data.get("file_id"))
        if not target.is_ok:
            # Nothing is shown to anybody before the last call.
            return post_result(_certain(target))
        problem = await self._put(url, upload.path, size)
        if problem is not None:
            return problem
        answer = await self._client.call(
            "files.completeUploadExternal",
            files=[{"id": id, "title": upload.name}],
            channel_id=upload.place.channel_id,
            thread_ts=upload.place.thread_id,
            blocks=file_blocks(upload.nonce, upload.text, upload.name),
        )
        if not answer.is_ok:
            return self._posts.note(upload.nonce, post_result(answer))
        # The id of the file where its message does not show up: it can be sent, and not edited.
        message = await self._message(upload.place, upload.nonce) or id
        return self._posts.note(upload.nonce, PostResult(message_id=message))

    async def _put(self, url: str, path: str, size: int) -> PostResult | None:
        """Send the bytes; what went wrong, if something did."""
        if not self._client.is_ours(url):
            return PostResult(error="Slack names an address for files that is not its own")
        try:
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            async with (
                await anyio.open_file(Path(path), "rb") as file,
                self._session() as session,
                session.post(
                    url,
                    data=_content(file),
                    headers=headers,
                    proxy=self._client.web.proxy,
                    allow_redirects=False,
                ) as response,
            ):
                if response.status != 200:
                    return PostResult(error=f"Slack does not take the file ({response.status})")
        except (TimeoutError, aiohttp.ClientError, OSError):
            return PostResult(error="the connection was lost while the file was sent")
        return None

    async def _message(self, place: ChatPlace, nonce: str) -> str | None:
        pause_s = FIRST_LOOK_S
        for look in range(LOOKS):
            if look:
                await anyio.sleep(pause_s)
                pause_s *= 2
            try:
                found = await self._posts.find(place, nonce)
            except NightherdError:
                return None
            if found is not None:
                return found
        return None

    async def download(self, file: IncomingFile, target: str, limit: int) -> None:
        """Fetch a file into a new one."""
        if file.size > limit:
            raise NightherdError(f"the file has more than {limit} bytes")
        url = file.url or await self._url(file.id)
        path = anyio.Path(target)
        is_kept = False
        try:
            async with self._session() as session, await path.open("xb") as out:
                received = 0
                async for chunk in self._chunks(session, url, file):
                    received += len(chunk)
                    if received > limit:
                        raise NightherdError(f"the file has more than {limit} bytes")
                    await out.write(chunk)
                is_kept = True
        except (TimeoutError, aiohttp.ClientError) as error:
            raise NightherdError(f"the file was not fetched: {type(error).__name__}") from None
        except OSError as error:
            is_kept = isinstance(error, FileExistsError)
            raise NightherdError(f"the file was not kept: {error.strerror}") from None
        finally:
            if not is_kept:
                with anyio.CancelScope(shield=True):
                    await path.unlink(missing_ok=True)

    async def _chunks(
        self, session: aiohttp.ClientSession, url: str, file: IncomingFile
    ) -> AsyncIterator[bytes]:
        for _ in range(MOST_REDIRECTS + 1):
            if not self._client.is_ours(url):
                raise NightherdError("the file is not on Slack")
            async with session.get(
                url,
                headers=self._client.auth_header(),
                proxy=self._client.web.proxy,
                allow_redirects=False,
            ) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, response.headers.get("location", ""))
                    continue
                if response.status != 200:
                    raise NightherdError(f"the file was not fetched: Slack says {response.status}")
                if response.content_type == "text/html" and "html" not in file.media_type:
                    raise NightherdError(NO_ACCESS)  # the page to log in at
                async for chunk in response.content.iter_chunked(CHUNK):
                    yield chunk
                return
        raise NightherdError(NO_ACCESS)

    async def _url(self, id: str) -> str:
        """Return the address of a file of another workspace: Slack leaves it out of the message."""
        answer = await self._client.read("files.info", file=id)
        file = answer.data.get("file") or {}
        url = file.get("url_private_download") or file.get("url_private")
        if not answer.is_ok or not isinstance(url, str):
            raise NightherdError(f"the file cannot be found: {answer.reason}")
        return url

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
        try:
            yield session
        finally:
            with anyio.move_on_after(CLOSING_S, shield=True):
                await session.close()


async def _content(file: anyio.AsyncFile[bytes]) -> AsyncIterator[bytes]:
    while chunk := await file.read(CHUNK):
        yield chunk


def _certain(answer: SlackAnswer) -> SlackAnswer:
    return SlackAnswer(error=answer.error, needed=answer.needed, retry_after=answer.retry_after)
