"""A shell command taken apart: which programs it would run with which words, as far as reading it shows.

Made for permission rules, so it errs on the safe side: what it does not understand it calls opaque, and
what is more than programs with fixed words, one after the other, it does not call plain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

KEYWORDS = frozenset(
    {
        "if", "then", "elif", "else", "fi", "while", "until", "for", "select", "case", "esac",
        "do", "done", "in", "function", "coproc", "time", "!", "{", "}", "[[",
    }
)  # fmt: skip
WRAPPERS = frozenset(
    {
        "sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "xargs", "command", "exec",
        "builtin", "stdbuf", "setsid", "time", "watch", "chroot",
    }
)  # fmt: skip
"""Programs that run another one, named in their arguments."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "eval", "source", "."})
"""Programs that read their arguments as commands."""
NOWHERE = "/dev/null"
LONGEST = 128 * 1024
"""Characters of a command that is read. No shell is given more in one piece: what is longer cannot be run."""
DEEPEST = 20
LONGEST_WRAPPED = 64
"""Words after a wrapper among which its program is looked for; with more of them it is unknown."""

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_BREAKS = frozenset(" \t\n;&|()<>")
_GLOB = frozenset("*?[")


class Word(msgspec.Struct, frozen=True):
    """One word, quotes taken off. `is_fixed` means that no expansion changes it but that of file names."""

    text: str
    is_fixed: bool = True
    has_glob: bool = False


class Simple(msgspec.Struct, frozen=True):
    """One program and its words, and how it was written."""

    words: tuple[Word, ...]
    text: str

    @property
    def spelling(self) -> str:
        """The words as one text."""
        return " ".join(word.text for word in self.words)

    @property
    def program(self) -> str:
        """The last part of the first word: what is run, wherever it stands."""
        return self.words[0].text.rpartition("/")[2]


class ShellCommand(msgspec.Struct):
    """All that a command would run, in the order it is written, also inside substitutions."""

    simples: list[Simple] = msgspec.field(default_factory=list)
    is_plain: bool = True
    """Only programs with fixed words, joined by `;`, `&&`, `||` and `|`: nothing is substituted or redirected."""
    is_opaque: bool = False
    """Part of it is unknown: not understood, or a program whose name is made at run time."""
    outputs: list[Word] = msgspec.field(default_factory=list)
    """Files that output is redirected to."""


def read_command(text: str, depth: int = 0) -> ShellCommand:
    """`text` taken apart; never fails."""
    command = ShellCommand()
    try:
        if depth > DEEPEST or len(text) > LONGEST:
            raise _UnreadableError
        _Reader(text, command, depth).read_list("")
    except (_UnreadableError, RecursionError):
        command.is_opaque = True
        command.is_plain = False
    return command


def spellings(simple: Simple, depth: int = 0) -> Iterator[str]:
    """Every way to say what a simple command runs, with what it has others run: for rules that forbid."""
    yield simple.text
    yield simple.spelling
    words = [word.text for word in simple.words]
    yield " ".join([simple.program, *words[1:]])
    if depth >= DEEPEST:
        return
    if simple.program in WRAPPERS:
        for start in range(1, min(len(simple.words), LONGEST_WRAPPED)):
            rest = simple.words[start:]
            text = " ".join(word.text for word in rest)
            # The wrapper's own words come before the program's: any suffix may be the program.
            yield from spellings(Simple(rest, text), DEEPEST)
    if simple.program in SHELLS:
        for word in simple.words[1:]:
            for inner in read_command(word.text, depth + 1).simples:
                yield from spellings(inner, depth + 1)


class _UnreadableError(Exception):
    """This is not a command that can be followed."""


