"""Commands taken apart for permissions: what is called plain is what a real shell makes of it."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from components import Components
from nightherd.model.permissions.shell_command import read_command, spellings

TRICKY = st.text(alphabet="ab -='\"\\$`;&|#~{}()!*?[]\n\t", max_size=12)
MODEST = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize(
    ("text", "programs", "is_plain"),
    [
        ("ls -la", ["ls -la"], True),
        ("a; b && c || d | e", ["a", "b", "c", "d", "e"], True),
        ("git commit -m 'a; b'", ["git commit -m a; b"], True),
        ("a 2>&1 >/dev/null", ["a"], True),
        ("a > 1", ["a"], False),
        ("a $X", ["a $X"], False),
        ("a # b", ["a"], False),
        ("X=1 a", ["a"], False),
        ("a `b`", ["b", "a `b`"], False),
        ("(a; b)", ["a", "b"], False),
        ("a <(b)", ["b", "a"], False),
        ("a <<<b", ["a"], False),
        ("a\\\nb", ["ab"], True),
        ("a \\\n b", ["a b"], True),
        ("", [], True),
    ],
)
def test_a_command_is_taken_apart(text: str, programs: list[str], is_plain: bool) -> None:
    command = read_command(text)

    assert [simple.spelling for simple in command.simples] == programs
    assert command.is_plain is is_plain
    assert not command.is_opaque


@pytest.mark.parametrize(
    "text",
    ["a 'b", 'a "b', "a `b", "a $(b", "a )", "a <<E\nE", "f() { a; }", "x=(a b)", "$X", "a >", "("],
)
def test_what_is_not_understood_is_opaque_and_never_plain(text: str) -> None:
    command = read_command(text)

    assert command.is_opaque
    assert not command.is_plain


def test_depth_is_bounded() -> None:
    deep = "$(" * 5000 + "a" + ")" * 5000

    assert read_command(deep).is_opaque


@MODEST
@given(TRICKY)
def test_reading_never_fails(text: str) -> None:
    command = read_command(text)

    for simple in command.simples:
        assert simple.words
        assert all(isinstance(spelling, str) for spelling in spellings(simple))


@MODEST
@given(st.lists(st.text(alphabet="ab '\"\\$`;&|#~{}()!*\n", min_size=1), min_size=1, max_size=4))
def test_quoted_words_are_read_as_they_were_meant(words: list[str]) -> None:
    words = ["run", *words]
    command = read_command(shlex.join(words))

    (simple,) = command.simples
    assert [word.text for word in simple.words] == words
    assert command.is_plain


@MODEST
@given(text=TRICKY)
@example(text='a\\ b \'c d\' "e\\"f"')
@example(text='a "b\\nc" d\\\ne')
@example(text='a "\\$x" \\~ {}')
def test_a_shell_agrees_about_words_that_are_called_plain(
    components: Components, text: str
) -> None:
    bash = components.program("bash")
    command = read_command(f"run {text}")
    is_one = command.is_plain and len(command.simples) == 1 and not set(text) & set("&|;\n")
    if not is_one or any(word.has_glob for word in command.simples[0].words):
        return

    script = "run() { printf '%s\\0' run \"$@\"; }\n" + f"run {text}"
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split("\0")[:-1] == [word.text for word in command.simples[0].words]
