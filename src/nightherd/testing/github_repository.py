"""One repository of the loopback GitHub: issues, labels, comments, tags and refs, in memory."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from nightherd.ports import Clock

ID = 1
"""The id of the repository."""
ELSEWHERE = 2
"""The id of the one that issues are moved to."""
USER = 1
"""The id of the account that the token is of."""
COMMIT = hashlib.sha1(b"a commit").hexdigest()  # noqa: S324 (git's own)


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


NOT_FOUND = Reply(404, {"message": "Not Found"})


class GithubRepository:
    """What the server knows. Change it as people would."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._clock = clock
        self.name = name
        self.issues: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.refs: dict[str, str] = {}
        self.tags: dict[str, dict[str, Any]] = {}
        self.is_empty = False
        self.former_names: set[str] = set()
        self._moved: dict[int, int] = {}
        self._next_comment = 1000

    def rename(self, name: str) -> None:
        """Somebody renames the repository: requests about its former name are redirected."""
        self.former_names.add(self.name)
        self.name = name

    def transfer(self, number: int) -> None:
        """Somebody moves an issue to another repository: requests about it are redirected there."""
        del self.issues[number], self.comments[number]
        self._moved[number] = ELSEWHERE

    def say(self, number: int, text: str, *, user: int = 2, type: str = "User") -> None:
        """Somebody comments on an issue; the user with the id 1 is the one of the token."""
        self.comments[number].append(self._new_comment(text, user, type))

    def open_issue(
        self,
        number: int,
        title: str = "The fence is broken",
        *labels: str,
        body: str | None = "A plank is missing.",
        is_pull_request: bool = False,
    ) -> None:
        """Somebody opens an issue, or a pull request."""
        self.issues[number] = {
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "locked": False,
            "labels": list(labels),
            "user": {"login": "rosa"},
            "html_url": f"https://github.com/{self.name}/issues/{number}",
            "created_at": "2026-03-01T12:00:00Z",
            **({"pull_request": {"url": "https://api.github.com/..."}} if is_pull_request else {}),
        }
        self.comments.setdefault(number, [])

    def labels(self, number: int) -> list[str]:
        """The labels of an issue."""
        return list(self.issues[number]["labels"])

    def is_open(self, number: int) -> bool:
        """Whether an issue is open."""
        return bool(self.issues[number]["state"] == "open")

    def texts(self, number: int) -> list[str]:
        """What was commented, in order."""
        return [str(one["body"]) for one in self.comments[number]]

    def answer(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Reply:
        """Do what is asked and return the reply."""
        if (method, path) == ("GET", "/user"):
            return Reply(200, {"id": USER, "login": "mender", "type": "User"})
        rest = self._below(path)
        if rest is None:
            return self._redirected(method, path)
        if method == "GET" and not rest:
            return Reply(200, {"id": ID, "full_name": self.name})
        moved = re.match(r"issues/(\d+)", rest)
        if moved is not None and int(moved[1]) in self._moved:
            return _redirect(method, f"/repositories/{self._moved[int(moved[1])]}/issues/1")
        for wanted, pattern, answer in self._routes():
            match = re.fullmatch(pattern, rest)
            if method == wanted and match is not None:
                return answer([unquote(one) for one in match.groups()], query, body or {})
        return NOT_FOUND

    def _below(self, path: str) -> str | None:
        """What the path names in the repository; None for a path that is not about it."""
        for prefix in (f"/repos/{self.name}", f"/repositories/{ID}"):
            if path == prefix or path.startswith(f"{prefix}/"):
                return path[len(prefix) + 1 :]
        return None

    def _redirected(self, method: str, path: str) -> Reply:
        for name in self.former_names:
            prefix = f"/repos/{name}"
            if path == prefix or path.startswith(f"{prefix}/"):
                return _redirect(method, f"/repositories/{ID}{path[len(prefix) :]}")
        return NOT_FOUND

    def _routes(self) -> Sequence[tuple[str, str, Route]]:
        return (
            ("GET", "issues", self._list),
            ("GET", r"issues/(\d+)", self._read),
            ("PATCH", r"issues/(\d+)", self._patch),
            ("POST", r"issues/(\d+)/labels", self._add_labels),
            ("DELETE", r"issues/(\d+)/labels/([^/]+)", self._remove_label),
            ("GET", r"issues/(\d+)/comments", self._list_comments),
            ("POST", r"issues/(\d+)/comments", self._comment),
            ("GET", "commits", self._commits),
            ("POST", "git/tags", self._make_tag),
            ("GET", r"git/tags/(\w+)", self._read_tag),
            ("POST", "git/refs", self._make_ref),
            ("GET", r"git/ref/(.+)", self._read_ref),
            ("GET", r"git/matching-refs/(.+)", self._list_refs),
            ("DELETE", r"git/(refs/.+)", self._delete_ref),
        )

    def _list(self, _: Sequence[str], query: Mapping[str, str], body: Any) -> Reply:
        wanted = [one.casefold() for one in query.get("labels", "").split(",") if one]
        found = [
            one
            for _, one in sorted(self.issues.items())
            if one["state"] == query.get("state", "open")
            and set(wanted) <= {label.casefold() for label in one["labels"]}
        ]
        return _page(found if query.get("direction") == "asc" else found[::-1], query, _shown)

    def _read(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        issue = self.issues.get(int(ids[0]))
        return NOT_FOUND if issue is None else Reply(200, _shown(issue))

    def _patch(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        issue = self.issues.get(int(ids[0]))
        if issue is None:
            return NOT_FOUND
        issue.update(body)
        return Reply(200, _shown(issue))

    def _add_labels(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        issue = self.issues.get(int(ids[0]))
        if issue is None:
            return NOT_FOUND
        issue["labels"] += [one for one in body["labels"] if one not in issue["labels"]]
        return Reply(200, _shown(issue)["labels"])

    def _remove_label(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        issue = self.issues.get(int(ids[0]))
        if issue is None or ids[1] not in issue["labels"]:
            return Reply(404, {"message": "Label does not exist"})
        issue["labels"].remove(ids[1])
        return Reply(200, _shown(issue)["labels"])

    def _list_comments(self, ids: Sequence[str], query: Mapping[str, str], body: Any) -> Reply:
        found = self.comments.get(int(ids[0]))
        if found is None:
            return NOT_FOUND
        return _page([one for one in found if one["updated_at"] >= query.get("since", "")], query)

    def _comment(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        found = self.comments.get(int(ids[0]))
        if found is None:
            return NOT_FOUND
        if self.issues[int(ids[0])]["locked"]:
            message = "Unable to create comment because issue is locked."
            return Reply(403, {"message": message})
        if len(body["body"]) > 65_536:
            return Reply(422, {"message": "Validation Failed"})
        comment = self._new_comment(body["body"], USER, "User")
        found.append(comment)
        return Reply(201, comment)

    def _new_comment(self, text: str, user: int, type: str) -> dict[str, Any]:
        self._next_comment += 1
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        author = {"id": user, "login": f"user-{user}", "type": type}
        return {"id": self._next_comment, "body": text, "updated_at": now, "user": author}

    def _commits(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        if self.is_empty:
            return Reply(409, {"message": "Git Repository is empty."})
        return Reply(200, [{"sha": COMMIT}])

    def _make_tag(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        data = json.dumps(body, sort_keys=True).encode()
        sha = hashlib.sha1(data).hexdigest()  # noqa: S324 (git's own)
        self.tags[sha] = {"sha": sha, "tag": body["tag"], "message": body["message"] + "\n"}
        return Reply(201, self.tags[sha])

    def _read_tag(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        tag = self.tags.get(ids[0])
        return NOT_FOUND if tag is None else Reply(200, tag)

    def _make_ref(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        if body["sha"] not in self.tags and body["sha"] != COMMIT:
            return Reply(422, {"message": "Object does not exist"})
        if body["ref"] in self.refs:
            return Reply(422, {"message": "Reference already exists"})
        self.refs[body["ref"]] = body["sha"]
        return Reply(201, self._ref(body["ref"]))

    def _read_ref(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        name = f"refs/{ids[0]}"
        return Reply(200, self._ref(name)) if name in self.refs else NOT_FOUND

    def _list_refs(self, ids: Sequence[str], query: Mapping[str, str], body: Any) -> Reply:
        found = [self._ref(name) for name in sorted(self.refs) if name.startswith(f"refs/{ids[0]}")]
        return _page(found, query)

    def _delete_ref(self, ids: Sequence[str], _: Mapping[str, str], body: Any) -> Reply:
        if self.refs.pop(ids[0], None) is None:
            return Reply(422, {"message": "Reference does not exist"})
        return Reply(204)

    def _ref(self, name: str) -> dict[str, Any]:
        sha = self.refs[name]
        return {
            "ref": name,
            "object": {"sha": sha, "type": "tag" if sha in self.tags else "commit"},
        }


Route = Callable[[Sequence[str], Mapping[str, str], Any], Reply]


def _shown(issue: Mapping[str, Any]) -> dict[str, Any]:
    return {**issue, "labels": [{"name": name} for name in issue["labels"]]}


def _redirect(method: str, path: str) -> Reply:
    """As GitHub redirects: what changes something is to be repeated as it was."""
    status = 301 if method == "GET" else 307
    return Reply(status, {"message": "Moved Permanently"}, {"location": path})


def _page(
    found: Sequence[Any], query: Mapping[str, str], show: Callable[[Any], Any] = lambda one: one
) -> Reply:
    """One page with its ETag."""
    size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
    body = [show(one) for one in found[(page - 1) * size : page * size]]
    digest = hashlib.sha1(json.dumps(body).encode()).hexdigest()  # noqa: S324 (no secret)
    headers = {"etag": f'W/"{digest}"'}
    if page * size < len(found):
        headers["link"] = f'<https://api.github.com/?page={page + 1}>; rel="next"'
    return Reply(200, body, headers)
