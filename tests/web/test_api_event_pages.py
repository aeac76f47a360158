"""Events over HTTP in pages, their whole bodies, and blobs, which a browser saves and never runs."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent
from web.web_world import Answer, World, served

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20
GIF = b"GIF89a" + b"\x00" * 20
JPEG = b"\xff\xd8\xff\xe0" + b"\x00" * 20
WEBP = b"RIFF\x00\x00\x00\x00WEBPVP8 "
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


async def with_events(world: World, *events: Event) -> JobId:
    """A job that waits, with these events after its header."""
    job_id = await world.submit()
    journals = world.site.context.journals
    journal = journals.open(job_id, epoch=1, execution=generate_execution_id(job_id, 1))
    for event in events:
        journal.append(event)
    journal.close()
    return job_id


def place(answer: Answer) -> tuple[list[int], int | None, int, bool, bool]:
    document = answer.document
    return (
        [event["seq"] for event in document["data"]],
        document["first_seq"],
        document["last_seq"],
        document["has_before"],
        document["has_after"],
    )


def must_be_saved(answer: Answer) -> None:
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_events_come_in_pages_in_both_directions(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await with_events(
                world, *(AssistantEvent(content=str(n)) for n in range(1, 10))
            )
            newest = await world.get(f"/v1/jobs/{job_id}/events?before=9007199254740992&limit=1")
            last = newest.document["last_seq"]
            path = f"/v1/jobs/{job_id}/events?limit=3"

            assert place(await world.get(path)) == ([1, 2, 3], 1, 3, False, True)
            assert place(await world.get(f"{path}&after=3")) == ([4, 5, 6], 4, 6, True, True)
            assert place(await world.get(f"{path}&before=4")) == ([1, 2, 3], 1, 3, False, True)
            assert place(await world.get(f"{path}&around=5")) == ([4, 5, 6], 4, 6, True, True)
            assert place(await world.get(f"{path}&after={last}")) == ([], None, last, True, False)
            assert place(newest) == ([last], last, last, True, False)

    anyio.run(main)


@pytest.mark.parametrize("query", ["after=1&before=3", "before=1&around=3"])
def test_two_places_are_refused(query: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit()

            answer = await world.get(f"/v1/jobs/{job_id}/events?{query}")
            stream = await world.get(
                f"/v1/jobs/{job_id}/events?before=3", accept="text/event-stream"
            )

            assert (answer.status, stream.status) == (400, 400)

    anyio.run(main)


def test_short_bodies_refer_to_the_whole_text(tmp_path: Path) -> None:
    text = "<script>alert(1)</script>" * 1_000

    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await with_events(world, ToolResultEvent(result={"stdout": text}))
            path = f"/v1/jobs/{job_id}/events?before=9999&limit=1"

            whole = (await world.get(path)).data[0]
            short = (await world.get(f"{path}&bodies=short")).data[0]
            (cut,) = short["cut"]
            body = await world.get(cut["url"])
            parent = await world.get(cut["url"].replace("/stdout", ""))

            assert whole["result"]["stdout"] == text
            assert short["result"]["stdout"] == text[:2048]
            assert (cut["field"], cut["size"]) == ("result/stdout", len(text))
            assert body.body.decode() == text
            assert body.headers["content-type"] == "text/plain; charset=utf-8"
            assert parent.headers["content-type"] == "application/json"
            must_be_saved(body)
            must_be_saved(parent)
            missing = await world.get(cut["url"].replace("stdout", "stderr"))
            assert (missing.status, missing.document["code"]) == (404, "not_found")

    anyio.run(main)


@pytest.mark.parametrize(
    ("data", "media", "ending"),
    [
        (PNG, "image/png", "png"),
        (GIF, "image/gif", "gif"),
        (JPEG, "image/jpeg", "jpg"),
        (WEBP, "image/webp", "webp"),
        (SVG, "application/octet-stream", "bin"),
        (b"<!doctype html><script>alert(1)</script>", "application/octet-stream", "bin"),
        (b"", "application/octet-stream", "bin"),
        (b"x" * 1_000_000, "application/octet-stream", "bin"),
    ],
)
def test_blob_is_an_attachment_of_a_known_image_type_or_plain_bytes(
    data: bytes, media: str, ending: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await with_events(world, ToolResultEvent(result=data))
            (event,) = world.site.context.journals.last(job_id, 1)
            sha256 = world.site.context.journals.stored_bodies(event)["result"].sha256

            blob = await world.get(f"/v1/blobs/{sha256}?job={job_id}")
            body = await world.get(f"/v1/jobs/{job_id}/events/{event.seq}/body?field=result")

            for answer in (blob, body):
                assert (answer.status, answer.body) == (200, data)
                assert answer.headers["content-type"] == media
                must_be_saved(answer)
                assert f".{ending}" in answer.headers["content-disposition"]

    anyio.run(main)


def test_damaged_or_missing_blob_is_never_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await with_events(world, ToolResultEvent(result=PNG))
            (event,) = world.site.context.journals.last(job_id, 1)
            sha256 = world.site.context.journals.stored_bodies(event)["result"].sha256
            (tmp_path / ".nightherd" / "blobs" / sha256).write_bytes(PNG + b"!")

            damaged = await world.get(f"/v1/blobs/{sha256}")
            missing = await world.get("/v1/blobs/" + "0" * 64)
            of_nothing = await world.get(f"/v1/blobs/{sha256}?job=job-2020-01-01-nobody")
            no_name = await world.get("/v1/blobs/..%2f..%2fnightherd.db")

            assert (damaged.status, missing.status, of_nothing.status) == (500, 404, 404)
            assert no_name.status in (404, 422)

    anyio.run(main)
