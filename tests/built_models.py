"""Imported by fork servers: builds the models of fleet files and the tables of rows, which processes do on first use.

That takes 80 ms of processor time, most of what a forked process spends until it works.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from nightherd.config.persistence import load_persistence
from nightherd.state.tables import TABLES, table_of
from nightherd.wiring.fleets import load_fleet

FLEET = """\
agents:
  - name: first
    runtime: scripted
    script: [{say: done}]
"""

with TemporaryDirectory() as folder:
    file = Path(folder) / "nightherd.yaml"
    file.write_text(FLEET)
    load_fleet(file, environ={}, cwd=file.parent)
    load_persistence(file.parent)
for row_type in TABLES:
    table_of(row_type)
