"""Any bytes at all: a fleet, or located problems; never a traceback, never without end."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.config.json_schema import json_schema
from nightherd.config.load import CheckedFleet
from nightherd.config.reference import keys_of
from nightherd.config.report import render_problems
from nightherd.config.show import render_show, show
from nightherd.wiring.fleets import check_fleet

EXAMPLE = (Path(__file__).parent / "examples" / "every-key" / "nightherd.yaml").read_bytes()
WORDS = sorted(
    {part for key in keys_of(json_schema()) for part in key.path.replace("[]", "").split(".")}
)
SPLICES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b": ",
    b"- ",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!x ",
    b"${",
    b"}",
    b"$${A}",
]
SPLICES += [b"'", b'"', b"|\n", b"\t", b"\0", b"\xff", b"\n", b"~", b"%", b"---\n", b"# ", b"? "]

modest = settings(max_examples=60, deadline=None)


def survive(content: bytes, environ: dict[str, str] | None = None) -> CheckedFleet:
    """Check a fleet file with this content, and tell all there is to tell about it."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "nightherd.yaml").write_bytes(content)
        (root / ".env").write_bytes(content[:200])
        (root / "work").mkdir()
        checked = check_fleet(root / "nightherd.yaml", environ=environ or {}, cwd=root)
        for form in ("text", "json", "github"):
            render_problems(checked.problems, form, cwd=root)
        if checked.loaded is not None:
            render_show(show(checked.loaded, cwd=root))
        else:
            assert checked.problems
        assert all(one.place.line >= 1 and one.place.column >= 1 for one in checked.problems)
        assert sorted(path.name for path in root.iterdir()) == [".env", "nightherd.yaml", "work"]
        return checked


@modest
@given(st.binary(max_size=300))
def test_any_bytes_are_answered(content: bytes) -> None:
    survive(content)


@modest
@given(st.text(alphabet=st.sampled_from(":-{}[]&*!|>'\"%@`#,?~<$\n\t abc01"), max_size=200))
def test_any_punctuation_is_answered(text: str) -> None:
    survive(text.encode())


@modest
@given(st.data())
def test_a_fleet_with_anything_spliced_in_is_answered(data: st.DataObject) -> None:
    content = bytearray(EXAMPLE)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 30)))
        content[start:end] = data.draw(st.sampled_from(SPLICES) | st.binary(max_size=4))

    survive(bytes(content))


def structures() -> st.SearchStrategy[Any]:
    """Mappings of real keys to values that are mostly wrong for them."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.sampled_from(
            ["", "x", "${A}", "${B:-1}", "5m", "@daily", ".", "/", "\0", "a" * 200, "1e9"]
        )
        | st.text(max_size=8)
    )
    keys = st.sampled_from(WORDS)
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=25,
    )


@modest
@given(
    st.dictionaries(
        st.sampled_from(
            ["agents", "defaults", "fleets", "fleet", "version", "web", "limits", "docker"]
        ),
        structures(),
        max_size=5,
    )
)
def test_any_structure_of_real_keys_is_answered(fleet: dict[str, Any]) -> None:
    survive(yaml.safe_dump(fleet, allow_unicode=True).encode(), {"A": "5"})


@modest
@given(st.dictionaries(st.sampled_from(WORDS), structures(), max_size=6))
def test_any_agent_of_real_keys_is_answered(agent: dict[str, Any]) -> None:
    fleet = {"agents": [{"name": "a", **agent}]}

    survive(yaml.safe_dump(fleet, allow_unicode=True).encode(), {"A": "true"})


@modest
@given(st.text(max_size=60), st.text(max_size=20))
def test_any_text_with_variables_is_answered(text: str, value: str) -> None:
    fleet = {"agents": [{"name": "a", "description": text + "${A}" + text, "max_turns": "${A}"}]}

    survive(yaml.safe_dump(fleet, allow_unicode=True).encode(), {"A": value})


MEGABYTE = 1_000_000
HEAVY = {
    "deep lists": b"[" * MEGABYTE,
    "deep mappings": b"{a: " * (MEGABYTE // 4),
    "deep block": b"- " * (MEGABYTE // 2),
    "questions": b"? " * (MEGABYTE // 2),
    "many scalars": b"[" + b"a," * (MEGABYTE // 2) + b"]",
    "unknown keys": b"".join(b"k%d: 1\n" % number for number in range(90_000)),
    "duplicate keys": b"a: 1\n" * (MEGABYTE // 5),
    "empty agents": b"agents:\n" + b"- {}\n" * (MEGABYTE // 5),
    "small agents": b"agents:\n" + b"".join(b"- {name: a%d}\n" % n for n in range(60_000)),
    "same agents": b"agents: [" + b"{name: a}," * (MEGABYTE // 10) + b"]",
    "documents": b"---\n" * (MEGABYTE // 4),
    "one long line": b"a: '" + b"x" * MEGABYTE,
    "variables": b"a: '" + b"${A}" * (MEGABYTE // 4) + b"'\n",
    "unclosed variables": b"a: '" + b"${A:-" * (MEGABYTE // 5) + b"'\n",
    "anchors": b"".join(b"- &a%d x\n" % number for number in range(80_000)),
    "heavy defaults": b"defaults: {tools: ["
    + b"a," * 50_000
    + b"]}\nagents:\n"
    + b"".join(b"- {name: a%d}\n" % n for n in range(5_000)),
    "merge keys": b"a: &a {%s}\nb:\n" % b"".join(b"k%d: 1, " % n for n in range(2_000))
    + b"- {<<: *a}\n" * 5_000,
    "dashes": b"-" * MEGABYTE,
    "tabs": b"\t" * MEGABYTE,
    "newlines": b"\n" * MEGABYTE,
    "colons": b":" * MEGABYTE,
    "quotes": b"''" * (MEGABYTE // 2),
    "comments": b"#\n" * (MEGABYTE // 2),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", HEAVY)
def test_a_megabyte_of_anything_comes_to_an_end(kind: str) -> None:
    checked = survive(HEAVY[kind])

    assert len(checked.problems) <= 1_000
