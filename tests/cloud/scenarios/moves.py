"""Everything that moves a server or changes its size, next to boots."""

import collections
import concurrent.futures
import signal

import checks
from control import SINGLE
from fleet import Fleet
from processes import Failed

EACH = 10
BOOTS = 40
WORKERS = 8
EVACUATED = 8


def run(cloud, new_row):
    row, client, fleet = new_row(), cloud.client, Fleet(cloud.client)
    row.per_boot = False
    moves = (resize_confirm, resize_revert, migrate_confirm, migrate_revert, shelve_unshelve, rebuild, live_migrate)
    failures = []
    with row.measured(cloud), concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        futures = {pool.submit(moved, client, move, number): move for number in range(EACH) for move in moves}
        boots = row.add(fleet.boot(BOOTS, 'small', 'next-to-moves'))
        failures += [f'{futures[future].__name__}: {future.exception()}' for future in futures if future.exception()]
    row.note(f'{len(futures) - len(failures)} of {len(futures)} moves done, {EACH} of each kind')
    row.must(not failures, f'{len(failures)} moves failed, such as {failures[:2]}')
    checks.all_active(row, boots)
    checks.consistent(cloud, row)
    checks.audits(cloud, row)
    evacuate(cloud, row)
    fleet.delete_all()
    checks.nothing_left(cloud, row)


def moved(client, move, number):
    zone = {'availability_zone': SINGLE} if move is live_migrate else {}
    server, _ = client.boot(f'{move.__name__}-{number}', 'small', **zone)
    before = client.until(server, 'ACTIVE')
    move(client, server)
    after = client.until(server, 'ACTIVE')
    stays = move in (resize_revert, migrate_revert, rebuild, shelve_unshelve)
    name = 'OS-EXT-SRV-ATTR:host'
    if not stays and before[name] == after[name]:
        raise Failed(f'{server} is still on {after[name]}')


def resize_confirm(client, server):
    _resize(client, server)
    client.act(server, 'confirmResize')


def resize_revert(client, server):
    _resize(client, server)
    client.act(server, 'revertResize')


def migrate_confirm(client, server):
    _migrate(client, server)
    client.act(server, 'confirmResize')


def migrate_revert(client, server):
    _migrate(client, server)
    client.act(server, 'revertResize')


def _resize(client, server):
    client.act(server, 'resize', {'flavorRef': 'medium'})
    client.until(server, 'VERIFY_RESIZE')


def _migrate(client, server):
    client.act(server, 'migrate')
    client.until(server, 'VERIFY_RESIZE')


def shelve_unshelve(client, server):
    client.act(server, 'shelve')
    client.until(server, 'SHELVED_OFFLOADED')
    client.act(server, 'unshelve')


def rebuild(client, server):
    client.act(server, 'rebuild', {'imageRef': client.server(server)['image']['id']})


def live_migrate(client, server):
    before = client.server(server)['OS-EXT-SRV-ATTR:host']
    client.act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'})
    client.until_elsewhere(server, before)


def evacuate(cloud, row):
    """A nova-compute dies, its servers are rebuilt elsewhere, and it comes back."""
    client = cloud.client
    servers = [client.boot(f'evacuate-{number}', 'small', availability_zone=SINGLE)[0] for number in range(EVACUATED)]
    hosts = collections.Counter(client.until(server, 'ACTIVE')['OS-EXT-SRV-ATTR:host'] for server in servers)
    (host, _), = hosts.most_common(1)
    cloud.expects_end(f'nova-{host}').stop(signal.SIGKILL)
    service, = (service for service in client.services() if service['host'] == host)
    client.set_service(service['id'], forced_down=True)
    evacuated = [server for server in client.servers() if server['OS-EXT-SRV-ATTR:host'] == host]
    for server in evacuated:
        client.act(server['id'], 'evacuate', {})
    for server in evacuated:
        client.until_elsewhere(server['id'], host)
        client.until(server['id'], 'ACTIVE')
    client.set_service(service['id'], forced_down=False)
    cloud.nova.start_compute(host)
    checks.consistent(cloud, row)
    row.note(f'{len(evacuated)} servers of {host} evacuated')
    checks.audits(cloud, row)
