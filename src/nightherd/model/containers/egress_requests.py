"""Requests to the egress proxy: HTTP/1.1, parsed strictly, so that nothing in one means something else to the next server."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from nightherd.model.containers.egress import Destination, parse_authority

LONGEST_HEAD = 64 * 1024
MOST_HEADERS = 200
END_OF_HEAD = b"\r\n\r\n"
TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([!-~]+) HTTP/1\.([01])")
HEADER = re.compile(rb"(" + TOKEN + rb"):[ \t]*([\t -~\x80-\xff]*)")
STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})( [^\r\n]*)?")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[\t -~\x80-\xff]*)?")
LENGTH = re.compile(rb"[0-9]{1,18}")
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer "
    b"transfer-encoding upgrade http2-settings".split()
)
"""What concerns one connection and not the next."""
MADE = frozenset({b"host", b"content-length"})
"""Written anew from what was understood."""
HTTP_PORT = 80
HAS_PORT = re.compile(r":[^]:]*\Z")

Headers = tuple[tuple[bytes, bytes], ...]


class BadRequestError(ValueError):
    """Raised for a request that is not exactly what HTTP/1.1 asks for, or asks for what the proxy does not do."""


class RequestHead(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its body."""

    method: bytes
    target: bytes
    minor: int
    """1 for HTTP/1.1, 0 for HTTP/1.0."""
    headers: Headers = ()

    @property
    def is_connect(self) -> bool:
        """Whether a tunnel is asked for."""
        return self.method == b"CONNECT"

    def values(self, name: bytes) -> list[bytes]:
        """The values of a header, by its name in lower case."""
        return [value for key, value in self.headers if key.lower() == name]


class PlainRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for `http://`, as it is sent on."""

    destination: Destination
    head: bytes
    length: int | None
    """The bytes of its body; None when that comes in chunks."""


def parse_head(head: bytes) -> RequestHead:
    """The head that ends with an empty line; `BadRequestError` for one that could be read in two ways."""
    if len(head) > LONGEST_HEAD or not head.endswith(END_OF_HEAD):
        raise BadRequestError("the head of the request is too long")
    first, *lines = head.removesuffix(END_OF_HEAD).split(b"\r\n")
    request = REQUEST_LINE.fullmatch(first)
    if request is None:
        raise BadRequestError("this is not a request line of HTTP/1.1")
    method, target, minor = request.groups()
    return RequestHead(method=method, target=target, minor=int(minor), headers=_headers(lines))


def _headers(lines: list[bytes]) -> Headers:
    if len(lines) > MOST_HEADERS:
        raise BadRequestError(f"more than {MOST_HEADERS} headers")
    found = [HEADER.fullmatch(line) for line in lines]
    if not all(found):
        raise BadRequestError("one of the headers is not valid")
    return tuple((one[1], one[2].rstrip(b" \t")) for one in found if one is not None)


def tunnel_target(head: RequestHead) -> Destination | None:
    """The destination of a CONNECT; None when it is none that could be allowed, as an address."""
    if head.values(b"transfer-encoding") or any(
        value != b"0" for value in head.values(b"content-length")
    ):
        raise BadRequestError("CONNECT has no body")
    return parse_authority(head.target.decode("ascii"))


def target_text(head: RequestHead) -> str:
    """The authority that a request names, as it is written there; for `http://` always with a port."""
    text = head.target.decode("ascii")
    scheme, found, rest = text.partition("://")
    if head.is_connect or not found or scheme.lower() != "http":
        return text
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    return authority if HAS_PORT.search(authority) else f"{authority}:{HTTP_PORT}"


def plain_target(head: RequestHead) -> Destination | None:
    """The destination of a request for `http://`; None when it is none that could be allowed, as an address.

    `BadRequestError` when the target is not such a URL, or the header Host names another one.
    """
    _path(head)
    destination = parse_authority(target_text(head), HTTP_PORT)
    hosts = head.values(b"host")
    if len(hosts) != 1:
        raise BadRequestError("a request must have exactly one Host header")
    if destination is None:
        return None
    if parse_authority(hosts[0].decode("latin-1"), HTTP_PORT) != destination:
        raise BadRequestError("the Host header names another host than the URL")
    return destination


def plain_request(head: RequestHead, destination: Destination) -> PlainRequest:
    """The request as the server gets it: nothing that only concerns the proxy, and one request for each connection."""
    length = _body_length(head)
    dropped = HOP_BY_HOP | MADE | set(_nominated(head.values(b"connection")))
    kept = [header for header in head.headers if header[0].lower() not in dropped]
    port = "" if destination.port == HTTP_PORT else f":{destination.port}"
    made = [(b"Host", f"{destination.name}{port}".encode()), *kept]
    if length is None:
        made.append((b"Transfer-Encoding", b"chunked"))
    elif length or head.values(b"content-length"):
        made.append((b"Content-Length", str(length).encode()))
    made.append((b"Connection", b"close"))
    lines = [b"%b %b HTTP/1.%d" % (head.method, _path(head), head.minor)]
    lines += [name + b": " + value for name, value in made]
    return PlainRequest(
        destination=destination, head=b"\r\n".join(lines) + END_OF_HEAD, length=length
    )


def _path(head: RequestHead) -> bytes:
    """Path and query of the URL."""
    scheme, found, rest = head.target.partition(b"://")
    if not found or scheme.lower() != b"http":
        raise BadRequestError("only CONNECT and URLs that begin with http:// are served here")
    if b"#" in rest or b"\\" in rest:
        raise BadRequestError("the URL is not valid")
    match = re.search(rb"[/?]", rest)
    path = rest[match.start() :] if match is not None else b""
    return path if path.startswith(b"/") else b"/" + path


def _body_length(head: RequestHead) -> int | None:
    lengths, codings = head.values(b"content-length"), head.values(b"transfer-encoding")
    if codings:
        if lengths or head.minor == 0 or len(codings) > 1 or codings[0].lower() != b"chunked":
            raise BadRequestError("the length of the body is not clear")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or LENGTH.fullmatch(lengths[0]) is None:
        raise BadRequestError("the length of the body is not clear")
    return int(lengths[0])


def chunk_length(line: bytes) -> int:
    """The size that the line before a chunk names, without its CRLF."""
    match = CHUNK.fullmatch(line)
    if match is None:
        raise BadRequestError("a chunk of the body has no valid size")
    return int(match[1], 16)


def response_head(head: bytes) -> tuple[int, bytes] | None:
    """The status of a response and its head for the client, who gets one response for each connection; None if it is none."""
    first, *lines = head.removesuffix(END_OF_HEAD).split(b"\r\n")
    status = STATUS_LINE.fullmatch(first)
    if status is None:
        return None
    number = int(status[1])
    if number < 200:
        return number, head
    fields = [(line.partition(b":")[0].strip().lower(), line) for line in lines]
    nominated = (line.partition(b":")[2].strip() for name, line in fields if name == b"connection")
    # Its body is sent on as it is, in the framing that it has.
    framing = {b"transfer-encoding", b"trailer", b"content-length"}
    dropped = (HOP_BY_HOP | set(_nominated(nominated))) - framing
    kept = [line for name, line in fields if name not in dropped]
    return number, b"\r\n".join([first, *kept, b"Connection: close"]) + END_OF_HEAD


def _nominated(values: Iterable[bytes]) -> list[bytes]:
    return [name.strip().lower() for value in values for name in value.split(b",")]
