"""Boots and deletes many servers at once."""

import concurrent.futures
import dataclasses
import threading
import time

from client import INTERRUPTED
from processes import Failed

THREADS = 20
# At most this long for one server.
PATIENCE_S = 300


@dataclasses.dataclass
class Boot:
    """One boot. `id` is None if the API refused it; `fault` is then its answer."""

    name: str
    id: str | None = None
    request: str | None = None
    seconds: float = 0.0
    status: str = 'BUILD'
    fault: str = ''
    # The nova-compute and its node.
    host: str | None = None
    node: str | None = None


class Fleet:
    """The servers of a scenario."""

    def __init__(self, client):
        self._client = client
        self._done = {}
        self._lock = threading.Lock()

    def boot(self, count, flavor, prefix, during=None, threads=THREADS, **more):
        """Boots this many servers by 20 threads, and calls `during` again and again until all have ended.
        `more` is for the request of each. Returns one Boot each."""
        boots = [Boot(f'{prefix}-{number}') for number in range(count)]
        stopping = threading.Event()
        watch = threading.Thread(target=self._watch, args=(stopping,), daemon=True)
        watch.start()
        try:
            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                futures = [pool.submit(self._boot_one, boot, flavor, more) for boot in boots]
                while not all(future.done() for future in futures):
                    if during:
                        during()
                    time.sleep(0.05)
        finally:
            stopping.set()
            watch.join()
        for future in futures:
            future.result()
        self._judge(boots)
        return boots

    def _boot_one(self, boot, flavor, more):
        started = time.monotonic()
        try:
            boot.id, boot.request = self._client.boot(boot.name, flavor, **more)
        except Failed as failure:
            boot.status, boot.fault = 'REFUSED', str(failure)
            return
        done = threading.Event()
        with self._lock:
            self._done[boot.id] = (time.monotonic(), done)
        while not done.wait(1) and not INTERRUPTED.is_set() and time.monotonic() - started < PATIENCE_S:
            pass
        boot.seconds = time.monotonic() - started

    def _watch(self, stopping):
        """Finds out each second which servers are built no more: one request in place of one per server."""
        while not stopping.wait(1):
            asked = time.monotonic()
            try:
                building = {server['id'] for server in self._client.get(
                    'compute', '/servers?all_tenants=1&status=BUILD&limit=1000')['servers']}
            except Failed:
                continue
            with self._lock:
                for id in [id for id, (since, _) in self._done.items() if since < asked and id not in building]:
                    self._done.pop(id)[1].set()

    def _judge(self, boots):
        servers = {server['id']: server for server in self._client.servers()}
        for boot in boots:
            server = servers.get(boot.id)
            if server:
                boot.status = server['status']
                boot.fault = server.get('fault', {}).get('message', '')
                boot.host = server['OS-EXT-SRV-ATTR:host']
                boot.node = server['OS-EXT-SRV-ATTR:hypervisor_hostname']
            elif boot.id:
                boot.status = 'LOST'

    def delete(self, ids):
        """Deletes these servers, and waits until they are gone."""
        started = time.monotonic()
        ids = set(ids)
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for future in [pool.submit(self._client.delete, id) for id in ids]:
                future.result()
        while left := ids & self._ids():
            if time.monotonic() - started > PATIENCE_S:
                id = min(left)
                raise Failed(f'{len(left)} servers are not deleted after {PATIENCE_S} s, such as {id}: '
                             f'{self._client.server(id)}')
            time.sleep(1)

    def delete_all(self):
        while ids := self._ids():
            self.delete(ids)

    def _ids(self):
        """Returns the ids of at most 1000 servers."""
        return {server['id'] for server in self._client.get('compute', '/servers?all_tenants=1&limit=1000')['servers']}
