"""The process that sends pushes: each line of standard input is one, and is answered by a line of JSON.

pywebpush encrypts a payload for one browser and signs the request with the fleet's key, which comes with the request
and is in no file that this process reads. What a push service says is not passed on, except its status and `Retry-After`.
"""

from __future__ import annotations

import binascii
import sys
from collections.abc import Mapping
from typing import Any

from py_vapid import Vapid02, VapidException  # type: ignore[import-untyped]
from pywebpush import WebPushException, webpush  # type: ignore[import-untyped]

from nightherd.runtimes.notify.exchange import Exchange, NotTakenError, begin_timer, serve


def send_push(request: Mapping[str, Any], exchange: Exchange) -> str | None:
    """Send it; return why it cannot be sent at all, None when it could be tried."""
    try:
        key = Vapid02.from_raw(request["private_key"].encode())
    except (ValueError, binascii.Error, VapidException):
        return "the key of this fleet's pushes cannot be read"
    headers = {"urgency": request["urgency"]}
    if request["topic"]:
        headers["topic"] = request["topic"]
    begin_timer(request)
    try:
        webpush(
            {"endpoint": request["endpoint"], "keys": request["keys"]},
            request["payload"],
            vapid_private_key=key,
            vapid_claims={"sub": request["contact"]},
            ttl=int(request["ttl_s"]),
            timeout=float(request["timeout_s"]),
            headers=headers,
        )
    except WebPushException as error:
        if exchange.status is None:
            return "the keys of the subscription cannot be used"
        if not 200 <= exchange.status < 300:
            raise NotTakenError from error
    except ValueError:
        if exchange.status is None and exchange.failure is None:
            return "the keys of the subscription cannot be used"
        raise
    return None


def main() -> int:
    """Send the pushes on standard input, until it ends."""
    exchange = Exchange()
    serve(lambda request: send_push(request, exchange), exchange, load=lambda: None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
