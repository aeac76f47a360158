"""Push: the commit of a workspace, sent to a remote as the workspace's branch."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, urlsplit

import msgspec

from nightherd.errors import InvalidValueError, RefusedError, WorkspaceError
from nightherd.model.workspaces.policy import CloneTerms
from nightherd.model.workspaces.repository import (
    is_same_repository,
    parse_repository,
    without_credentials,
)
from nightherd.ports.workspaces import LandingResult, Work
from nightherd.workspaces.git import URL_USER, Output, Place
from nightherd.workspaces.landing.addresses import is_local, pull_request_url
from nightherd.workspaces.landing.context import LandingContext
from nightherd.workspaces.landing.merge import bring_objects
from nightherd.workspaces.landing.record import LandingRecord
from nightherd.workspaces.landing.repository import HEADS
from nightherd.workspaces.landing.work_commit import WorkCommit, work_commit
from nightherd.workspaces.remotes import DENIED, LONGEST_REASON, login_variables

ORIGIN = "origin"
REMOTE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)*")
RECEIVE_PACK = "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true -c receive.autogc=false receive-pack"
"""How a directory of this machine is written to that only the repository's own configuration names: none of its programs run."""


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """Where to push to."""

    login: CloneTerms
    """The address without credentials, and what it is opened with."""
    name: str | None = None
    """Its name in the repository's configuration; None for an address that a person gave."""

    @property
    def address(self) -> str:
        """What git is given: never credentials."""
        return self.login.url

    @property
    def shown(self) -> str:
        """What people read."""
        return self.name or without_credentials(self.address)


class PushTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How to push."""

    remote: str | None
    login: CloneTerms | None
    """What the agent's repository was cloned with: used where it is pushed to as well."""
    is_forced: bool
    is_dry_run: bool


def push(context: LandingContext, work: Work, terms: PushTerms) -> LandingResult:
    """Push the work. The workspace's branch, and what is known of the remote's, follow when it is there."""
    workspace, scratch, repository = context.workspace, context.scratch, context.known_repository()
    if workspace.branch is None:
        raise WorkspaceError(f"workspace {workspace.id} has no branch")
    remote = _remote(context, terms)
    commit = work_commit(context, work)
    ref = f"{HEADS}{workspace.branch}"
    base = workspace.base_tree
    changes = scratch.diff(base, scratch.tree_of(commit.id)) if base is not None else []
    there = _remote_tip(context, remote, ref)
    result = LandingResult(
        target=f"{remote.shown} {workspace.branch}",
        branch=workspace.branch,
        commit=commit.id,
        paths=tuple(change.path for change in changes),
        url=pull_request_url(remote.address, workspace.branch, _base_branch(context)),
        is_nothing=there == commit.id,
    )
    if there is not None and there != commit.id and not terms.is_forced:
        _check_forward(context, remote, there, commit)
    if terms.is_dry_run:
        return result
    tracking = f"refs/remotes/{remote.name}/{workspace.branch}" if remote.name else None
    if there != commit.id:
        lease = there if tracking is None else (repository.tip(tracking) or there)
        _send(context, remote, commit.id, ref, lease=lease if terms.is_forced else None)
    context.probe("landing.after_push")
    bring_objects(context, commit.id, commit.known)
    record = LandingRecord(
        id=context.id, store=context.store, target=result.target, branch=commit.branch
    )
    context.finisher.commit(record, context.identity())
    if tracking is not None:
        known = repository.tip(tracking)
        if known != commit.id:
            nothing = "0" * len(commit.id)
            repository.move(tracking, commit.id, known or nothing, "nightherd: push")
    return result


def _remote(context: LandingContext, terms: PushTerms) -> Remote:
    """Return the remote: the name or address given, else `origin`."""
    repository = context.known_repository()
    name = terms.remote or ORIGIN
    if name.startswith("-"):
        raise WorkspaceError(f"{name!r} is no remote", hint="--remote NAME or --remote URL")
    if REMOTE_NAME.fullmatch(name) is not None:
        address = repository.remote_address(name)
        if address is not None:
            login = _login(address, terms.login, str(context.top))
            return Remote(login=login, name=name)
        if terms.remote is None or "/" not in name:
            raise WorkspaceError(
                f"the repository '{repository.common}' has no remote {name!r}",
                hint=f"git remote add {name} URL, or name one with --remote",
            )
    return Remote(login=_login(name, terms.login, os.getcwd()))  # noqa: PTH109 (of the person who typed it)


