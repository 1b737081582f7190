"""A stand-in for the Hugging Face Hub on the loopback interface.

It speaks what ``huggingface_hub`` asks of the real one: repository information, the file tree (in pages), and files,
of which large ones are redirected to another origin, as to the hub's content network, with the range requests that go
on with a broken download. It records every request, and misbehaves on demand.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

LARGE_BYTES = 1000
"""Files from this size on are in large-file storage, as on the hub those above 10 MB."""
PAGE_FILES = 3
"""Entries of the file tree in one answer; the hub's pages hold 1000."""
PIECE_BYTES = 1 << 14
MAIN = "main"


@dataclass
class Repository:
    """One repository with a single commit on ``main``."""

    files: dict[str, bytes]
    licence: str = "other"
    licence_name: str = "nvidia-open-model-license"
    gated: bool = False
    """Files are given to :attr:`token` only."""
    token: str = "hf_standin"

    @property
    def revision(self) -> str:
        digest = hashlib.sha1(usedforsecurity=False)
        for name, content in sorted(self.files.items()):
            digest.update(name.encode() + b"\0" + content)
        return digest.hexdigest()


@dataclass(frozen=True)
class Recorded:
    """A request that came in."""

    origin: str
    """``hub`` or ``cdn``."""
    method: str
    path: str
    headers: Mapping[str, str]


