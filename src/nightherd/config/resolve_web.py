"""What a fleet file says about being reached from outside, as the API needs it."""

from __future__ import annotations

from nightherd.config.resolve_hooks import json_inputs
from nightherd.config.schema.web import Web as WebSchema
from nightherd.config.schema.web import WebhookEndpoint
from nightherd.config.schema.web import Webhooks as WebhooksSchema
from nightherd.model.web import Endpoint, SignatureKind, Web, Webhooks


def resolve_web(web: WebSchema | None) -> Web:
    """Where the API is served."""
    if web is None:
        return Web()
    return Web(
        enabled=web.enabled,
        host=web.host,
        port=web.port,
        token_env=web.token_env,
        hosts=frozenset(web.hosts),
    )


def resolve_webhooks(webhooks: WebhooksSchema | None) -> Webhooks:
    """What comes in by webhooks."""
    if webhooks is None:
        return Webhooks()
    return Webhooks(
        enabled=webhooks.enabled,
        host=webhooks.host,
        port=webhooks.port,
        body_limit=webhooks.body_limit,
        replay_window=webhooks.replay_window,
        endpoints={
            name: _endpoint(name, endpoint, webhooks.secret_env)
            for name, endpoint in webhooks.endpoints.items()
        },
    )


def _endpoint(name: str, endpoint: WebhookEndpoint, shared_secret: str | None) -> Endpoint:
    return Endpoint(
        name=name,
        agent=endpoint.agent,
        schedule=endpoint.schedule,
        prompt=endpoint.prompt,
        inputs=json_inputs(endpoint.inputs),
        channel=endpoint.channel,
        signature=SignatureKind(endpoint.signature),
        secret_env=endpoint.secret_env or shared_secret,
        events=frozenset(endpoint.events or ()),
    )
