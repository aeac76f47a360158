"""Whether a shell command may be one that a rule names, decided on the safe side.

For rules that forbid, or that ask a person. `Bash(git push:*)` is meant to be about every way to run `git push`: with
global options before the word, behind a wrapper, as text that a shell reads, or made by an expansion. What cannot be told
by reading counts as one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightherd.model.permissions.shell_command import (
    SHELLS,
    ShellCommand,
    Simple,
    Word,
    read_command,
    spellings,
)
from nightherd.model.permissions.tool_rule import ToolRule

INLINE_CODE = {
    "python": ("-c",), "python3": ("-c",), "perl": ("-e", "-E"), "ruby": ("-e",), "node": ("-e", "-p", "--eval"),
    "php": ("-r",), "awk": (), "gawk": (), "deno": ("eval",), "bun": ("-e",), "osascript": ("-e",),
}  # fmt: skip
"""Programs that run code given in their words, and the options that give it; none means that any word may."""
ONLY_READS = frozenset(
    {"echo", "printf", "grep", "egrep", "fgrep", "rg", "ls", "cat", "test", "[", "man", "which"}
)
"""Programs that run nothing they are given. A shell that reads their output is found by itself."""
DEEPEST = 8


def may_be(rule: ToolRule, command: ShellCommand) -> bool:
    """Return whether the command may run something that the rule names."""
    if command.is_opaque:
        return True
    if any(rule.fits_text(said) for one in command.simples for said in spellings(one)):
        return True
    wanted = _words_of(rule)
    return any(_runs(wanted, one) for one in _all(command, 0))


def _all(command: ShellCommand, depth: int) -> Iterator[Simple]:
    """Every simple command, also those in texts that a shell is given."""
    for simple in command.simples:
        yield simple
        if simple.program in SHELLS and depth < DEEPEST:
            for word in simple.words[1:]:
                inner = read_command(word.text)
                yield from _all(inner, depth + 1)


def _words_of(rule: ToolRule) -> tuple[str, ...]:
    """The fixed words that a rule's commands begin with; none when it begins with a star."""
    words: list[str] = []
    for word in (rule.specifier or "").split():
        if "*" in word:
            break
        words.append(word)
    return tuple(words)


def _runs(wanted: Sequence[str], simple: Simple) -> bool:
    """Whether the simple command may run the wanted words, itself or by what it is given."""
    if not wanted or simple.program in ONLY_READS:
        return False
    if _reads_commands(simple) or _runs_code(simple, wanted):
        return True
    program = wanted[0].rpartition("/")[2]
    return any(
        word.text.rpartition("/")[2] == program and _follow(wanted[1:], simple.words[place + 1 :])
        for place, word in enumerate(simple.words)
    ) or _is_completed(wanted, simple)


def _reads_commands(simple: Simple) -> bool:
    """Whether it is a shell that reads what it runs from its input: nothing tells what that is."""
    if simple.program not in SHELLS - {"eval", "source", "."}:
        return False
    operands = [word for word in simple.words[1:] if not word.text.startswith("-")]
    takes_text = any(word.text.startswith("-") and "c" in word.text for word in simple.words[1:])
    return "-s" in {word.text for word in simple.words[1:]} or (not operands and not takes_text)


def _runs_code(simple: Simple, wanted: Sequence[str]) -> bool:
    """Whether it runs code in its words that mentions the wanted program."""
    options = INLINE_CODE.get(simple.program)
    if options is None:
        return False
    texts = [word.text for word in simple.words[1:]]
    has_code = not options or any(text.startswith(options) for text in texts)
    is_fixed = all(word.is_fixed for word in simple.words)
    return has_code and (not is_fixed or any(wanted[0] in text for text in texts))


def _is_completed(wanted: Sequence[str], simple: Simple) -> bool:
    """Whether `xargs` or the like adds the words that are missing at the end."""
    if simple.program not in {"xargs", "parallel"}:
        return False
    texts = [word.text for word in simple.words[1:]]
    return (
        not texts
        or bool(SHELLS & set(texts))
        or any(
            text.rpartition("/")[2] == wanted[0] and _begins(wanted[1:], texts[place + 1 :])
            for place, text in enumerate(texts)
        )
        or all(text.startswith("-") for text in texts)
    )


def _begins(wanted: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether `texts`, without options, are the beginning of the wanted words."""
    given = [text for text in texts if not text.startswith("-")]
    return list(wanted[: len(given)]) == given


def _follow(wanted: Sequence[str], words: Sequence[Word]) -> bool:
    """Whether the wanted words may come next: only options, and what belongs to them, may stand between."""
    rest, after_option = list(wanted), False
    for word in words:
        if not rest:
            return True
        if word.text == rest[0]:
            rest.pop(0)
            after_option = False
            continue
        is_option = word.text.startswith("-")
        if not word.is_fixed or word.has_glob or "{" in word.text:
            return True
        if not is_option and not after_option:
            return False
        if rest[0] in word.text:
            return True  # as in `-c alias.x=push`
        after_option = is_option and "=" not in word.text
    return not rest
