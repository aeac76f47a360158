"""Options for the engine that would undo the hardening of a container.

The engine reads the names of options in any case and the last of two spellings counts, so names are compared folded. An
option that is null is read as if it had its zero value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nightherd.errors import InvalidValueError
from nightherd.model.containers.mounts import (
    check_target,
    is_tmpfs_option,
    is_unsafe_source,
    parse_volume,
)
from nightherd.model.containers.policy import ContainerNetwork

NO_NEW_PRIVILEGES = "no-new-privileges:true"
NO_NEW_PRIVILEGES_SPELLINGS = frozenset(
    {"no-new-privileges", NO_NEW_PRIVILEGES, "no-new-privileges=true"}
)
LOOPBACK = ("127.0.0.1", "::1")
FOREIGN_NETWORKS = ("container:", "ns:")


def undone_hardening(
    host_config: Mapping[str, Any],
    *,
    network: ContainerNetwork = ContainerNetwork.BRIDGE,
    socket: str | None = None,
) -> list[str]:
    """The names, as they are spelled, of the options that would undo hardening. Options that are not known pass."""
    return [
        name
        for name, value in host_config.items()
        if ((rule := RULES.get(name.casefold())) is not None and rule(value))
        or (name.casefold() == "networkmode" and is_wider_network(value, network))
        or (name.casefold() in MOUNTS and MOUNTS[name.casefold()](value, socket))
    ]  # fmt: skip


def is_wider_network(mode: Any, network: ContainerNetwork) -> bool:
    """Whether a network mode of the engine gives more than the container's own `network`."""
    if network is ContainerNetwork.HOST or mode == "none":
        return False
    if network is not ContainerNetwork.BRIDGE:
        return True
    return mode == "host" or str(mode).startswith(FOREIGN_NETWORKS)


def _is_set(value: Any) -> bool:
    return bool(value)


def _is_given(value: Any) -> bool:
    return True


def _is_not_true(value: Any) -> bool:
    return value is not True


def _is_not_positive(value: Any) -> bool:
    return not isinstance(value, int) or isinstance(value, bool) or value <= 0


def _is_negative(value: Any) -> bool:
    return value is not None and (not isinstance(value, int) or value < 0)


def _is_none_of(*values: str | None) -> Callable[[Any], bool]:
    return lambda value: value not in values


def _keeps_capabilities(value: Any) -> bool:
    return "ALL" not in (str(one).upper() for one in _items(value))


def _weakens_security(value: Any) -> bool:
    options = {str(one) for one in _items(value)}
    return not options or not options <= NO_NEW_PRIVILEGES_SPELLINGS


def _adds_root_group(value: Any) -> bool:
    return any(str(one) in {"0", "root"} for one in _items(value))


def _restarts(value: Any) -> bool:
    return _folded(value).get("name") not in (None, "", "no")


def _publishes(value: Any) -> bool:
    """Whether a port is published on another interface than loopback."""
    if not isinstance(value, Mapping):
        return bool(value)
    bindings = (one for found in value.values() for one in _items(found))
    return any(_folded(one).get("hostip") not in LOOPBACK for one in bindings)


def _binds(value: Any, socket: str | None) -> bool:
    return any(_is_unsafe_bind(one, socket) for one in _items(value))


def _is_unsafe_bind(text: Any, socket: str | None) -> bool:
    try:
        mount = parse_volume(str(text))
    except InvalidValueError:
        return True  # further options, such as the propagation of mounts
    return is_unsafe_source(mount.source, socket)


def _mounts(value: Any, socket: str | None) -> bool:
    return any(_is_unsafe_mount(_folded(one), socket) for one in _items(value))


def _is_unsafe_mount(mount: Mapping[str, Any], socket: str | None) -> bool:
    if not _is_free(mount.get("target")):
        return True
    match mount.get("type"):
        case "tmpfs":
            return bool(_folded(mount.get("tmpfsoptions")).get("options"))
        case "volume":
            # A driver's options can turn a volume into a mount of anything.
            return bool(_folded(mount.get("volumeoptions")).get("driverconfig"))
        case "bind":
            spread = _folded(mount.get("bindoptions")).get("propagation")
            is_private = spread in (None, "", "private", "rprivate")
            return not is_private or is_unsafe_source(str(mount.get("source")), socket)
        case _:
            return True


def _tmpfs(value: Any, socket: str | None) -> bool:
    if not isinstance(value, Mapping):
        return bool(value)
    return any(
        not _is_free(target) or not all(map(is_tmpfs_option, filter(None, str(one).split(","))))
        for target, one in value.items()
    )


def _is_free(target: Any) -> bool:
    try:
        check_target(str(target))
    except InvalidValueError:
        return False
    return True


def _items(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def _folded(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name).casefold(): one for name, one in value.items()}


RULES: dict[str, Callable[[Any], bool]] = {
    "privileged": _is_set,
    "capadd": _is_set,
    "capabilities": _is_given,
    "capdrop": _keeps_capabilities,
    "securityopt": _weakens_security,
    "readonlyrootfs": _is_not_true,
    "maskedpaths": _is_given,
    "readonlypaths": _is_given,
    "devices": _is_set,
    "devicecgrouprules": _is_set,
    "devicerequests": _is_set,
    "pidmode": _is_none_of("", None),
    "utsmode": _is_none_of("", None),
    "usernsmode": _is_none_of("", None),
    "ipcmode": _is_none_of("private", "none"),
    "cgroupnsmode": _is_none_of("", None, "private"),
    "cgroup": _is_set,
    "cgroupparent": _is_set,
    "runtime": _is_none_of("", None, "runc"),
    "pidslimit": _is_not_positive,
    "memory": _is_not_positive,
    "memoryswap": _is_not_positive,
    "cpuquota": _is_not_positive,
    "nanocpus": _is_not_positive,
    "oomkilldisable": _is_set,
    "oomscoreadj": _is_negative,
    "groupadd": _adds_root_group,
    "volumesfrom": _is_set,
    "volumedriver": _is_set,
    "publishallports": _is_set,
    "portbindings": _publishes,
    # PID 1 is our keeper, and it alone decides when a container ends.
    "init": _is_set,
    "autoremove": _is_set,
    "restartpolicy": _restarts,
}
"""By the folded name of an option: whether a value of it undoes hardening."""
MOUNTS: dict[str, Callable[[Any, str | None], bool]] = {
    "binds": _binds,
    "mounts": _mounts,
    "tmpfs": _tmpfs,
}
