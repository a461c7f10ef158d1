"""A second cell loses its database and its conductor. Creates go on in the first cell, and nothing takes the
allocations of the second cell for leaked ones."""

import json
import signal
import time

import checks
import parts
import runbook
from fleet import Fleet
from processes import Failed

NAME = 'cell2'
HOSTS = [f'compute-{NAME}-{number}' for number in range(1, 4)]
# Servers per host of the second cell.
EACH = 3
COUNT = 20
QUOTA = '[quota]\ncount_usage_from_placement = true\n'
# Both processes of the API and both schedulers then have a connection to the second cell: Nova
# tries for 100 s to open the first one.
LISTS = 30
# Exit codes of placementctl: findings, but Nova's lists are incomplete.
INCOMPLETE = 2
PATIENCE_S = 300


def run(cloud, new_row):
    row, client, fleet = new_row(), cloud.client, Fleet(cloud.client)
    cell = Cell(cloud)
    cell.start()
    try:
        inside = {client.boot(f'inside-{host}-{number}', 'small', host=host)[0]
                  for host in HOSTS for number in range(EACH)}
        for server in inside:
            client.until(server, 'ACTIVE')
        checks.all_active(row, row.add(fleet.boot(COUNT, 'small', 'before')))
        inside |= {server['id'] for server in client.servers() if server['OS-EXT-SRV-ATTR:host'] in HOSTS}
        parts.at_once(*[lambda: client.get('compute', '/servers?all_tenants=1&limit=1')] * LISTS)
        checks.consistent(cloud, row)
        before = usage(client)

        cell.stop()
        is_same(row, before, usage(client), 'the cell is down')
        with row.measured(cloud):
            boots = row.add(fleet.boot(COUNT, 'small', 'without'))
        checks.all_active(row, boots)
        checks.consistent(cloud, row, apart=inside)
        is_same(row, grown(before, len(boots)), usage(client), f'{len(boots)} servers are created')
        unknown(client, row, inside)
        if hasattr(cloud.placement, 'ctl'):
            audit(cloud, row, inside)

        cell.resume()
        is_same(row, grown(before, len(boots)), usage(client), 'the cell is back')
        checks.finish(cloud, row)
    finally:
        cell.remove()
    row.must(len(client.providers()) == cloud.hosts, f'{len(client.providers())} providers are left')


class Cell:
    """A cell with a conductor, nova-computes with one node each, and a MariaDB of its own."""

    def __init__(self, cloud):
        self._cloud = cloud
        self._nova = cloud.nova
        self._is_down = False
        self._database = cloud.mariadb(NAME)
        self._database.create(f'nova_{NAME}')

    def start(self):
        connection = self._database.url(f'nova_{NAME}')
        self._nova.configure_cell(NAME, connection)
        self._nova.create_schema(NAME)
        self._uuid = self._nova.create_cell(NAME, connection)
        self._nova.start_conductor(NAME)
        for number, host in enumerate(HOSTS, self._cloud.hosts):
            self._nova.start_compute(host, NAME, range(number, number + 1))
        self._nova.restart(QUOTA)
        self._until(lambda: self._nodes() == len(HOSTS), 'report their nodes')
        self._nova.manage('cell_v2', 'discover_hosts')
        self._until(lambda: self._services('up') == len(HOSTS), 'are up')
        hosts = self._cloud.hosts + len(HOSTS)
        self._until(lambda: self._cloud.client.placement_inventories() == hosts, 'have inventories')

    def stop(self):
        """Kills the database and the conductor."""
        self._is_down = True
        self._database.stop(signal.SIGKILL)
        self._cloud.kill(f'nova-conductor-{NAME}')

    def resume(self):
        self._database.start()
        self._nova.start_conductor(NAME)
        self._is_down = False
        self._until(lambda: self._services('up') == len(HOSTS), 'are up again')

    def remove(self):
        """Deletes the servers and the cell."""
        if self._is_down:
            self.resume()
        Fleet(self._cloud.client).delete_all()
        for host in HOSTS:
            self._nova.remove_compute(self._cloud.client, host)
        self._cloud.expects_end(f'nova-conductor-{NAME}').stop()
        self._nova.manage('cell_v2', 'delete_cell', '--force', '--cell_uuid', self._uuid)
        self._nova.restart()
        self._until(lambda: len(self._cloud.client.hypervisors()) == self._cloud.hosts, 'are gone')
        self._database.stop()

    def _nodes(self):
        return len(self._database.query(f'SELECT uuid FROM nova_{NAME}.compute_nodes WHERE deleted = 0'))

    def _services(self, state):
        """Returns how many nova-computes have this state."""
        try:
            return sum(service['host'] in HOSTS and service.get('state') == state
                       for service in self._cloud.client.services())
        except Failed:
            # The API starts.
            return 0

    def _until(self, ready, what):
        until = time.monotonic() + PATIENCE_S
        while not ready():
            self._cloud.look_for_ended()
            if time.monotonic() > until:
                raise Failed(f'not all nova-computes of {NAME} {what} after {PATIENCE_S} s')
            time.sleep(1)


def usage(client):
    """What Nova counts against the quota of the project."""
    quota = client.get('compute', f'/os-quota-sets/{client.project("demo")}/detail')['quota_set']
    return {name: quota[name]['in_use'] for name in ('instances', 'cores', 'ram')}


def grown(usage, servers):
    """The usage with more servers of the flavor `small`."""
    return {'instances': usage['instances'] + servers, 'cores': usage['cores'] + servers,
            'ram': usage['ram'] + 256 * servers}


def is_same(row, expected, usage, when):
    row.must(usage == expected, f'{when}: Nova counts {usage} against the quota, not {expected}')


def unknown(client, row, inside):
    """Nova lists the servers of the cell with the status UNKNOWN, and no others."""
    listed = {server['id'] for server in client.get('compute', '/servers?all_tenants=1')['servers']
              if server.get('status') == 'UNKNOWN'}
    row.must(listed == inside, f'{len(listed)} servers are UNKNOWN, and {len(inside)} are in {NAME}')
    one = client.server(min(inside))
    row.must(one and one['status'] == 'UNKNOWN', f'a server of {NAME} is shown as {one}')


def audit(cloud, row, inside):
    """placementctl takes no server of the cell for an orphan or a doubled instance, and plans nothing for it."""
    script = parts.write(f'{cloud.directory}/servers.sh', runbook.block('../placementctl.md', 'sh'))
    plan = f'{cloud.directory}/down.plan'
    status, output, errors = checks.audited(cloud, '-o', 'jsonl', '--plan', plan, servers=f'sh {script}')
    row.must(status == INCOMPLETE and 'a cell is down' in errors,
             f'consumers audit ended with {status}: {errors[-300:]}')
    findings = [json.loads(line) for line in output.splitlines()]
    found = [(finding['finding'], finding['uuid']) for finding in findings if finding.get('uuid') in inside]
    row.must(not found, f'consumers audit has findings about {len(found)} servers of {NAME}, such as {found[:2]}')
    with open(plan) as lines:
        planned = lines.read()
    row.must(not planned, f'consumers audit plans {planned[:300]}')
