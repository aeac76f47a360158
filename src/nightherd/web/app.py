"""The application: every path of the API, described for programs at `/v1/openapi.json`."""

from __future__ import annotations

from fastapi import FastAPI

from nightherd.web import fleet, hooks, jobs, metrics, operations, problem, sessions
from nightherd.web.api_context import ApiContext

OPENAPI = "/v1/openapi.json"
DESCRIPTION = (
    "A fleet of agents over HTTP. Answers are the documents that the command line prints with --json; "
    "errors are problems (RFC 9457)."
)


def make_app(site: ApiContext) -> FastAPI:
    """The API on `site`. The server decides who has access (`server.py`)."""
    app = FastAPI(
        title="nightherd",
        version=site.context.version,
        description=DESCRIPTION,
        openapi_url=OPENAPI,
        docs_url=None,
        redoc_url=None,
    )
    app.state.site = site
    problem.install(app)
    for room in (fleet, jobs, sessions, hooks, metrics, operations):
        app.include_router(room.router)
    return app
