"""One request for many servers. With claims, it takes one write."""

import time

import checks
from fleet import PATIENCE_S, Boot, Fleet
from placements import Claims
from processes import Failed
from report import CLAIM, CLAIMS

COUNT = 50


def run(cloud, new_row):
    row, client = new_row(), cloud.client
    with row.measured(cloud):
        started = time.monotonic()
        _, request = client.boot('many', 'small', min_count=COUNT, max_count=COUNT)
        boots = row.add([
            Boot(server['name'], server['id'], request, time.monotonic() - started, server['status'],
                 server.get('fault', {}).get('message', ''), server['OS-EXT-SRV-ATTR:host'],
                 server['OS-EXT-SRV-ATTR:hypervisor_hostname'])
            for server in built(client)])
    row.must(len(boots) == COUNT, f'there are {len(boots)} servers, not {COUNT}')
    checks.all_active(row, boots)
    claims, puts = (len(row.requests.by_route.get(route, ())) for route in (CLAIMS, CLAIM))
    row.note(f'{COUNT} servers were claimed with {claims} claims and {puts} allocations')
    if cloud.placement.name == Claims.name:
        row.must((claims, puts) == (1, 0), f'there are {claims} claims and {puts} allocations, not one claim')
    checks.finish(cloud, row)


def built(client):
    """Waits until no server is being built; returns all."""
    until = time.monotonic() + PATIENCE_S
    while True:
        servers = client.servers()
        if not any(server['status'] == 'BUILD' for server in servers):
            return servers
        if time.monotonic() > until:
            raise Failed(f'not all servers are built after {PATIENCE_S} s')
        time.sleep(1)
