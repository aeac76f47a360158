"""The files of ours that run inside a container: a copy that every user can read, made once."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from functools import cache
from pathlib import Path

LIBRARY = "/opt/nightherd"
"""Where they are inside."""
PACKAGE = Path(__file__).parents[2]
FILES = (
    "runtimes/keeper/census.py",
    "runtimes/keeper/guard.py",
    "runtimes/keeper/instructions.py",
    "runtimes/container/init.py",
    "runtimes/tools/file_actions.py",
    "runtimes/tools/search_program.py",
)
BOOT = """
import sys
for name in ("nightherd", "nightherd.runtimes", "nightherd.runtimes.keeper", "nightherd.runtimes.container"):
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [sys.argv[1] + "/" + name.replace(".", "/")]
from nightherd.runtimes.container.init import main
main()
"""
"""Gives process 1 empty packages to find its modules in."""


def command(library: str, directory: str) -> list[str]:
    """What process 1 is: `library` and `directory` (of its socket) are paths inside."""
    return ["python3", "-I", "-S", "-c", BOOT, library, directory]


@cache
def _contents() -> tuple[str, dict[str, bytes]]:
    contents = {name: (PACKAGE / name).read_bytes() for name in FILES}
    digest = hashlib.sha256(
        b"\0".join(part for pair in contents.items() for part in (pair[0].encode(), pair[1]))
    )
    return digest.hexdigest()[:16], contents


def provide_library(root: Path) -> Path:
    """Return the directory below `root` that has them, of exactly this version."""
    digest, contents = _contents()
    library = root / digest
    if library.is_dir():
        return library
    root.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{digest}-", dir=root))
    try:
        for name, content in contents.items():
            path = made / "nightherd" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for path in (made, *made.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        made.rename(library)
    except OSError:
        if not library.is_dir():  # else another worker was faster
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return library