@dataclass
class HubStandIn:
    """The hub's state: what it has, how it misbehaves, what it was asked."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[Recorded] = field(default_factory=list)
    url: str = ""
    cdn_url: str = ""
    cuts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By path: after how many bytes of the body the connection breaks, for this and the following requests."""
    corrupt: set[str] = field(default_factory=set)
    """Paths whose first byte is sent wrong."""
    status: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By path: status codes to answer with instead, for this and the following requests."""
    ranges: bool = True
    """Whether range requests are understood."""
    before_piece: Callable[[str, int], None] = lambda path, sent: None
    """Called before each piece of a body, with the path and the bytes sent so far."""

    def add(
        self, repository: str, files: Mapping[str, bytes] | Path, prefix: str = "", **options: Any
    ) -> Repository:
        """Publish ``files``, or those of a directory, below the folder ``prefix``."""
        if isinstance(files, Path):
            root = files
            files = {
                str(path.relative_to(root)): path.read_bytes()
                for path in sorted(root.rglob("*"))
                if path.is_file()
            }
        made = Repository({prefix + name: content for name, content in files.items()}, **options)
        self.repositories[repository] = made
        return made

    def bodies(self, path: str) -> list[str]:
        """The ``Range`` headers (empty for none) with which the bytes of a file were asked for."""
        return [
            request.headers.get("range", "")
            for request in self.requests
            if request.method == "GET" and request.path.endswith(f"/{quote(path)}")
        ]


@contextmanager
def running_hub() -> Iterator[HubStandIn]:
    """A stand-in that answers until the block ends."""
    standin = HubStandIn()
    servers = [
        ThreadingHTTPServer(("127.0.0.1", 0), _handler(standin, answer))
        for answer in (_answer_hub, _answer_cdn)
    ]
    for server in servers:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
    ports = [server.server_address[1] for server in servers]
    # Another name, so that it counts as another host.
    standin.url, standin.cdn_url = f"http://127.0.0.1:{ports[0]}", f"http://localhost:{ports[1]}"
    try:
        yield standin
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def _handler(
    standin: HubStandIn, answer: Callable[[HubStandIn, BaseHTTPRequestHandler], None]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            path = urlsplit(self.path).path
            origin = "hub" if answer is _answer_hub else "cdn"
            headers = {name.lower(): value for name, value in self.headers.items()}
            standin.requests.append(Recorded(origin, self.command, path, headers))
            try:
                answer(standin, self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_GET = do_HEAD = handle_any  # noqa: N815 - names of the standard library

        def log_message(self, format: str, *arguments: Any) -> None:
            return

    return Handler


def _answer_hub(standin: HubStandIn, request: BaseHTTPRequestHandler) -> None:
    path = unquote(urlsplit(request.path).path)
    if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(/.*)?", path):
        _answer_api(standin, request, found[1], found[2] or "")
    elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
        _answer_file(standin, request, found[1], found[2], found[3])
    else:
        _send(request, 404, headers={"X-Error-Code": "RepoNotFound"})


def _answer_api(standin: HubStandIn, request: BaseHTTPRequestHandler, name: str, rest: str) -> None:
    repository = standin.repositories.get(name)
    if repository is None:  # what the hub says to people who are not signed in
        _send(
            request, 401, headers={"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
        )
        return
    parts = rest.strip("/").split("/", 2) if rest.strip("/") else ["revision", MAIN]
    kind, revision = parts[0], parts[1]
    if revision not in (MAIN, repository.revision):
        _send(request, 404, headers={"X-Error-Code": "RevisionNotFound"})
    elif kind == "tree":
        _answer_tree(request, repository, parts[2] if len(parts) > 2 else "")
    else:
        card = {"license": repository.licence, "license_name": repository.licence_name}
        siblings = [{"rfilename": path} for path in repository.files]
        _send_json(
            request,
            {
                "_id": "0",
                "id": name,
                "modelId": name,
                "sha": repository.revision,
                "private": False,
                "gated": "auto" if repository.gated else False,
                "disabled": False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "cardData": card,
                "siblings": siblings,
                "createdAt": "2026-01-01T00:00:00.000Z",
            },
        )


def _answer_tree(request: BaseHTTPRequestHandler, repository: Repository, folder: str) -> None:
    query = parse_qs(urlsplit(request.path).query)
    start = int(query.get("cursor", ["0"])[0])
    inside = [path for path in sorted(repository.files) if not folder or path.startswith(f"{folder}/")]
    if not inside:
        _send(request, 404, headers={"X-Error-Code": "EntryNotFound"})
        return
    entries: list[dict[str, Any]] = []
    for path in inside[start : start + PAGE_FILES]:
        content = repository.files[path]
        entry: dict[str, Any] = {
            "type": "file",
            "path": path,
            "size": len(content),
            "oid": _git_sha1(content),
        }
        if len(content) >= LARGE_BYTES:
            entry["lfs"] = {
                "oid": hashlib.sha256(content).hexdigest(),
                "size": len(content),
                "pointerSize": 130,
            }
            entry["xetHash"] = hashlib.sha256(b"xet" + content).hexdigest()
        entries.append(entry)
    headers = {}
    if start + PAGE_FILES < len(inside):
        base = f"http://{request.headers['Host']}{urlsplit(request.path).path}"
        headers["Link"] = f'<{base}?recursive=True&cursor={start + PAGE_FILES}>; rel="next"'
    _send_json(request, entries, headers)


def _answer_file(
    standin: HubStandIn, request: BaseHTTPRequestHandler, name: str, revision: str, path: str
) -> None:
    repository = standin.repositories.get(name)
    if repository is None:
        _send(request, 401, headers={"X-Error-Code": "RepoNotFound"})
        return
    if repository.gated and request.headers.get("Authorization") != f"Bearer {repository.token}":
        message = f"Access to model {name} is restricted. You must accept the terms to access it."
        _send(request, 401, headers={"X-Error-Code": "GatedRepo", "X-Error-Message": message})
        return
    content = repository.files.get(path)
    if revision not in (MAIN, repository.revision) or content is None:
        code = "EntryNotFound" if content is None else "RevisionNotFound"
        _send(request, 404, headers={"X-Error-Code": code})
        return
    headers = {"X-Repo-Commit": repository.revision, "ETag": f'"{_git_sha1(content)}"'}
    if len(content) < LARGE_BYTES:
        _send_body(standin, request, path, content, headers)
        return
    headers |= {
        "X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"',
        "X-Linked-Size": str(len(content)),
        "X-Xet-Hash": hashlib.sha256(b"xet" + content).hexdigest(),
        "Link": f'<{standin.url}/api/models/{name}/xet-read-token/{revision}>; rel="xet-auth"',
        "Location": f"{standin.cdn_url}/{name}/{quote(path)}",
    }
    _send(request, 302, headers=headers)


def _answer_cdn(standin: HubStandIn, request: BaseHTTPRequestHandler) -> None:
    owner, name, path = unquote(urlsplit(request.path).path).lstrip("/").split("/", 2)
    content = standin.repositories[f"{owner}/{name}"].files[path]
    _send_body(standin, request, path, content, {"ETag": f'"{hashlib.sha256(content).hexdigest()}"'})


def _send_body(
    standin: HubStandIn, request: BaseHTTPRequestHandler, path: str, content: bytes, headers: dict[str, str]
) -> None:
    if standin.status[path]:
        _send(request, standin.status[path].pop(0))
        return
    if path in standin.corrupt:
        content = bytes([content[0] ^ 0xFF]) + content[1:]
    status, start = 200, 0
    if standin.ranges and (wanted := re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))):
        status, start = 206, int(wanted[1])
        headers = headers | {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
    body = content[start:]
    request.send_response(status)
    for key, value in (headers | {"Content-Length": str(len(body))}).items():
        request.send_header(key, value)
    request.end_headers()
    if request.command == "HEAD":
        return
    cut = standin.cuts[path].pop(0) if standin.cuts[path] else len(body)
    sent = 0
    while sent < min(cut, len(body)):
        standin.before_piece(path, start + sent)
        sent += request.wfile.write(body[sent : min(cut, sent + PIECE_BYTES)])
        request.wfile.flush()
    if cut < len(body):
        request.close_connection = True


def _send_json(request: BaseHTTPRequestHandler, data: Any, headers: Mapping[str, str] | None = None) -> None:
    _send(request, 200, json.dumps(data).encode(), {"Content-Type": "application/json", **(headers or {})})


def _send(
    request: BaseHTTPRequestHandler, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> None:
    request.send_response(status)
    for key, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
        request.send_header(key, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)


def _git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
