"""The bootstrap: one real run from a fresh checkout, and every way round a Python that lacks something."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from components import Components

PASSED_ON = ("PROXY", "SSL_", "PIP_", "UV_", "_CA_BUNDLE")
NEEDED = ("sh", "dirname", "id", "cat", "chmod", "mkdir")

FAKE_UV = """#!/bin/sh
case "$1" in
    --version) echo "uv 99.0.0" ;;
    sync) echo "$@" >>"{log}"; mkdir -p "{root}/.venv/bin"; : >"{root}/.venv/bin/python" ;;
esac
"""


def files_of_a_clone(repository: Path) -> list[str]:
    """What git would clone; in a source archive, which has no history, everything that was not made here."""
    if not (repository / ".git").exists():
        made = {".venv", ".tools", ".mypy_cache", ".ruff_cache", ".pytest_cache", "__pycache__"}
        files = (path for path in repository.rglob("*") if path.is_file())
        inside = (path.relative_to(repository) for path in files)
        return [str(path) for path in inside if not made.intersection(path.parts)]
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached"]
    listed = subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout
    return [name for name in listed.decode().split("\0") if name and (repository / name).exists()]


def copy(names: list[str], repository: Path, target: Path) -> Path:
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(repository / name, target / name)
    return target


@pytest.fixture
def clone(repository: Path, components: Components, tmp_path: Path) -> Path:
    """What a fresh clone would hold, and nothing that was made here."""
    components.program("git")
    return copy(files_of_a_clone(repository), repository, tmp_path / "checkout")


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """As much of a checkout as the bootstrap itself reads."""
    scripts = [
        f"scripts/{path.name}" for path in (repository / "scripts").iterdir() if path.is_file()
    ]
    return copy([*scripts, "pyproject.toml", "uv.lock"], repository, tmp_path / "checkout")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH of one directory: the few programs the scripts use, and what the test puts there."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (directory / name).symlink_to(found)
    return directory


def put(directory: Path, name: str, script: str) -> None:
    (directory / name).unlink(missing_ok=True)
    (directory / name).write_text(script)
    (directory / name).chmod(0o755)


def minimal_environment(path: str, home: Path | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if any(p in name for p in PASSED_ON)}
    return {**kept, "PATH": path, **({"HOME": str(home)} if home else {})}


def bootstrap(checkout: Path, tools: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts/bootstrap"],
        env=minimal_environment(str(tools), None),
        capture_output=True,
        text=True,
    )


def fake_uv(checkout: Path, log: Path) -> str:
    return FAKE_UV.format(root=checkout, log=log)


def fake_python(*, venv: str, pip: str) -> str:
    """This Python, but for `-m venv` and `-m pip`, which run the given lines instead."""
    return f"""#!/bin/sh
case "$*" in
    "-m venv"*) {venv} ;;
    "-m pip"*) {pip} ;;
    *) exec "{sys.executable}" "$@" ;;
