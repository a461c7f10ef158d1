"""A small Placement with claims, and the limits of a Keystone, on one port.

It has the rules that the scheduler depends on, and refuses bodies that do not match the OpenAPI
document of placementd.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
with open(f"{HERE}/../../../node/api/src/http/openapi.json") as file:
    # The schema of claims that nodes use.
    CLAIM = {
        "$ref": "#/components/schemas/SentClaim", "components": json.load(file)["components"],
    }


@dataclass
class Provider:
    """A provider; `parent` is the UUID of the root, for children."""

    inventories: dict[str, int]
    parent: str | None = None


@dataclass
class Consumer:
    project: str
    user: str
    type: str | None
    generation: int
    allocations: dict[str, dict[str, Any]]


class Refusal(Exception):
    def __init__(self, status: int, code: str, detail: str = "refused", **more: Any) -> None:
        super().__init__(code)
        error = {"status": status, "code": code, "detail": detail, "title": "Refused", **more}
        self.status, self.body = status, {"errors": [error]}


@dataclass
class Placement:
    """The content, and how the service answers."""

    providers: dict[str, Provider] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    #: Whether it is placementd, with claims.
    has_claims: bool = True
    #: The largest number of amounts in a claim.
    amounts_max: int = 1_000_000
    #: What another client does when the next claims come, one function per claim.
    before: list[Any] = field(default_factory=list)
    #: What another client does after a claim is committed.
    after: list[Any] = field(default_factory=list)
    #: Limits of Keystone: registered ones, and those of the project.
    registered: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    #: Host and port of the server.
    address: str = ""
    #: Method, path and body of each request.
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    # Rules.

    def root(self, provider: str) -> str:
        return self.providers[provider].parent or provider

    def used(self, provider: str, name: str, without: set[str] = frozenset()) -> int:
        return sum(
            consumer.allocations.get(provider, {"resources": {}})["resources"].get(name, 0)
            for uuid, consumer in self.consumers.items()
            if uuid not in without
        )

    def hold(
        self, uuid: str, provider: str, type: str | None = None, **amounts: int
    ) -> None:
        """Lets a consumer hold something."""
        allocations = {provider: {"resources": amounts}}
        self.consumers[uuid] = Consumer("project", "user", type, 1, allocations)

    def candidates(self, query: dict[str, list[str]]) -> dict[str, Any]:
        asked = {
            name: int(amount)
            for name, amount in (pair.split(":") for pair in query["resources"][0].split(","))
        }
        requests, trees = [], set()
        for root in [uuid for uuid, provider in self.providers.items() if not provider.parent]:
            tree = [uuid for uuid in self.providers if self.root(uuid) == root]
            able = [
                [
                    uuid for uuid in tree
                    if self.providers[uuid].inventories.get(name, 0)
                    >= self.used(uuid, name) + amount
                ]
                for name, amount in asked.items()
            ]
            for picked in itertools.product(*able):
                allocations: dict[str, Any] = {}
                for uuid, (name, amount) in zip(picked, asked.items()):
                    allocations.setdefault(uuid, {"resources": {}})["resources"][name] = amount
                trees.add(root)
                requests.append({"allocations": allocations, "mappings": {"": list(allocations)}})
        summaries = {
            uuid: {
                "resources": {
                    name: {"capacity": total, "used": self.used(uuid, name)}
                    for name, total in provider.inventories.items()
                },
                "traits": [], "parent_provider_uuid": provider.parent,
                "root_provider_uuid": self.root(uuid),
            }
            for uuid, provider in self.providers.items()
            if self.root(uuid) in trees
        }
        return {"allocation_requests": requests, "provider_summaries": summaries}

    def claim(self, body: dict[str, Any]) -> dict[str, Any]:
        if not self.has_claims:
            raise Refusal(404, "placement.undefined_code")
        try:
            jsonschema.validate(body, CLAIM)
        except jsonschema.ValidationError as error:
            raise Refusal(400, "placement.undefined_code", str(error)) from error
        amounts = [
            amount for choice in body["choices"] for consumer in choice.values()
            for allocation in consumer["allocations"].values() for amount in allocation["resources"]
        ]
        if len(amounts) > self.amounts_max:
            raise Refusal(400, "placement.limit_exceeded")
        if self.before:
            self.before.pop(0)()
        claimants = body["consumers"]
        if index := self._repeated(body):
            return index
        for uuid, claimant in claimants.items():
            known = self.consumers.get(uuid)
            if (known and known.generation) != claimant["consumer_generation"]:
                raise Refusal(409, "placement.concurrent_update", "consumer generation conflict")
        found = []
        for index, choice in enumerate(body["choices"]):
            if choice.keys() != claimants.keys():
                raise Refusal(400, "placement.undefined_code", "other consumers")
            refusal = self._judge(body, choice)
            if refusal is None:
                return self._commit(claimants, choice, index)
            found.append(refusal)
        order = ("no_room", "over_ceiling", "group")
        kind, more = min(found, key=lambda refusal: order.index(refusal[0]))
        raise Refusal(409, f"placement.claim.{kind}", "node-7 has 3 of 8", **more)

    def _repeated(self, body: dict[str, Any]) -> dict[str, Any] | None:
        claimants = body["consumers"]
        if any(about["consumer_generation"] is not None for about in claimants.values()):
            return None
        for index, choice in enumerate(body["choices"]):
            if all(
                uuid in self.consumers and self.consumers[uuid].allocations == of_one["allocations"]
                for uuid, of_one in choice.items()
            ):
                return self._answer(claimants, index, repeated=True)
        return None

    def _judge(self, body: dict[str, Any], choice: dict[str, Any]) -> tuple[str, Any] | None:
        after = {uuid: held.allocations for uuid, held in self.consumers.items()}
        after |= {uuid: of_one["allocations"] for uuid, of_one in choice.items()}
        for index, group in enumerate(body.get("apart", []) + body.get("together", [])):
            trees = {
                member: {self.root(provider) for provider in after.get(member, {})}
                for member in group["members"]
            }
            touched = set().union(*(trees[uuid] for uuid in choice if uuid in trees))
            if index < len(body.get("apart", [])):
                for tree in touched:
                    if sum(tree in its for its in trees.values()) > group.get("most", 1):
                        return "group", {"group": index, "provider": tree}
            elif touched and len(set().union(*trees.values())) > 1:
                return "group", {"group": index}
        for index, ceiling in enumerate(body.get("ceilings", [])):
            used, asked = (self._counted(ceiling, which) for which in (
                {uuid: held for uuid, held in self.consumers.items() if uuid not in choice},
                {
                    uuid: Consumer(
                        body["consumers"][uuid]["project_id"], "", "INSTANCE", 0,
                        of_one["allocations"])
                    for uuid, of_one in choice.items()
                },
            ))
            if used + asked > ceiling["limit"]:
                return "over_ceiling", {
                    "ceiling": index, "used": used, "requested": asked, "limit": ceiling["limit"]}
        for uuid, provider in self.providers.items():
            for name, total in provider.inventories.items():
                asked = sum(
                    of_one["allocations"].get(uuid, {"resources": {}})["resources"].get(name, 0)
                    for of_one in choice.values()
                )
                if asked and self.used(uuid, name, set(choice)) + asked > total:
                    return "no_room", {"reasons": [{"code": "capacity", "provider": uuid}]}
        return None

    def _counted(self, ceiling: dict[str, Any], consumers: dict[str, Consumer]) -> int:
        counted = [
            consumer for consumer in consumers.values()
            if consumer.project in ceiling["projects"]
            and consumer.type in ceiling.get("types", [consumer.type])
        ]
        if ceiling.get("count"):
            return len(counted)
        return sum(
            allocation["resources"].get(ceiling["class"], 0)
            for consumer in counted for allocation in consumer.allocations.values()
        )

    def _commit(
        self, claimants: dict[str, Any], choice: dict[str, Any], index: int
    ) -> dict[str, Any]:
        for uuid, about in claimants.items():
            generation = (about["consumer_generation"] or 0) + 1
            self.consumers[uuid] = Consumer(
                about["project_id"], about["user_id"], about["consumer_type"], generation,
                choice[uuid]["allocations"],
            )
        if self.after:
            self.after.pop(0)()
        return self._answer(claimants, index, repeated=False)

    def _answer(self, claimants: dict[str, Any], index: int, *, repeated: bool) -> dict[str, Any]:
        held = {uuid: self.consumers[uuid] for uuid in claimants}
        return {
            "choice": index, "repeated": repeated,
            "allocations": {uuid: one.allocations for uuid, one in held.items()},
            "consumer_generations": {uuid: one.generation for uuid, one in held.items()},
        }

    # Routes.

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        consumer = re.fullmatch(r"/allocations/([0-9a-f-]+)", path)
        if consumer:
            return self._allocations(method, consumer[1], body)
        match method, path:
            case "GET", "/":
                return {"versions": [{"id": "v1.0", "min_version": "1.0", "max_version": "1.39",
                                      "status": "CURRENT", "links": [{"rel": "self", "href": ""}]}]}
            case "GET", "/placementd/v1" if self.has_claims:
                return {"version": 1, "routes": [
                    {"method": "POST", "path": "/placementd/v1/claims",
                     "rule": "placementd:claims:create"}]}
            case "GET", "/allocation_candidates":
                return self.candidates(query)
            case "POST", "/placementd/v1/claims":
                return self.claim(body)
            case "GET", "/identity/v3":
                return {"version": {"id": "v3.14", "status": "stable", "links": [
                    {"rel": "self", "href": f"http://{self.address}/identity/v3"}]}}
            case "GET", "/identity/v3/limits/model":
                return {"model": {"name": "flat", "description": ""}}
            case "GET", "/identity/v3/limits":
                return {"limits": [
                    {"id": name, "resource_name": name, "resource_limit": limit}
                    for name, limit in self.limits.items()]}
            case "GET", "/identity/v3/registered_limits":
                return {"registered_limits": [
                    {"id": name, "resource_name": name, "default_limit": limit}
                    for name, limit in self.registered.items()]}
            case "GET", "/identity/v3/endpoints/nova":
                return {"endpoint": {"id": "nova", "service_id": "nova", "region_id": "region"}}
        raise Refusal(404, "placement.undefined_code")

    def _allocations(self, method: str, uuid: str, body: Any) -> Any:
        held = self.consumers.get(uuid)
        if method == "GET":
            if not held:
                return {"allocations": {}}
            return {
                "allocations": {
                    provider: allocation | {"generation": 1}
                    for provider, allocation in held.allocations.items()
                },
                "consumer_generation": held.generation,
                "project_id": held.project, "user_id": held.user,
            }
        if method == "DELETE":
            if self.consumers.pop(uuid, None):
                return None
            raise Refusal(404, "placement.undefined_code")
        if (held and held.generation) != body["consumer_generation"]:
            raise Refusal(409, "placement.concurrent_update", "consumer generation conflict")
        claimants = {uuid: {**body, "consumer_type": None}}
        choice = {uuid: {"allocations": body["allocations"]}}
        if self._judge({"consumers": claimants}, choice):
            raise Refusal(409, "placement.undefined_code")
        self._commit(claimants, choice, 0)
        return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        url = urlsplit(self.path)
        placement: Placement = self.server.placement
        with placement.lock:
            placement.address = self.headers["Host"]
            placement.asked.append((self.command, url.path, body))
            try:
                found = placement.answer(self.command, url.path, parse_qs(url.query), body)
                status = 204 if found is None else 200
            except Refusal as refusal:
                status, found = refusal.status, refusal.body
        text = b"" if found is None else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        pass


def serve() -> ThreadingHTTPServer:
    """Starts the server, whose `placement` is replaced by each test."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # A test may let a request fail.
    server.handle_error = lambda *_: None
    server.placement = Placement()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server
