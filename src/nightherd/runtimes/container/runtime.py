"""An agent's runtime round which a container is put: what it starts runs inside, what it says is the same."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import timedelta
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from nightherd.errors import ContainerEngineError, FencedError, NightherdError, RefusedError
from nightherd.files.git_directories import git_directories
from nightherd.model.containers.egress import EgressRules, implied_hosts, proxy_variables
from nightherd.model.containers.engine_traits import UNLIMITED_REMEDY, Users, unlimited_text
from nightherd.model.containers.layout import (
    Layout,
    SharedFiles,
    hides_system,
    lay_out,
    leading_out,
)
from nightherd.model.containers.mounts import is_within
from nightherd.model.containers.policy import ContainerNetwork, ContainerPolicy
from nightherd.model.containers.user import Ids, check_readable, choose_user, owner_outside
from nightherd.model.containers.variables import TOKEN, variables_inside
from nightherd.model.journal.event import (
    ErrorEvent,
    Event,
    ToolResultEvent,
    describe,
    is_terminal,
)
from nightherd.model.journal.system import ContainerStarted, Warned
from nightherd.model.permissions.protected import DOTENV, present_files
from nightherd.model.secrets import knowing
from nightherd.model.workspaces.policy import WorkspaceMode
from nightherd.ports import Runtime, RuntimeRequest
from nightherd.runtimes.claude.installation import InstalledClaude
from nightherd.runtimes.container.containers import Containers, Running, Wanted
from nightherd.runtimes.container.credentials import access_token
from nightherd.runtimes.container.dial import Resolve, resolve
from nightherd.runtimes.container.egress import egress_proxy
from nightherd.runtimes.container.egress_notices import EgressNotices
from nightherd.runtimes.container.ownership import give_tree
from nightherd.runtimes.container.session_files import (
    SessionEnd,
    make_directory,
    needs_directory,
)
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.process import finish, kept_process

CLAUDE_CONFIG = "CLAUDE_CONFIG_DIR"
QUIET = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"
"""Has Claude try no hosts but that of its API."""
SANDBOX = "IS_SANDBOX"
"""Has Claude bypass permissions as root too, where the agent says so: root of a container is not that of this machine."""
VERSION = timedelta(seconds=60)
"""How long `claude --version` may take inside."""

Make = Callable[[Keepers, InstalledClaude | None], Runtime]


class ContainerRuntime:
    """Implements the `Runtime` port for agents with a container."""

    def __init__(
        self,
        containers: Containers,
        make: Make,
        state_dir: Path,
        grace: timedelta,
        *,
        resolve: Resolve = resolve,
        allow_private: bool = False,
    ) -> None:
        """`make` gives the runtime that is put into the container, for keepers that start processes inside.

        With `network: egress`, `resolve` finds the addresses of allowed hosts, which must be public without `allow_private`.
        """
        self._containers = containers
        self._make = make
        self._state_dir = state_dir
        self._grace = grace
        self._resolve = resolve
        self._allow_private = allow_private
        self._versions: dict[str, InstalledClaude] = {}
        """What `claude` an image has, by the image's id."""

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """The events of the run, after one that names its container."""
        policy = request.agent.container
        if policy is None:
            raise ValueError("the agent has no container")
        notices, session = EgressNotices(), SessionEnd(request, self._state_dir)
        async with AsyncExitStack() as stack:
            try:
                opened = self._opened(request, policy, notices)
                running, inner, inside = await stack.enter_async_context(opened)
            except FencedError:
                raise
            except NightherdError as error:
                yield _failure(error)
                return
            yield describe(
                ContainerStarted(
                    container_id=running.id,
                    image=policy.image,
                    image_id=running.image_id,
                    is_reused=running.is_reused,
                )
            )
            if running.unlimited:
                text = f"{unlimited_text(running.unlimited)}: {UNLIMITED_REMEDY}"
                yield describe(Warned(code="container_unlimited"), text)
            async with aclosing(notices.among(inner.execute(inside), request.late)) as events:
                async for event in events:
                    if _has_failed(event) and running.place.is_gone:
                        yield _lost(running)
                        return
                    # After this one, nothing more is asked for: the iteration is closed, not finished.
                    running.is_done = is_terminal(event)
                    if session.is_reached(event) and self._containers.has_lease:
                        config = Path(inside.environment[CLAUDE_CONFIG])
                        await to_thread.run_sync(session.remove, config)
                    yield event

    @asynccontextmanager
    async def _opened(
        self, request: RuntimeRequest, policy: ContainerPolicy, notices: EgressNotices
    ) -> AsyncIterator[tuple[Running, Runtime, RuntimeRequest]]:
        async with self.opened(request, policy, notices) as (running, keepers, inside):
            claude = None
            if request.agent.runtime.needs_claude:
                claude = await self._claude(running, keepers, inside)
            yield running, self._make(keepers, claude), inside

    @asynccontextmanager
    async def opened(
        self, request: RuntimeRequest, policy: ContainerPolicy, notices: EgressNotices
    ) -> AsyncIterator[tuple[Running, Keepers, RuntimeRequest]]:
        """A container for the request, keepers that start processes in it, and the request as it is for those."""
        engine = await self._containers.engine(policy.socket)
        traits = await engine.traits()
        wanted, config = await to_thread.run_sync(
            self._wanted, request, policy, engine.socket, traits.users
        )
        async with (
            self._containers.open(wanted) as running,
            self._egress(
                await self._inside(request, policy, wanted.user, config), policy, running, notices
            ) as inside,
        ):
            keepers = self._containers.keepers.branch(place=running.place)
            try:
                yield running, keepers, inside
            finally:
                await keepers.stop(self._grace)
                self._containers.keepers.discard(keepers)

    @asynccontextmanager
    async def _egress(
        self,
        inside: RuntimeRequest,
        policy: ContainerPolicy,
        running: Running,
        notices: EgressNotices,
    ) -> AsyncIterator[RuntimeRequest]:
        """The request with the variables of a proxy to the allowed hosts, where the network is that."""
        if policy.network is not ContainerNetwork.EGRESS:
            yield inside
            return
        needs_claude = inside.agent.runtime.needs_claude
        rules = EgressRules(
            allowed=policy.allowed_hosts,
            private=policy.private_hosts,
            implied=implied_hosts(inside.environment) if needs_claude else (),
        )
        listener = await to_thread.run_sync(running.place.listen)
        async with egress_proxy(
            listener,
            rules,
            notices.add,
            resolve=self._resolve,
            allow_private=self._allow_private,
        ) as port:
            quiet = {QUIET: "1"} if needs_claude else {}
            environment = {**quiet, **inside.environment, **proxy_variables(port)}
            yield replace(inside, environment=environment)

    def _wanted(
        self, request: RuntimeRequest, policy: ContainerPolicy, socket: str, users: Users
    ) -> tuple[Wanted, Path | None]:
        agent = request.agent
        _check_links(request, policy)
        _check_state(request, os.path.realpath(self._state_dir))
        directory = os.path.realpath(agent.working_directory)
        if not Path(directory).is_dir():
            raise RefusedError(f"there is no directory {directory} to run in")
        if hides_system(directory):
            raise RefusedError(
                f"{directory} cannot be the working directory of a container: it would hide that of the image"
            )
        status = Path(directory).stat()
        worker = Ids(os.geteuid(), os.getegid())
        user = choose_user(
            policy.user, worker=worker, owner=Ids(status.st_uid, status.st_gid), users=users
        )
        engine_owner = Path(socket).stat().st_uid
        owner = owner_outside(user, worker=worker, engine_owner=engine_owner, users=users)
        if agent.runtime.needs_claude:
            check_readable(user, owner, worker)
        if request.workspace is not None and owner is not None:
            give_tree(Path(os.path.realpath(request.workspace)), owner)
        session = request.session_id or request.job_id
        config = None
        if needs_directory(request):
            config = make_directory(self._containers.root, session, owner)
        wanted = Wanted(
            policy=policy,
            agent=agent.name,
            execution=request.execution,
            session=session,
            user=user,
            owner=owner,
            working_directory=directory,
            layout=self._layout(request, policy, directory, config),
            grace=self._grace,
        )
        return wanted, config

    def _layout(
        self, request: RuntimeRequest, policy: ContainerPolicy, directory: str, config: Path | None
    ) -> Layout:
        agent, protected = request.agent, request.protected
        files = present_files(protected, os.path.isfile) if protected is not None else ()
        is_shared = agent.workspace.mode is WorkspaceMode.SHARED
        state = os.path.realpath(self._state_dir)
        # An agent that works below the top of its workspace has its repository there.
        top = () if request.workspace is None else (os.path.realpath(request.workspace),)
        is_read_only = policy.has_read_only_workspace
        more = tuple(map(os.path.realpath, _writable(request)))
        return lay_out(
            SharedFiles(
                working_directory=directory,
                is_read_only=is_read_only,
                directories=(
                    *(() if is_read_only else top),
                    *more,
                    *(() if config is None else (str(config),)),
                ),
                read_only=(
                    # The user's own git would obey hooks and settings that the agent writes there.
                    *(git_directories(directory) if is_shared else ()),
                    *(git for one in more if one not in top for git in git_directories(one)),
                    *(path for path in top if is_read_only and path != directory),
                    *request.borrowed,
                    *(os.path.realpath(plugin.path) for plugin in agent.plugins),
                ),
                protected=tuple(file for file in files if Path(file).name != DOTENV),
                hidden_directories=(state, f"{state}-workspaces"),
                hidden_files=tuple(file for file in files if Path(file).name == DOTENV),
                volumes=tuple(
                    replace(one, source=os.path.realpath(one.source)) for one in policy.volumes
                ),
            ),
            nothing=str(_empty_file(self._containers.root)),
            exists=os.path.lexists,
            real_path=os.path.realpath,
        )

    async def _inside(
        self, request: RuntimeRequest, policy: ContainerPolicy, user: Ids, config: Path | None
    ) -> RuntimeRequest:
        """The request as it is for a runtime whose processes are inside."""
        needs_claude = request.agent.runtime.needs_claude
        token = (
            await to_thread.run_sync(access_token, request.environment) if needs_claude else None
        )
        environment = variables_inside(
            request.environment,
            policy.environment,
            path=await self._containers.image_path(policy),
            has_login=needs_claude,
            access_token=token,
        )
        if needs_claude and config is not None:
            environment[CLAUDE_CONFIG] = str(config)
            if user.uid == 0:
                environment.setdefault(SANDBOX, "1")
        secrets = request.known_secrets()
        if token is not None and environment.get(TOKEN) == token:
            secrets = secrets.joined(knowing({token: TOKEN}))
        return replace(
            request, environment=environment, outside=request.environment, secrets=secrets
        )

    async def _claude(
        self, running: Running, keepers: Keepers, inside: RuntimeRequest
    ) -> InstalledClaude:
        """The `claude` of the image; each image is asked once."""
        known = self._versions.get(running.image_id)
        if known is not None:
            return known
        output = bytearray()
        try:
            async with kept_process(
                ["claude", "--version"],
                cwd="/",
                env={**inside.environment, "DISABLE_AUTOUPDATER": "1"},
                execution=inside.execution,
                stderr=subprocess.DEVNULL,
                keepers=keepers,
            ) as process:
                ending = await finish(process, output.extend, VERSION)
        except OSError as error:
            raise RefusedError(f"the image has no usable claude: {error}") from error
        words = output.decode(errors="replace").split()
        is_fine = ending is not None and ending.returncode == 0 and bool(words)
        installed = InstalledClaude(program="claude", version=words[0] if is_fine else None)
        if is_fine:
            self._versions[running.image_id] = installed
        return installed


