"""What the documents promise about themselves: links lead somewhere, pages stay short, nothing is left out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import nightherd.model
from nightherd import errors
from nightherd.model.journal.system import SystemSubtype

LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ +(?P<title>.+?) *$", re.MULTILINE)
INVARIANT = re.compile(r"\bINV-[A-Z]+\b")
NAMED_FILE = re.compile(r"`(?P<path>(?:src|tests|docs|scripts|benchmarks)/[\w./-]*[\w-])`")


def documents(repository: Path) -> list[Path]:
    return sorted([*repository.glob("*.md"), *repository.glob("docs/**/*.md")])


def prose(document: Path) -> str:
    """A document without its fenced blocks, in which brackets mean something else."""
    return re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    titles = (match["title"].lower() for match in HEADING.finditer(prose(document)))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def links(document: Path) -> Iterator[str]:
    yield from (match["target"] for match in LINK.finditer(prose(document)))


def error_classes() -> list[type[errors.NightherdError]]:
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, errors.NightherdError)
    ]


def test_links_between_documents_lead_somewhere(repository: Path) -> None:
    broken: list[str] = []
    for document in documents(repository):
        for link in links(document):
            if re.match(r"https?://", link):
                continue
            path, _, anchor = link.partition("#")
            target = (document.parent / path).resolve() if path else document
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{document.relative_to(repository)}: {link}")

    assert broken == []


def test_files_named_in_documents_exist(repository: Path) -> None:
    missing = [
        f"{document.relative_to(repository)}: {match['path']}"
        for document in documents(repository)
        for match in NAMED_FILE.finditer(prose(document))
        if not (repository / match["path"]).exists()
    ]

    assert missing == []


def test_every_page_is_reached_from_the_index(repository: Path) -> None:
    start = repository / "docs/README.md"
    reached, waiting = {start}, [start]
    while waiting:
        document = waiting.pop()
        for link in links(document):
            target = (document.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.exists() and target not in reached:
                reached.add(target)
                waiting.append(target)

    pages = set(repository.glob("docs/**/*.md"))
    assert sorted(str(page.relative_to(repository)) for page in pages - reached) == []


@pytest.mark.parametrize(("name", "limit"), [("README.md", 120), ("AGENTS.md", 80)])
def test_first_pages_stay_short(repository: Path, name: str, limit: int) -> None:
    assert len((repository / name).read_text().splitlines()) < limit


def test_notes_for_agents_are_in_one_place(repository: Path) -> None:
    assert "AGENTS.md" in (repository / "CLAUDE.md").read_text()
    assert len((repository / "CLAUDE.md").read_text().splitlines()) == 1


def test_every_make_target_named_in_documents_exists(repository: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (repository / "Makefile").read_text(), re.MULTILINE))
    named = {
        name
        for document in documents(repository)
        for name in re.findall(r"(?:`|^\$ )make ([a-z]+)", document.read_text(), re.MULTILINE)
    }

    assert named >= {"demo", "test", "check", "bench", "format"}
    assert named <= targets


def test_every_error_is_documented_with_its_codes(repository: Path) -> None:
    page = (repository / "docs/formats/errors.md").read_text()
    rows = set(re.findall(r"^\| *`(\w+)` *\| *(\d+) *\| *(\d+) *\|", page, re.MULTILINE))

    assert rows == {
        (cls.__name__, str(cls.exit_code), str(cls.http_status)) for cls in error_classes()
    }


def test_every_exit_code_an_error_has_is_in_the_table(repository: Path) -> None:
    page = (repository / "docs/formats/cli-json.md").read_text()
    documented = {int(code) for code in re.findall(r"^\| *(\d+) *\|", page, re.MULTILINE)}

    assert documented >= {0, 1, 2, 3, 4, 5, 6, 8, 69, 75, 78, 124, 130}
    assert documented >= {cls.exit_code for cls in error_classes()}


def test_every_system_subtype_is_documented(repository: Path) -> None:
    page = (repository / "docs/formats/journal.md").read_text()

    assert [subtype.value for subtype in SystemSubtype if f"`{subtype.value}`" not in page] == []


def test_every_invariant_named_in_the_source_has_a_page(repository: Path) -> None:
    named = {
        found
        for path in (repository / "src").rglob("*.py")
        for found in INVARIANT.findall(path.read_text())
    }
    pages = {
        title
        for page in (repository / "docs/invariants").glob("*.md")
        for title in re.findall(r"^# (INV-[A-Z]+): ", page.read_text(), re.MULTILINE)
    }

    assert named
    assert named <= pages


def test_every_word_of_the_model_is_in_the_glossary(repository: Path) -> None:
    table = re.findall(r"^\| ([A-Z][\w, ]+) \|", nightherd.model.__doc__ or "", re.MULTILINE)
    words = {word for row in table for word in row.split(", ")}
    glossary = (repository / "docs/glossary.md").read_text()

    assert words
    assert [word for word in sorted(words) if f"**{word}**" not in glossary] == []


def test_changelog_has_a_place_for_what_comes_next(repository: Path) -> None:
    changelog = (repository / "CHANGELOG.md").read_text()

    assert "## [Unreleased]" in changelog


def test_every_room_is_on_the_page_about_the_house(repository: Path) -> None:
    package = repository / "src/nightherd"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    rooms |= {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    pages = {name: (repository / name).read_text() for name in ("ARCHITECTURE.md", "AGENTS.md")}

    assert [
        room for room in sorted(rooms) if f"`src/nightherd/{room}`" not in pages["ARCHITECTURE.md"]
    ] == []
    assert [
        room for room in sorted(rooms) if not re.search(rf"`{room}/?`", pages["AGENTS.md"])
    ] == []
