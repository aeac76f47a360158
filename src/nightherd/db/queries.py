"""Queries by name: each is one statement in one file beside this module."""

from __future__ import annotations

from pathlib import Path

SQL = Path(__file__).with_name("sql") / "sqlite"


class Queries:
    """The text of every query, read when first asked for and kept as long as this object."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = (SQL / "queries" / f"{name}.sql").read_text("utf-8")
        return text


def query_names() -> list[str]:
    """Every query there is."""
    return sorted(path.stem for path in (SQL / "queries").glob("*.sql"))
