"""Everything that moves a server or changes its size, next to boots and deletions."""

import collections
import concurrent.futures
import signal
import time

import checks
from control import SINGLE
from fleet import Fleet
from processes import Failed

# Servers of each kind of move, and how often each of them moves.
SERVERS = 10
TIMES = 4
# Boots at the same time, which are then deleted, again and again.
BOOTS = 10
WORKERS = 8
EVACUATED = 8
HOST = 'OS-EXT-SRV-ATTR:host'
# A nova-compute that starts again removes the allocations of evacuated servers.
STARTED_S = 120


def run(cloud, new_row):
    row, client, fleet = new_row(), cloud.client, Fleet(cloud.client)
    row.per_boot = False
    moves = (resize_confirm, resize_revert, migrate_confirm, migrate_revert, shelve_unshelve, rebuild, live_migrate)
    with row.measured(cloud), concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        futures = {pool.submit(moved, client, move, number): move for number in range(SERVERS) for move in moves}
        while not all(future.done() for future in futures):
            boots = row.add(fleet.boot(BOOTS, 'small', 'next-to-moves'))
            fleet.delete(boot.id for boot in boots if boot.id)
    failures = [f'{futures[future].__name__}: {future.exception()}' for future in futures if future.exception()]
    row.note(f'{len(moves)} kinds of moves, {SERVERS * TIMES} of each')
    row.must(not failures, f'{len(failures)} of {len(futures)} servers failed, such as {failures[:3]}')
    checks.all_active(row, row.boots)
    checks.consistent(cloud, row)
    checks.audits(cloud, row)
    evacuate(cloud, row)
    fleet.delete_all()
    checks.nothing_left(cloud, row)


def moved(client, move, number):
    """Boots a server, and moves it again and again."""
    zone = {'availability_zone': SINGLE} if move is live_migrate else {}
    server, _ = client.boot(f'{move.__name__}-{number}', 'small', **zone)
    client.until(server, 'ACTIVE')
    for _ in range(TIMES):
        before = client.server(server)
        move(client, before)
        after = client.until(server, 'ACTIVE')
        if move is not shelve_unshelve:
            moves = move in (resize_confirm, migrate_confirm, live_migrate)
            if moves == (before[HOST] == after[HOST]):
                raise Failed(f'{server} was on {before[HOST]} and is on {after[HOST]}: {client.last_action(server)}')


def resize_confirm(client, server):
    _resize(client, server)
    client.act(server['id'], 'confirmResize')


def resize_revert(client, server):
    _resize(client, server)
    client.act(server['id'], 'revertResize')


def migrate_confirm(client, server):
    _migrate(client, server)
    client.act(server['id'], 'confirmResize')


def migrate_revert(client, server):
    _migrate(client, server)
    client.act(server['id'], 'revertResize')


def _resize(client, server):
    flavor = 'small' if server['flavor']['original_name'] == 'medium' else 'medium'
    client.act(server['id'], 'resize', {'flavorRef': flavor})
    _until_resized(client, server['id'])


def _migrate(client, server):
    client.act(server['id'], 'migrate')
    _until_resized(client, server['id'])


def _until_resized(client, server):
    # A server for which Nova finds no host is ACTIVE again.
    if client.until(server, 'VERIFY_RESIZE', 'ACTIVE')['status'] == 'ACTIVE':
        raise Failed(f'{server} did not move: {client.last_action(server)}')


def shelve_unshelve(client, server):
    client.act(server['id'], 'shelve')
    # Nova removes the host a moment later, and then also the host of an unshelved server.
    client.until(server['id'], 'SHELVED_OFFLOADED', holds=lambda found: not found[HOST])
    client.act(server['id'], 'unshelve')


def rebuild(client, server):
    client.act(server['id'], 'rebuild', {'imageRef': server['image']['id']})


def live_migrate(client, server):
    client.act(server['id'], 'os-migrateLive', {'host': None, 'block_migration': 'auto'})
    client.until_elsewhere(server['id'], server[HOST])


def evacuate(cloud, row):
    """A nova-compute dies, its servers are rebuilt elsewhere, and it comes back."""
    client = cloud.client
    servers = [client.boot(f'evacuate-{number}', 'small', availability_zone=SINGLE)[0] for number in range(EVACUATED)]
    hosts = collections.Counter(client.until(server, 'ACTIVE')[HOST] for server in servers)
    (host, _), = hosts.most_common(1)
    cloud.expects_end(f'nova-{host}').stop(signal.SIGKILL)
    service, = (service for service in client.services() if service['host'] == host)
    client.set_service(service['id'], forced_down=True)
    evacuated = [server['id'] for server in client.servers() if server[HOST] == host]
    for server in evacuated:
        client.act(server, 'evacuate', {})
    for server in evacuated:
        client.until_elsewhere(server, host)
        client.until(server, 'ACTIVE')
    cloud.nova.start_compute(host)
    until_completed(client, host)
    client.set_service(service['id'], forced_down=False)
    checks.consistent(cloud, row, STARTED_S)
    row.note(f'{len(evacuated)} servers of {host} evacuated')
    checks.audits(cloud, row)


def until_completed(client, host):
    """Waits until a nova-compute that starts again has removed the servers that were evacuated from it: before that,
    Nova refuses to force it up."""
    until = time.monotonic() + STARTED_S
    while open := [migration['id'] for migration in client.migrations()
                   if migration['source_compute'] == host and migration['status'] == 'done']:
        if time.monotonic() > until:
            raise Failed(f'evacuations {open} from {host} are not completed after {STARTED_S} s')
        time.sleep(0.5)
