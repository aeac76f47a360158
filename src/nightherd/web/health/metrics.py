"""`/metrics` and `/healthz`: for those who watch many machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, TypedDict

import msgspec
from fastapi import APIRouter, Response

from nightherd.model.access.role import Role
from nightherd.model.jobs.job import JobQuery
from nightherd.ports import StateReader
from nightherd.views.fleet.fleet import FleetView
from nightherd.web.access.caller import needs, public
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import JSON, bare, refusals
from nightherd.web.fleet import look

TEXT = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[Mapping[str, str], float]

router = APIRouter(tags=["operation"])


class Health(TypedDict):
    """That the API responds and can read its state."""

    status: Literal["ok"]


@router.get(
    "/healthz", responses={200: {"content": {JSON: {"schema": bare(Health)}}}, **refusals()}
)
@public
async def health(site: OnSite) -> Response:
    """That the server answers, and that state can be read. Needs no token, and reveals nothing else."""
    await site.ask(lambda reader: reader.live_workers())
    return Response(msgspec.json.encode(Health(status="ok")), media_type=JSON)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **refusals()})  # fmt: skip
@needs(Role.VIEWER)
async def metrics(site: OnSite) -> Response:
    """What the fleet and this server are doing, in the text format of Prometheus."""
    view, total = await look(site), await site.ask(_newest)
    text = "\n".join([*_of_fleet(view, total), *_of_server(site)]) + "\n"
    return Response(text, media_type=TEXT)


def _of_fleet(view: FleetView, total: int) -> Iterable[str]:
    counts = {
        "pending": view.waiting,
        "running": view.running,
        "suspended": view.suspended,
        "lost": view.lost,
    }
    jobs: list[Sample] = [({"status": status}, count) for status, count in counts.items()]
    yield from written("nightherd_jobs", "gauge", "Jobs that have not ended.", jobs)
    yield from written("nightherd_jobs_total", "counter", "Jobs ever submitted.", [({}, total)])
    agents = Counter(agent.state.status.value for agent in view.agents)
    by_status: list[Sample] = [({"status": name}, count) for name, count in sorted(agents.items())]
    yield from written("nightherd_agents", "gauge", "Agents by status.", by_status)
    workers = len(view.workers)
    yield from written("nightherd_workers", "gauge", "Running workers.", [({}, workers)])


def _newest(reader: StateReader) -> int:
    newest = reader.list_jobs(JobQuery(limit=1))
    return newest[0].number if newest else 0


def _of_server(site: ApiContext) -> Iterable[str]:
    counters = site.counters
    version = [({"version": site.context.version}, 1.0)]
    yield from written("nightherd_build_info", "gauge", "Which nightherd this is.", version)
    requests: list[Sample] = [
        ({"method": method, "status": str(status)}, count)
        for (method, status), count in sorted(counters.requests.items())
    ]
    yield from written("nightherd_http_requests_total", "counter", "Answers given.", requests)
    deliveries: list[Sample] = [
        ({"endpoint": endpoint, "outcome": outcome}, count)
        for (endpoint, outcome), count in sorted(counters.deliveries.items())
    ]
    name = "nightherd_webhook_deliveries_total"
    yield from written(name, "counter", "Webhook deliveries received.", deliveries)
    followers: list[Sample] = [({}, counters.followers)]
    yield from written("nightherd_sse_followers", "gauge", "Streams that are open.", followers)
    sent: list[Sample] = [({}, counters.events_sent)]
    yield from written("nightherd_sse_events_total", "counter", "Events sent to streams.", sent)


def written(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> Iterable[str]:
    """One metric in the text format."""
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        number = int(value) if float(value).is_integer() else value
        yield f"{name}{{{inside}}} {number}" if inside else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