def _login(address: str, known: CloneTerms | None, directory: str) -> CloneTerms:
    """Return the address without credentials, and the credentials for it; a relative path is one in `directory`."""
    if is_local(address) and "://" not in address:
        return CloneTerms(url=os.path.normpath(os.path.join(directory, address)))  # noqa: PTH118
    is_same = known is not None and is_same_repository(address, known.url)
    if known is not None and is_same and urlsplit(address).scheme == urlsplit(known.url).scheme:
        return known
    try:
        parsed = parse_repository(address)
    except InvalidValueError as error:
        raise WorkspaceError(
            f"{without_credentials(address)} cannot be pushed to: {error}"
        ) from error
    if parsed is None:
        return CloneTerms(url=address)
    return CloneTerms(url=parsed.url, username=parsed.username, password=parsed.password)


def _place(context: LandingContext) -> Place:
    return context.scratch.place()


def _remote_tip(context: LandingContext, remote: Remote, ref: str) -> str | None:
    """Return where the branch is at the remote; None when it is not there."""
    doing = f"the remote {remote.shown} cannot be read"
    done = context.scratch.attempt(
        _place(context),
        *("ls-remote", "--", remote.address, ref),
        needs_credentials=True,
        variables=login_variables(remote.login),
    )
    if done.status != 0:
        raise _error(remote, done, doing)
    for line in done.out.decode(errors="replace").splitlines():
        object_id, _, name = line.partition("\t")
        if name == ref:
            return object_id
    return None


def _check_forward(context: LandingContext, remote: Remote, there: str, commit: WorkCommit) -> None:
    """`RefusedError` when the remote's branch has commits that would be lost."""
    if context.commits.has_commit(there) and context.commits.is_ancestor(there, commit.id):
        return
    raise RefusedError(
        f"branch {context.workspace.branch} at {remote.shown} has commits that this one has not ({there[:12]})",
        hint="merge them into the branch first, or replace them with --force",
    )


def _send(
    context: LandingContext, remote: Remote, commit: str, ref: str, *, lease: str | None
) -> None:
    arguments = ["push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"]
    if remote.name is not None and is_local(remote.address):
        arguments.append(f"--receive-pack={RECEIVE_PACK}")
    if lease is not None:
        arguments.append(f"--force-with-lease={ref}:{lease}")
    arguments += ["--", remote.address, f"{commit}:{ref}"]
    context.probe("landing.before_push")
    done = context.scratch.attempt(
        _place(context),
        *arguments,
        needs_credentials=True,
        variables=login_variables(remote.login),
    )
    if done.status == 0:
        return
    if b"stale info" in done.out + done.err:
        raise RefusedError(
            f"branch {ref.removeprefix(HEADS)} at {remote.shown} is not what was seen there last",
            hint="git fetch, and look at it",
        )
    refused = b"\n".join(line for line in done.out.splitlines() if line.startswith(b"!"))
    combined = msgspec.structs.replace(done, err=b"\n".join(filter(None, (refused, done.err))))
    raise _error(remote, combined, f"{remote.shown} cannot be pushed to")


def _error(remote: Remote, done: Output, doing: str) -> WorkspaceError:
    """Return why the remote cannot be used, without credentials, and what to do if that is known."""
    said = URL_USER.sub("", done.err.decode(errors="replace").strip())
    password = remote.login.password
    for secret in (password, quote(password, safe="")) if password else ():
        said = said.replace(secret, "[secret]")
    reason = "it took too long" if done.is_timed_out else said[-LONGEST_REASON:]
    hint = None
    if DENIED.search(reason):
        hint = "check that plain git can push there: its credential helpers and ssh keys are used"
    return WorkspaceError(f"{doing}: {reason or f'git ended with {done.status}'}", hint=hint)


def _base_branch(context: LandingContext) -> str | None:
    """Return the branch that a pull request is for, as far as it is known."""
    base = context.workspace.base
    if base is None:
        return None
    repository = context.known_repository()
    name = base.removeprefix(HEADS).removeprefix(f"{ORIGIN}/")
    refs = (f"{HEADS}{name}", f"refs/remotes/{ORIGIN}/{name}")
    return name if any(repository.tip(ref) is not None for ref in refs) else None
