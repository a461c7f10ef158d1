"""A server that gives prepared answers in their order and records the requests."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qsl, urlsplit

from keystoneauth1 import session, token_endpoint

from placementd_client import PlacementAdapter


@dataclass
class Answer:
    """An answer; without a status the server closes the connection."""

    status: int | None = 200
    body: str = "{}"
    headers: dict[str, str] = field(default_factory=dict)
    #: Pieces of a body that is sent while it is created.
    pieces: list[str] = field(default_factory=list)
    #: Whether the connection is lost before the end of the body.
    is_cut: bool = False


def at(index: str) -> Answer:
    return Answer(headers={"Placement-Index": index})


def lost() -> Answer:
    return Answer(status=None)


def refused(status: int, code: str, **headers: str) -> Answer:
    body = json.dumps({"errors": [{"status": status, "title": "Refused", "code": code}]})
    return Answer(status, body, {name.replace("_", "-"): headers[name] for name in headers})


def unavailable(code: str, **headers: str) -> Answer:
    return refused(503, f"placement.unavailable.{code}", **headers)


def stream(*lines: dict, part: str = "", is_cut: bool = False) -> Answer:
    """A stream of events that ends within a line if there is a part of one."""
    pieces = [json.dumps(line) + "\n" for line in lines] + [part] * bool(part)
    kind = {"Content-Type": "application/x-ndjson"}
    return Answer(headers=kind, pieces=pieces, is_cut=is_cut)


@dataclass
class Request:
    """A request that the server has received."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, url.path, dict(parse_qsl(url.query)), headers)
        self.server.asked.append(request)
        answer = self.server.answers.pop(0)
        self.close_connection = answer.status is None or answer.is_cut
        if answer.status is None:
            return
        self.send_response(answer.status)
        for name, value in ({"Content-Type": "application/json"} | answer.headers).items():
            self.send_header(name, value)
        if not answer.pieces:
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body.encode())
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in answer.pieces + [""] * (not answer.is_cut):
            self.wfile.write(f"{len(piece):x}\r\n{piece}\r\n".encode())

    do_GET = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        pass


class StandIn:
    """The server, while a ``with`` block runs."""

    def __init__(self, *answers: Answer) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.answers = list(answers)
        self.expected = len(answers)
        self.server.asked = []
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> StandIn:
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()
        assert kind or len(self.asked) == self.expected, f"not {self.expected}: {self.asked}"

    @property
    def asked(self) -> list[Request]:
        return self.server.asked

    def sent(self, header: str) -> list[str | None]:
        """The values of a header of all requests."""
        return [request.headers.get(header.lower()) for request in self.asked]

    def adapter(self, **more: object) -> PlacementAdapter:
        auth = token_endpoint.Token(self.url, "admin")
        more = {"default_microversion": "1.39", "patience": 5.0} | more
        return PlacementAdapter(session.Session(auth=auth), **more)
