"""`python -m nightherd`."""

from __future__ import annotations

import sys

from nightherd.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