def _has_failed(event: Event) -> bool:
    """Whether a container that has ended may be the reason for it."""
    return isinstance(event, ErrorEvent) or (
        isinstance(event, ToolResultEvent) and not event.success
    )


def _lost(running: Running) -> ErrorEvent:
    """The event for a container that ended in the middle of a run; the next attempt gets a new one."""
    return ErrorEvent(
        message=f"container {running.id[:12]} ended while it was used: it was killed or removed, or ran out of memory",
        code="container_gone",
        extra={"recoverable": True},
    )


def _failure(error: NightherdError) -> ErrorEvent:
    """The event for a run that has no container. An engine that cannot be reached may be back later."""
    text = error.message if error.hint is None else f"{error.message}; {error.hint}"
    if isinstance(error, ContainerEngineError):
        return ErrorEvent(message=text, code="container_engine", extra={"recoverable": True})
    return ErrorEvent(message=text, code="container")


def _writable(request: RuntimeRequest) -> list[str]:
    """The directories beside its own that the agent may change: what nightherd lends it is read-only."""
    return [path for path in request.agent.add_dirs if path not in request.borrowed]


def _check_links(request: RuntimeRequest, policy: ContainerPolicy) -> None:
    """Refuse to mount what an agent has chosen by a link in a directory of its own."""
    agent = request.agent
    found = leading_out(
        (
            agent.working_directory,
            *_writable(request),
            *(plugin.path for plugin in agent.plugins),
            *(volume.source for volume in policy.volumes),
        ),
        writable=(request.workspace or agent.working_directory, *_writable(request)),
        real_path=os.path.realpath,
    )
    for path in found:
        raise RefusedError(
            f"{path} is not mounted into a container: it is reached by a link that the agent could have made",
            hint="name the directory itself",
        )


def _check_state(request: RuntimeRequest, state: str) -> None:
    """Refuse directories of the state: they hold what other agents said, and what nightherd relies on."""
    for path in (request.agent.working_directory, *_writable(request)):
        if is_within(os.path.realpath(path), state):
            raise RefusedError(
                f"{path} is not mounted into a container: it is part of the state directory",
                hint="name another directory; the fleet file may give one of these with docker.volumes",
            )


def _empty_file(root: Path) -> Path:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    root.chmod(0o700)
    path = root / "nothing"
    path.touch(mode=0o444)
    return path
