"""ARCHITECTURE.md: the tree is the tree, and every path and name on the page is where the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PATH = re.compile(r"`((?:src|tests|docs|scripts)/[\w./-]*[\w-])`")
QUOTED = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[A-Za-z_]\w*")
RECIPES = (
    "A runtime",
    "A notification sink",
    "A table with a lifecycle",
    "A command",
    "A configuration key",
)
STEPS = ("1. take", "2. begin", "3. loop", "4. settle")


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "ARCHITECTURE.md").read_text()


def section(page: str, title: str) -> str:
    """Return the text under a heading, up to the next one."""
    _, _, rest = page.partition(f"\n## {title}\n")
    assert rest, title
    return re.split(r"\n## ", rest)[0]


def recipe(page: str, title: str) -> str:
    """Return what to touch to add something."""
    _, _, rest = section(page, "To add something").partition(f"\n**{title}**")
    assert rest, title
    return rest.partition("\n\n")[0]


def drawn(tree: str) -> Iterator[str]:
    """Yield every path of an indented tree; several folders may share a line."""
    above: list[str] = []
    for line in tree.splitlines():
        indent = (len(line) - len(line.lstrip())) // 2
        names = re.split(r"\s{2,}", line.strip())[0].split()
        above = [*above[:indent], names[-1].rstrip("/")]
        yield from ("/".join((*above[:indent], name.rstrip("/"))) for name in names)


def misplaced_names(repository: Path, text: str) -> Iterator[str]:
    """Yield each quoted name that is not in the module named before it in the same line or cell."""
    for line in re.split(r"\n| \| ", text):
        module: Path | None = None
        for quoted in QUOTED.findall(line):
            if PATH.fullmatch(f"`{quoted}`"):
                module = repository / quoted if quoted.endswith(".py") else None
            elif (
                module is not None
                and NAME.fullmatch(quoted)
                and not re.search(rf"\b{quoted}\b", module.read_text())
            ):
                yield f"{module.relative_to(repository)}: {quoted}"


def test_the_tree_shows_every_folder_and_nothing_else(repository: Path, page: str) -> None:
    (tree,) = re.findall(r"^```tree\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    shown = list(drawn(tree))
    folders = {
        str(path.parent.relative_to(repository))
        for pattern in ("*.py", "*.sql", "*.yaml")
        for path in (repository / "src/nightherd").rglob(pattern)
    }
    folders |= {str(Path(folder).parent) for folder in folders} - {"src"}

    assert [path for path in shown if not (repository / path).exists()] == []
    assert sorted(folders - set(shown)) == []
    assert len(shown) == len(set(shown))


def test_the_life_of_a_job_has_four_steps_with_their_files(repository: Path, page: str) -> None:
    life = section(page, "The life of a job")
    rows = [line for line in life.splitlines() if re.match(r"\| \d", line)]

    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == list(STEPS)
    assert [row for row in rows if not PATH.search(row)] == []


@pytest.mark.parametrize("title", RECIPES)
def test_what_to_touch_names_source_tests_and_documents(
    repository: Path, page: str, title: str
) -> None:
    paths = PATH.findall(recipe(page, title))

    assert [path for path in paths if not (repository / path).exists()] == []
    assert {path.partition("/")[0] for path in paths} == {"src", "tests", "docs"}
    assert len([path for path in paths if path.startswith("src/")]) >= 2


def test_every_name_on_the_page_is_in_the_module_named_before_it(
    repository: Path, page: str
) -> None:
    parts = ("The life of a job", "Contexts", "To add something")

    assert [
        name for part in parts for name in misplaced_names(repository, section(page, part))
    ] == []


def test_a_name_that_moved_away_is_noticed(repository: Path) -> None:
    line = "- `src/nightherd/model/decide.py`: add it to `DECISIONS` and to `NoSuchName`."

    assert list(misplaced_names(repository, line)) == ["src/nightherd/model/decide.py: NoSuchName"]
