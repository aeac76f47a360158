"""Which files of the host a container sees: those it is given, and what is protected in them."""

from __future__ import annotations

from nightherd.model.containers.layout import SharedFiles, lay_out, leading_out
from nightherd.model.containers.policy import Mount


def seen(shared: SharedFiles, links: dict[str, str] | None = None) -> dict[str, tuple[str, bool]]:
    """By path inside: the path of the host, and whether it is read-only. Every file exists."""
    layout = lay_out(
        shared,
        nothing="/nothing",
        exists=lambda path: True,
        real_path=lambda path: (links or {}).get(path, path),
    )
    return {mount.target: (mount.source, mount.is_read_only) for mount in layout.mounts}


def test_working_directory_has_its_own_path_and_another_name() -> None:
    assert seen(SharedFiles(working_directory="/srv/shop")) == {
        "/srv/shop": ("/srv/shop", False),
        "/workspace": ("/srv/shop", False),
    }


def test_protected_file_is_read_only_under_each_name_it_has_inside() -> None:
    shared = SharedFiles(working_directory="/srv/shop", protected=("/srv/shop/nightherd.yaml",))

    assert seen(shared)["/srv/shop/nightherd.yaml"] == ("/srv/shop/nightherd.yaml", True)
    assert seen(shared)["/workspace/nightherd.yaml"] == ("/srv/shop/nightherd.yaml", True)


def test_nothing_is_mounted_only_because_it_is_protected() -> None:
    """Fleet files elsewhere, and words of hooks such as `.`, `..`, `/etc` and /bin/sh."""
    words = ("/srv/fleet/nightherd.yaml", "/srv/shop", "/srv/shop/..", "/", "/etc", "/bin/sh")
    shared = SharedFiles(working_directory="/srv/shop", protected=words)

    assert set(seen(shared)) == {"/srv/shop", "/workspace"}


def test_directory_that_may_be_read_is_mounted_wherever_it_is() -> None:
    shared = SharedFiles(working_directory="/srv/shop", read_only=("/srv/plugins/a",))

    assert seen(shared)["/srv/plugins/a"] == ("/srv/plugins/a", True)


def test_what_is_protected_and_hidden_is_so_in_a_volume_too() -> None:
    shared = SharedFiles(
        working_directory="/srv/desk",
        protected=("/srv/shop/nightherd.yaml",),
        hidden_files=("/srv/shop/.env",),
        hidden_directories=("/srv/shop/.nightherd",),
        volumes=(Mount(source="/srv/shop", target="/shop"),),
    )
    layout = lay_out(shared, nothing="/nothing", exists=lambda path: True)

    assert seen(shared)["/shop/nightherd.yaml"] == ("/srv/shop/nightherd.yaml", True)
    assert seen(shared)["/shop/.env"] == ("/nothing", True)
    assert set(layout.tmpfs) == {"/shop/.nightherd"}
    assert "/shop" not in seen(shared), "the volume itself is mounted by the policy"


def test_link_that_an_agent_has_put_in_the_place_of_a_protected_file_is_not_followed() -> None:
    shared = SharedFiles(
        working_directory="/srv/shop", read_only=("/srv/shop/.git",), protected=("/srv/shop/run",)
    )

    found = seen(shared, {"/srv/shop/.git": "/home/me/.ssh", "/srv/shop/run": "/home/me/key"})

    assert set(found) == {"/srv/shop", "/workspace"}


def test_path_below_a_directory_of_the_agent_must_lie_there() -> None:
    links = {
        "/srv/shop": "/data/shop",
        "/srv/shop/in": "/data/shop/deep/in",
        "/srv/shop/out": "/home/me",
    }

    found = leading_out(
        ("/srv/shop", "/srv/shop/in", "/srv/shop/./out", "/opt/link", "/srv/shopping"),
        writable=("/srv/shop",),
        real_path=lambda path: links.get(path, "/elsewhere" if path == "/opt/link" else path),
    )

    assert found == ["/srv/shop/out"]
