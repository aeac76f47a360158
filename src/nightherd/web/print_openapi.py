"""`python -m nightherd.web.print_openapi`: the API's OpenAPI document, without a server, the same bytes for the same API."""

from __future__ import annotations

import sys

from nightherd.web.openapi import as_json
from nightherd.web.server import make_api

VERSION = "1"
"""Of the API, as in its paths; not of nightherd."""


def main() -> None:
    """Write the document to standard output."""
    sys.stdout.write(as_json(make_api(VERSION).openapi()))


if __name__ == "__main__":
    main()
