"""What `mkdir`, `rm`, `mv` and `cp` change, as far as their arguments show."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

import msgspec

from nightherd.model.permissions.shell_command import Simple, Word

FILE_COMMANDS = frozenset({"mkdir", "rm", "mv", "cp"})
TARGET_OPTION = "--target-directory"
CONTENTS = frozenset({"", ".", ".."})
"""Last parts of a source whose content is copied, not the directory itself."""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One path that a command creates, replaces or removes, as it is written."""

    path: str
    is_tree: bool = False
    """With everything below it."""
    is_pattern: bool = False
    """The shell puts the names of files in its place."""
    may_rename: bool = False
    """A directory is moved or copied to this name, with all that is in it, unless a directory is there already."""


class _Words(msgspec.Struct):
    """The words of a command: where to, what, and how."""

    operands: list[Word]
    options: list[str]
    target: Word | None = None
    """The directory that an option names."""

    @property
    def is_recursive(self) -> bool:
        letters = "".join(option[1:] for option in self.options if not option.startswith("--"))
        return any(letter in letters for letter in "rRa") or any(
            one.startswith(("--r", "--a")) for one in self.options
        )

    @property
    def is_exact(self) -> bool:
        """Whether the target is the new name, also where a directory of that name exists."""
        return any(
            option.startswith("--no-t") or (not option.startswith("--") and "T" in option)
            for option in self.options
        )


def changed_paths(simple: Simple) -> Iterator[Changed]:
    """What the command changes; nothing for other programs."""
    if simple.program not in FILE_COMMANDS:
        return
    words = _read(simple.words[1:])
    match simple.program:
        case "mkdir":
            yield from (_changed(word) for word in words.operands)
        case "rm":
            yield from (_changed(word, is_tree=True) for word in words.operands)
        case "mv":
            sources, target = _split(words)
            yield from (_changed(word, is_tree=True) for word in sources)
            yield from _written(sources, target, words, is_tree=True)
        case _:
            sources, target = _split(words)
            yield from _written(sources, target, words, is_tree=words.is_recursive)


def _read(words: tuple[Word, ...]) -> _Words:
    found = _Words([], [])
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.text == "--":
            found.operands += rest
            break
        if not word.text.startswith("-") or word.text == "-":
            found.operands.append(word)
            continue
        found.options.append(word.text)
        name, has_value, value = word.text.partition("=")
        if name.startswith("--t") and TARGET_OPTION.startswith(name):
            found.target = Word(value) if has_value else (rest.pop(0) if rest else None)
        elif not name.startswith("--") and "t" in name:
            value = word.text.partition("t")[2]
            found.target = Word(value) if value else (rest.pop(0) if rest else None)
    return found


def _split(words: _Words) -> tuple[list[Word], Word | None]:
    if words.target is not None or not words.operands:
        return words.operands, words.target
    return words.operands[:-1], words.operands[-1]


def _written(
    sources: list[Word], target: Word | None, words: _Words, *, is_tree: bool
) -> Iterator[Changed]:
    """The target as a file, and as a directory that the sources are put into."""
    if target is None:
        return
    yield Changed(path=target.text, is_pattern=target.has_glob, may_rename=is_tree)
    for source in sources:
        name = source.text.rpartition("/")[2]
        if name in CONTENTS or words.is_exact:
            yield _changed(target, is_tree=is_tree)
        if name not in CONTENTS:
            yield Changed(
                path=posixpath.join(target.text, name),
                is_tree=is_tree,
                is_pattern=target.has_glob or source.has_glob,
            )


def _changed(word: Word, *, is_tree: bool = False) -> Changed:
    return Changed(path=word.text, is_tree=is_tree, is_pattern=word.has_glob)