esac
"""


NO_ENSUREPIP = 'echo "ensurepip is not available" >&2; exit 1'
NO_PIP = 'echo "No module named pip" >&2; exit 1'


def can_reach_pypi() -> bool:
    try:
        socket.create_connection(("pypi.org", 443), timeout=5).close()
    except OSError:
        return False
    return True


def test_fresh_checkout_becomes_ready_even_when_two_ask_at_once(
    clone: Path, components: Components, tools: Path, tmp_path: Path
) -> None:
    (tools / "python3").symlink_to(sys.executable)
    environment = minimal_environment(str(tools), tmp_path)
    cache = Path.home() / ".cache/uv"
    if cache.is_dir():
        environment.setdefault("UV_CACHE_DIR", str(cache))

    both = [
        subprocess.Popen(
            [clone / "scripts/bootstrap"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate()[0] for process in both]
    if any(process.returncode for process in both) and not can_reach_pypi():
        components.absent("PyPI", "connect this machine to it, or set UV_DEFAULT_INDEX to a mirror")

    assert [process.returncode for process in both] == [0, 0], said
    assert sum("making .venv" in text for text in said) == 1, said
    found = subprocess.run(
        [clone / ".venv/bin/python", "-c", "import nightherd; print(nightherd.__path__[0])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert Path(found) == clone / "src/nightherd"
    assert (clone / ".venv/bin/nightherd").exists()

    # Ready means ready: no uv, no network and no word the second time.
    for uv in clone.glob(".tools/*/bin/uv"):
        uv.unlink()
    again = bootstrap(clone, tools)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_environment_is_made_again_only_when_the_project_files_change(
    checkout: Path, tools: Path, tmp_path: Path
) -> None:
    log = tmp_path / "uv.log"
    (tools / "python3").symlink_to(sys.executable)
    put(tools, "uv", fake_uv(checkout, log))

    for _ in range(3):
        assert bootstrap(checkout, tools).returncode == 0
    assert len(log.read_text().splitlines()) == 1

    with (checkout / "uv.lock").open("a") as lock:
        lock.write("# changed\n")
    assert bootstrap(checkout, tools).returncode == 0
    assert len(log.read_text().splitlines()) == 2


def test_failed_synchronisation_is_tried_in_other_ways_and_leaves_no_stamp(
    checkout: Path, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "uv.log"
    (tools / "python3").symlink_to(sys.executable)
    for name in ("UV_SYSTEM_CERTS", "UV_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    told = "certificates ${UV_SYSTEM_CERTS:-0} offline ${UV_OFFLINE:-0}"
    refuses = (
        f'case "$1" in --version) echo "uv 99.0.0" ;; *) echo "{told}" >>"{log}"; exit 2 ;; esac'
    )
    put(tools, "uv", f"#!/bin/sh\n{refuses}\n")

    done = bootstrap(checkout, tools)

    assert done.returncode == 1
    assert "uv could not make .venv" in done.stderr
    assert "Traceback" not in done.stderr
    assert log.read_text().splitlines() == [
        "certificates 0 offline 0",
        "certificates 1 offline 0",
        "certificates 0 offline 1",
    ]
    assert not (checkout / ".venv/.made-from").exists()


def test_uv_older_than_the_project_accepts_is_not_used(
    checkout: Path, tools: Path, tmp_path: Path
) -> None:
    log = tmp_path / "uv.log"
    put(tools, "uv", f'#!/bin/sh\necho "$@" >>"{log}"\necho "uv 0.1.0"\n')
    put(tools, "python3", fake_python(venv=NO_ENSUREPIP, pip=NO_PIP))

    done = bootstrap(checkout, tools)

    assert done.returncode == 1
    assert "sync" not in log.read_text()


def test_python_without_ensurepip_gets_uv_from_its_own_pip(
    checkout: Path, tools: Path, tmp_path: Path
) -> None:
    log = tmp_path / "uv.log"
    put(tmp_path, "ready-uv", fake_uv(checkout, log))
    site = checkout / ".tools/site"
    pip = f'mkdir -p "{site}/bin"; cat "{tmp_path}/ready-uv" >"{site}/bin/uv"; chmod +x "{site}/bin/uv"'
    put(tools, "python3", fake_python(venv=NO_ENSUREPIP, pip=f'echo "$@" >"{log}.pip"; {pip}'))

    done = bootstrap(checkout, tools)

    assert done.returncode == 0, done.stderr
    assert f"--target {site}" in Path(f"{log}.pip").read_text()
    assert log.read_text().startswith("sync --locked")


def test_python_without_ensurepip_and_pip_is_completed_by_apt_when_root(
    checkout: Path, tools: Path, tmp_path: Path
) -> None:
    log = tmp_path / "uv.log"
    put(tmp_path, "ready-uv", fake_uv(checkout, log))
    venv = checkout / ".tools/venv/bin"
    # Once apt has run, `-m venv` makes a venv whose python "installs" uv by being there.
    works = f'mkdir -p "{venv}"; cat "{tmp_path}/ready-uv" >"{venv}/uv"; chmod +x "{venv}/uv"'
    works += f'; printf \'#!/bin/sh\\n\' >"{venv}/python"; chmod +x "{venv}/python"'
    after_apt = f'if [ -e "{tmp_path}/apt" ]; then {works}; else {NO_ENSUREPIP}; fi'
    put(tools, "python3", fake_python(venv=after_apt, pip=NO_PIP))
    put(tools, "id", "#!/bin/sh\necho 0\n")
    put(tools, "apt-get", f'#!/bin/sh\necho "$@" >>"{tmp_path}/apt"\n')

    done = bootstrap(checkout, tools)

    assert done.returncode == 0, done.stderr
    assert "python3-venv" in (tmp_path / "apt").read_text()


@pytest.mark.parametrize("user", [0, 1000])
def test_python_that_cannot_be_completed_is_told_exactly_what_to_install(
    checkout: Path, tools: Path, user: int
) -> None:
    put(tools, "python3", fake_python(venv=NO_ENSUREPIP, pip=NO_PIP))
    put(tools, "id", f"#!/bin/sh\necho {user}\n")
    put(tools, "apt-get", "#!/bin/sh\nexit 100\n")

    done = bootstrap(checkout, tools)

    assert done.returncode == 1
    assert "sudo apt-get install -y python3-venv" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (checkout / ".venv").exists()


def test_without_a_way_to_pypi_no_package_of_the_system_is_blamed(
    checkout: Path, tools: Path, tmp_path: Path
) -> None:
    venv, unreachable = checkout / ".tools/venv/bin", 'echo "no route to host" >&2; exit 1'
    works = f'mkdir -p "{venv}"; : >"{venv}/pip"; printf \'#!/bin/sh\\n{unreachable}\\n\' >"{venv}/python"'
    put(tools, "python3", fake_python(venv=f'{works}; chmod +x "{venv}/python"', pip=unreachable))
    put(tools, "id", "#!/bin/sh\necho 0\n")
    put(tools, "apt-get", f'#!/bin/sh\necho "$@" >>"{tmp_path}/apt"\n')

    done = bootstrap(checkout, tools)

    assert done.returncode == 1
    assert "no route to host" in done.stderr
    assert "PyPI cannot be reached, it seems: check the network and any proxy" in done.stderr
    assert "python3-venv" not in done.stderr
    assert not (tmp_path / "apt").exists()


def test_checkout_that_cannot_be_written_is_said_to_be_so(checkout: Path, tools: Path) -> None:
    (tools / "python3").symlink_to(sys.executable)
    (checkout / ".tools").write_text("")

    done = bootstrap(checkout, tools)

    assert done.returncode == 1
    assert f"{checkout / '.tools'}" in done.stderr
    assert "Traceback" not in done.stderr


def test_python_that_is_too_old_is_named_with_what_to_install(checkout: Path, tools: Path) -> None:
    put(
        tools,
        "python3",
        '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" && exit 0\nexit 1\n',
    )

    done = bootstrap(checkout, tools)

    assert done.returncode == 1
    assert "needs Python 3.11 or newer; here is: Python 3.9.2" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr
    assert not (checkout / ".tools").exists()


def test_newer_python_beside_an_old_python3_is_found(
    checkout: Path, tools: Path, tmp_path: Path
) -> None:
    put(tools, "python3", "#!/bin/sh\nexit 1\n")
    (tools / "python3.12").symlink_to(sys.executable)
    put(tools, "uv", fake_uv(checkout, tmp_path / "uv.log"))

    assert bootstrap(checkout, tools).returncode == 0


def test_missing_python_is_installed_by_apt_when_root(
    checkout: Path, tools: Path, tmp_path: Path
) -> None:
    ln = shutil.which("ln")
    put(tools, "id", "#!/bin/sh\necho 0\n")
    install = f'case "$*" in *install*) {ln} -s "{sys.executable}" "{tools}/python3" ;; esac'
    put(tools, "apt-get", f"#!/bin/sh\n{install}\n")
    put(tools, "uv", fake_uv(checkout, tmp_path / "uv.log"))

    done = bootstrap(checkout, tools)

    assert done.returncode == 0, done.stderr


def test_cache_moves_into_the_checkout_when_there_is_no_home(
    checkout: Path, tools: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    (tools / "python3").symlink_to(sys.executable)
    shows = f'#!/bin/sh\necho "$UV_CACHE_DIR $UV_PYTHON_DOWNLOADS" >"{seen}"\n'
    put(tools, "uv", shows + fake_uv(checkout, tmp_path / "uv.log").removeprefix("#!/bin/sh\n"))
    environment = {"PATH": str(tools)}

    subprocess.run([checkout / "scripts/bootstrap"], env=environment, check=True)

    assert seen.read_text().split() == [str(checkout / ".tools/uv-cache"), "never"]


def test_packages_the_tests_need_never_stop_the_tests(
    checkout: Path, tools: Path, tmp_path: Path
) -> None:
    command = [checkout / "scripts/test-packages"]
    without_apt = subprocess.run(
        command, env={"PATH": str(tools)}, capture_output=True, text=True, check=True
    )
    assert "!! missing: git" in without_apt.stderr

    put(tools, "id", "#!/bin/sh\necho 0\n")
    put(tools, "apt-get", f'#!/bin/sh\necho "$@" >>"{tmp_path}/apt"\n')
    subprocess.run(command, env={"PATH": str(tools)}, capture_output=True, check=True)
    assert "install -y -qq --no-install-recommends git" in (tmp_path / "apt").read_text()
