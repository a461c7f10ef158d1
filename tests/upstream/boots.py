"""Boots and deletes servers as far as Placement notices, by several clients at once, until a file exists.

usage: boots.py CONFIG STOP
CONFIG has the `[placement]` section of a service. Prints what was done, and what failed, as JSON.
"""
import json
import os
import random
import sys
import threading
import time
import uuid

from placement_section import adapter

CLIENTS = 6
HEADERS = {"OpenStack-API-Version": "placement 1.39"}
SEARCH = "/allocation_candidates?resources=VCPU:1&limit=20"


class Cloud:
    """Requests of all clients, and their failures."""

    def __init__(self, config: str) -> None:
        self._config = config
        self._lock = threading.Lock()
        self.servers: dict[str, str | None] = {}
        self.requests = 0
        self.slowest_s = 0.0
        self.failures: list[str] = []

    def boot_until(self, stop: str) -> None:
        placement = adapter(self._config)
        own: list[str] = []
        while not os.path.exists(stop):
            server = self._boot(placement)
            if server:
                own.append(server)
                self._show(placement, server)
            if len(own) > 3:
                self._delete(placement, own.pop(random.randrange(len(own))))

    def check(self) -> None:
        """Checks that each remaining server has its allocation, on its own host only."""
        placement = adapter(self._config)
        for server in self.servers:
            self._show(placement, server)

    def _boot(self, placement) -> str | None:
        found = self._ask(placement, "GET", SEARCH, (200,))
        if found is None:
            return None
        candidates = found.json()["allocation_requests"]
        if not candidates:
            self._fail(f"GET {SEARCH}: no candidates")
            return None
        claim = random.choice(candidates)
        server = str(uuid.uuid4())
        path = f"/allocations/{server}"
        body = claim | {"project_id": "p", "user_id": "u", "consumer_generation": None, "consumer_type": "INSTANCE"}
        # Also if keystoneauth has repeated a claim whose answer was lost.
        if self._ask(placement, "PUT", path, (204,), body) is None:
            return None
        host, = claim["allocations"]
        with self._lock:
            self.servers[server] = host
        return server

    def _show(self, placement, server: str) -> None:
        host = self.servers[server]
        answer = self._ask(placement, "GET", f"/allocations/{server}", (200,))
        if answer is not None:
            held = {host: of["resources"] for host, of in answer.json()["allocations"].items()}
            if held != ({host: {"VCPU": 1}} if host else {}):
                self._fail(f"{server} should be on {host}, but has {held}")

    def _delete(self, placement, server: str) -> None:
        # 404: keystoneauth has repeated a request whose answer was lost.
        if self._ask(placement, "DELETE", f"/allocations/{server}", (204, 404)) is not None:
            with self._lock:
                self.servers[server] = None

    def _ask(self, placement, method: str, path: str, expected: tuple[int, ...], body=None):
        """Returns the answer if it has one of these statuses. (An answer of 4xx is false in
        Python.)"""
        began = time.monotonic()
        try:
            answer = placement.request(path, method, json=body, headers=HEADERS, raise_exc=False,
                                       global_request_id=f"req-{uuid.uuid4()}")
        except Exception as error:  # A service gives up then.
            self._fail(f"{method} {path}: {error}")
            return None
        with self._lock:
            self.requests += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        if answer.status_code not in expected:
            self._fail(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return None
        return answer

    def _fail(self, what: str) -> None:
        with self._lock:
            self.failures.append(what)


def main(config: str, stop: str) -> None:
    cloud = Cloud(config)
    clients = [threading.Thread(target=cloud.boot_until, args=(stop,)) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    cloud.check()
    print(json.dumps({
        "servers": sum(host is not None for host in cloud.servers.values()),
        "booted": len(cloud.servers),
        "requests": cloud.requests,
        "slowest_s": round(cloud.slowest_s, 1),
        "failures": cloud.failures,
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
