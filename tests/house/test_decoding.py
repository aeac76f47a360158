"""No thread finds a type that another one is working out: all of them go through `nightherd.decoding`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from nightherd.decoding import convert, decode_json, json_decoder

OWN = {"convert", "Decoder"}
"""What works a type out each time it is called."""
RACE = """
import sys, threading, msgspec
from nightherd import decoding
KINDS = 200
code = "import msgspec\\nclass Part(msgspec.Struct):\\n    z: int = 0\\n"
for number in range(KINDS):
    code += f"class Kind{number}(msgspec.Struct):\\n    a: int\\n    b: 'dict[str, int | str]'\\n    c: 'Part | None' = None\\n"
exec(code)
sys.setswitchinterval(1e-6)
together = threading.Barrier(3)
def work():
    for number in range(KINDS):
        kind = globals()[f"Kind{number}"]
        together.wait()
        READ
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("all read")
"""
VALUE = '{"a": 1, "b": {"k": 1}, "c": {"z": 2}}'


@pytest.mark.parametrize(
    "reading",
    [
        f"decoding.convert({VALUE}, kind)",
        f"decoding.decode_json('{VALUE}', kind)",
        f"decoding.json_decoder(kind).decode('{VALUE}')",
        f"decoding.work_out(kind); msgspec.convert({VALUE}, kind)",
    ],
    ids=["convert", "decode_json", "json_decoder", "work_out"],
)
def test_threads_that_use_a_type_first_at_once_all_read_it(reading: str) -> None:
    code = RACE.replace("READ", reading)

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.returncode, done.stdout.strip()) == (0, "all read"), done.stderr


class Cow(msgspec.Struct):
    name: str


def test_values_are_read_and_mistakes_are_told() -> None:
    assert convert({"name": "Ada"}, Cow) == decode_json('{"name": "Ada"}', Cow) == Cow("Ada")
    assert json_decoder(Cow | None).decode("null") is None
    assert convert({"name": "Ada"}, dict[str, str]) == {"name": "Ada"}
    with pytest.raises(msgspec.ValidationError, match=r"\$\.name"):
        convert({"name": 1}, Cow)


def test_nothing_else_lets_msgspec_work_types_out(repository: Path) -> None:
    source = repository / "src" / "nightherd"
    found = [
        f"{path.relative_to(source)}:{node.lineno}"
        for path in sorted(source.rglob("*.py"))
        if path != source / "decoding.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and works_out(node)
    ]

    assert found == []


def works_out(call: ast.Call) -> bool:
    called = ast.unparse(call.func)
    if called == "msgspec.json.decode":
        return any(keyword.arg == "type" for keyword in call.keywords)
    return called.startswith("msgspec.") and called.rpartition(".")[2] in OWN