class _Reader:
    """Reads one text from left to right, and adds what it finds to `command`."""

    def __init__(self, text: str, command: ShellCommand, depth: int) -> None:
        self._text = text
        self._at = 0
        self._command = command
        self._depth = depth

    def read_list(self, end: str) -> None:
        """Commands up to the character `end`, which is taken too, or to the end of the text."""
        words: list[Word] = []
        start = self._at
        while self._at < len(self._text):
            char = self._text[self._at]
            if end and char == end:
                self._close(words, start)
                self._at += 1
                return
            if char in "\n;&|" and not self._starts(("&>",)):
                self._close(words, start)
                words = []
                self._at += 1
                start = self._at
            elif char in " \t":
                self._at += 1
            elif self._starts(("\\\n",)):
                self._at += 2
            else:
                if not words:
                    start = self._at
                self._read_piece(words)
        if end:
            raise _UnreadableError
        self._close(words, start)

    def _read_piece(self, words: list[Word]) -> None:
        char = self._text[self._at]
        if char == "#":
            self._command.is_plain = False
            stop = self._text.find("\n", self._at)
            self._at = len(self._text) if stop < 0 else stop
        elif char == "(":
            if words:  # a function is defined, or a list is assigned
                raise _UnreadableError
            self._inner()
        elif char == ")":
            raise _UnreadableError
        elif char in "<>" or self._starts(("&>",)):
            self._read_redirection(words)
        else:
            words.append(self._read_word())

    def _close(self, words: list[Word], start: int) -> None:
        """A command is complete: what stands before its program is taken off."""
        text = self._text[start : self._at].strip()
        first = 0
        while first < len(words) and self._is_prefix(words[first]):
            self._command.is_plain = False
            first += 1
        rest = tuple(words[first:])
        if not rest:
            return
        is_hidden = Simple(rest, text).program in WRAPPERS and len(rest) > LONGEST_WRAPPED
        if not rest[0].is_fixed or rest[0].has_glob or is_hidden:
            self._command.is_opaque = True
        if not all(word.is_fixed for word in rest):
            self._command.is_plain = False
        self._command.simples.append(
            Simple(rest, text if first == 0 else " ".join(word.text for word in rest))
        )

    def _is_prefix(self, word: Word) -> bool:
        return word.text in KEYWORDS or _ASSIGNMENT.match(word.text) is not None

    def _read_redirection(self, words: list[Word]) -> None:
        if self._starts(("<<",)) and not self._starts(("<<<",)):
            raise _UnreadableError
        if self._starts(("<(", ">(")):
            self._at += 1
            self._inner()
            return
        if words and words[-1].text.isdigit() and self._text[self._at - 1].isdigit():
            words.pop()
        begin = self._at
        while self._at < len(self._text) and self._text[self._at] in "<>&|":
            self._at += 1
        is_output = ">" in self._text[begin : self._at]
        is_copy = self._text[self._at - 1] == "&"
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1
        if self._at >= len(self._text) or self._text[self._at] in _BREAKS:
            raise _UnreadableError
        target = self._read_word()
        if target.text != NOWHERE and not (is_copy and target.text.isdigit()):
            self._command.is_plain = False
            if is_output:
                self._command.outputs.append(target)

    def _read_word(self) -> Word:
        parts: list[str] = []
        is_fixed, has_glob = True, False
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _BREAKS:
            char = self._text[self._at]
            if char == "\\":
                parts.append(self._escaped().strip("\n"))
            elif char == "'":
                stop = self._find("'", self._at + 1)
                parts.append(self._text[self._at + 1 : stop])
                self._at = stop + 1
            elif char == '"':
                is_fixed &= self._read_quoted(parts)
            elif char in "$`":
                self._read_expansion(parts)
                is_fixed = False
            else:
                # Braces and a leading tilde are rewritten by the shell before the program sees them.
                is_fixed &= char not in "{}" and not (char == "~" and self._at == start)
                has_glob |= char in _GLOB
                parts.append(char)
                self._at += 1
        word = Word("".join(parts), is_fixed or "".join(parts) in KEYWORDS, has_glob)
        return word if word.text not in {"!", "[["} else Word(word.text)

    def _read_quoted(self, parts: list[str]) -> bool:
        """What stands between double quotes; whether it is fixed."""
        is_fixed = True
        self._at += 1
        while True:
            char = self._text[self._at : self._at + 1]
            if char == "":
                raise _UnreadableError
            if char == '"':
                self._at += 1
                return is_fixed
            if char == "\\":
                escaped = self._escaped()
                # Between double quotes a backslash before anything else is only a backslash.
                kept = escaped if escaped in '$`"\\' else f"\\{escaped}"
                parts.append("" if escaped == "\n" else kept)
            elif char in "$`":
                self._read_expansion(parts)
                is_fixed = False
            else:
                parts.append(char)
                self._at += 1

    def _read_expansion(self, parts: list[str]) -> None:
        """A `$` or a backtick, with what belongs to it; what it would run is found too."""
        start = self._at
        if self._text[self._at] == "`":
            stop = self._find("`", self._at + 1)
            self._take_in(self._text[self._at + 1 : stop].replace("\\`", "`"))
            self._at = stop + 1
        elif self._starts(("$(",)):
            self._at += 1
            self._inner()
        elif self._starts(("${",)):
            stop = self._find("}", self._at)
            # What a default value would run: `${X:-$(rm it)}`.
            if any(char in "$`" for char in self._text[self._at + 2 : stop]):
                raise _UnreadableError
            self._at = stop + 1
        else:
            self._at += 1
        self._command.is_plain = False
        parts.append(self._text[start : self._at])

    def _inner(self) -> None:
        """What stands in round brackets: commands of its own."""
        self._command.is_plain = False
        if self._depth >= DEEPEST:
            raise _UnreadableError
        self._depth += 1
        self._at += 1
        self.read_list(")")
        self._depth -= 1

    def _take_in(self, text: str) -> None:
        inner = read_command(text, self._depth + 1)
        self._command.simples.extend(inner.simples)
        self._command.outputs.extend(inner.outputs)
        self._command.is_opaque |= inner.is_opaque

    def _escaped(self) -> str:
        """The character after a backslash; both are taken."""
        self._at += 2
        if self._at > len(self._text):
            raise _UnreadableError
        return self._text[self._at - 1]

    def _find(self, char: str, start: int) -> int:
        found = self._text.find(char, start)
        while char == "`" and found > 0 and self._text[found - 1] == "\\":
            found = self._text.find(char, found + 1)
        if found < 0:
            raise _UnreadableError
        return found

    def _starts(self, beginnings: tuple[str, ...]) -> bool:
        return self._text.startswith(beginnings, self._at)
