"""The image that containers of tests are made from: Debian's own programs of this machine, imported as one layer."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlencode

from docker_engine import DockerEngine, one_at_a_time

REPOSITORY = "nightherd/test"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = [
    "python3",
    "sh",
    "bash",
    "env",
    "git",
    "grep",
    "sed",
    "ps",
    "cat",
    "chmod",
    "chown",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "du",
    "echo",
    "false",
    "head",
    "id",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mkfifo",
    "mktemp",
    "mv",
    "printf",
    "pwd",
    "readlink",
    "rm",
    "rmdir",
    "seq",
    "sleep",
    "sort",
    "stat",
    "tail",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "uname",
    "wc",
    "whoami",
    "yes",
    "rg",
]
"""Those that this machine does not have are left out."""
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
LEFT_OUT = frozenset(
    [
        "test",
        "tests",
        "idlelib",
        "lib2to3",
        "ensurepip",
        "tkinter",
        "turtledemo",
        "pydoc_data",
        "distutils",
        "dist-packages",
    ]
)
"""Parts of Python's library that no test runs in a container."""
DIRECTORIES = {
    "tmp": 0o1777, "var/tmp": 0o1777, "root": 0o700, "home": 0o755, "run": 0o755, "proc": 0o755, "sys": 0o755,
    "dev": 0o755, "workspace": 0o755, "usr/local/bin": 0o755,
}  # fmt: skip
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/home/agent:/bin/bash\n",
    "etc/group": "root:x:0:\nagent:x:1000:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def ensure_image(engine: DockerEngine) -> str:
    """Return the name of the test image, imported into `engine` once."""
    paths = list(contents())
    tag = f"{REPOSITORY}:{_digest(paths)}"
    with one_at_a_time(engine.home / "image.lock"):
        if engine.request("GET", f"/images/{tag}/json")[0] == 404:
            _import(engine, tag, paths)
    return tag


def _import(engine: DockerEngine, tag: str, paths: Sequence[Path]) -> None:
    archive = engine.home / "image.tar"
    with archive.open("wb") as file:
        write(file, paths)
    # With its tag: Podman ignores `tag` here.
    query = [("fromSrc", "-"), ("repo", tag), ("changes", f"ENV PATH={PATH}")]
    with archive.open("rb") as file:
        status, answer = engine.request(
            "POST", f"/images/create?{urlencode(query)}", file, content_type="application/x-tar"
        )
    archive.unlink()
    last = json.loads(answer.splitlines()[-1])
    assert status == 200, answer
    assert "error" not in last, last


def contents() -> Iterator[Path]:
    """Return the files to take from this machine: programs, what they load, and their libraries."""
    # Debian's own, not the environment that the tests run in: that one is not below /usr.
    programs = [found for name in PROGRAMS if (found := shutil.which(name, path=PATH))]
    version = _output([shutil.which("python3", path=PATH) or "python3", "-I", "-S", "-c", VERSION])
    library = Path(f"/usr/lib/python{version}")
    trees = [library, Path("/usr/lib/git-core"), Path("/usr/share/git-core/templates")]
    files = [Path(one) for one in programs]
    files += [one for tree in trees for one in _walk(tree)]
    files += [CERTIFICATES] if CERTIFICATES.exists() else []
    # The real claude is not part of it, but can be added to it, or mounted into its containers.
    binaries = [one for one in (*files, *bundled_claude()) if _is_binary(one)]
    seen: set[Path] = set()
    for path in (*files, *_loaded(binaries)):
        for one in _with_targets(path):
            if one not in seen:
                seen.add(one)
                yield one


def bundled_claude() -> list[Path]:
    """Return the program of the Claude Agent SDK, if it is installed."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    places = spec.submodule_search_locations if spec is not None else None
    programs = [Path(place) / "_bundled" / "claude" for place in places or []]
    return [one for one in programs if one.exists()]


VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def _walk(tree: Path) -> Iterator[Path]:
    for directory, below, names in os.walk(tree):
        below[:] = [name for name in below if name not in LEFT_OUT and "config-" not in name]
        yield from (Path(directory) / name for name in names)


def _is_binary(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _loaded(binaries: Sequence[Path]) -> Iterator[Path]:
    """Return the shared libraries of all these programs, and what loads them."""
    unique = sorted({one.resolve() for one in binaries})
    for word in _output(["ldd", *map(str, unique)]).split():
        if word.startswith("/") and not word.endswith(":"):
            yield Path(word)


def _with_targets(path: Path) -> Iterator[Path]:
    """Return a path without links in its directories, and all that it leads to."""
    here = path.parent.resolve() / path.name
    yield here
    if here.is_symlink():
        yield from _with_targets(here.parent / here.readlink())


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(paths):
        status = path.lstat()
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:12]


def write(file: io.BufferedIOBase, paths: Sequence[Path]) -> None:
    """Write the archive: these files, the links that Debian has at the top, and what a container needs besides."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in ("bin", "sbin", "lib", "lib32", "lib64"):
            top = Path("/", name)
            if top.is_symlink():
                archive.add(top, arcname=name, recursive=False)
        # Every one is named: a rootless engine makes the others so that nobody may enter them.
        for name, mode in {**_around(paths), **DIRECTORIES}.items():
            _add(archive, name, tarfile.DIRTYPE, mode)
        _add(archive, "home/agent", tarfile.DIRTYPE, 0o700, owner=1000)
        for name, text in FILES.items():
            _add(archive, name, tarfile.REGTYPE, 0o644, text.encode())
        for path in paths:
            archive.add(path, arcname=str(path).lstrip("/"), recursive=False)


def _around(paths: Sequence[Path]) -> dict[str, int]:
    """Return the directories around all that is in the image, from the top down, with their mode."""
    names = [*DIRECTORIES, *FILES, *(str(path).lstrip("/") for path in paths)]
    around = {str(parent) for name in names for parent in Path(name).parents}
    return dict.fromkeys(sorted(around - {"."}), 0o755)


def _add(
    archive: tarfile.TarFile, name: str, kind: bytes, mode: int, data: bytes = b"", owner: int = 0
) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, len(data)
    entry.uid = entry.gid = owner
    archive.addfile(entry, io.BytesIO(data))
