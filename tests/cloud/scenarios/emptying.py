"""Hosts are emptied by live migrations, in the order and to the hosts that `refuge` of placementd predicts."""

import collections
import random

import checks
from control import SINGLE
from fleet import Fleet

from .moves import HOST

SEED = 20
ROUNDS = 20
# At most so many servers are booted in a round.
BOOTS = 8
FLAVORS = ('small', 'medium', 'large')
REFUGE = '/placementd/v1/refuge'


def run(cloud, new_row):
    row, client, fleet = new_row(), cloud.client, Fleet(cloud.client)
    row.per_boot = False
    zone, drawn, sums = Zone(cloud), random.Random(SEED), collections.Counter()
    for number in range(ROUNDS):
        with row.measured(cloud):
            boots = boot(row, fleet, drawn, number)
        without = checks.without_host(row, boots)
        checks.consistent(cloud, row)
        hosts = sorted(zone.servers())
        if not row.must(hosts, 'no server of the zone is ACTIVE'):
            break
        sums += empty(cloud, row, zone, drawn.choice(hosts))
        servers = sorted(server for of_host in zone.servers().values() for server in of_host)
        fleet.delete([boot.id for boot in without] + drawn.sample(servers, len(servers) // 2))
    row.note(f'{ROUNDS} hosts with {sums["consumers"]} servers: {sums["moved"]} moved as predicted, {sums["left"]} '
             f'left; {sums["emptied"]} hosts emptied, {sums["exact"]} answers exact')
    _, p50_ms, p99_ms = row.requests.of(f'GET {REFUGE}')
    row.note(f'refuge took {p50_ms}/{p99_ms} ms (p50/p99)')
    row.must(sums['moved'], 'no server was moved')
    checks.finish(cloud, row)


class Zone:
    """The availability zone of nova-computes with one node: Nova can live-migrate only to these."""

    def __init__(self, cloud):
        client = self._client = cloud.client
        aggregates = client.get('compute', '/os-aggregates')['aggregates']
        self.aggregate, = (aggregate['uuid'] for aggregate in aggregates if aggregate['name'] == SINGLE)
        hosts = {node['id']: node['service']['host'] for node in client.hypervisors()}
        self.hosts = {provider: host for provider, host in hosts.items() if host in cloud.nova.singles}
        self.providers = {host: provider for provider, host in self.hosts.items()}

    def servers(self):
        """Returns the servers of each host that has some."""
        found = {}
        for server in self._client.servers():
            if server[HOST] in self.providers:
                found.setdefault(server[HOST], set()).add(server['id'])
        return found


def boot(row, fleet, drawn, number):
    """Boots some servers of random flavors in the zone, which may be too full for them."""
    flavors = collections.Counter(drawn.choice(FLAVORS) for _ in range(drawn.randint(1, BOOTS)))
    boots = []
    for flavor, count in sorted(flavors.items()):
        boots += row.add(fleet.boot(count, flavor, f'round-{number}-{flavor}', availability_zone=SINGLE))
    return boots


def empty(cloud, row, zone, host):
    """Asks where the servers of a host can go, moves them there, and checks what is left; returns the figures."""
    client, provider, before = cloud.client, zone.providers[host], zone.servers()[host]
    with row.measured(cloud):
        found = client.get('placement', f'{REFUGE}?provider={provider}&member_of={zone.aggregate}&moves=true')
        is_complete(row, host, before, found)
        moved = [live_migrate(client, row, zone, move) for move in found['moves']]
    # The sources of the migrations are released in the background.
    checks.consistent(cloud, row)
    left = {one['consumer'] for one in found['left']}
    now = zone.servers().get(host, set())
    row.must(now == left, f'{sorted(now)} are on {host}, and {sorted(left)} should be left')
    for move in found['moves']:
        holds_as_predicted(client, row, move)
    usages = client.get('placement', f'/resource_providers/{provider}/usages')['usages']
    is_empty = not any(usages.values())
    row.must(is_empty == (not left), f'{len(left)} servers should be left on {host}, which has the usages {usages}')
    for one in found['left'][:1]:
        is_stuck(client, row, host, one['consumer'])
    return collections.Counter(consumers=len(before), moved=sum(moved), left=len(left), emptied=is_empty,
                               exact=found['exact'])


def is_complete(row, host, servers, found):
    """The answer is about each server of the host once."""
    named = sorted(one['consumer'] for one in found['moves'] + found['left'])
    counts = {name: found[name] for name in ('consumers', 'moved', 'migrations', 'complete')}
    expected = {'consumers': len(servers), 'moved': len(found['moves']), 'migrations': 0, 'complete': True}
    row.must(named == sorted(servers) and counts == expected,
             f'{host} has {sorted(servers)}, and the answer is about {named}: {counts}')


def live_migrate(client, row, zone, move):
    """Live-migrates a server to the predicted host; returns whether it is there."""
    server, target = move['consumer'], zone.hosts.get(move['to'][0]['root']['uuid'])
    client.act(server, 'os-migrateLive', {'host': target, 'block_migration': 'auto'})
    # A server for which Nova finds no host is ACTIVE again.
    found = client.until(server, 'ACTIVE')
    return row.must(found[HOST] == target,
                    f'{server} is on {found[HOST]}, not on {target}: {client.last_action(server)}')


def holds_as_predicted(client, row, move):
    """A moved server holds what was predicted, and nothing else."""
    held = client.get('placement', f'/allocations/{move["consumer"]}')['allocations']
    held = {provider: allocation['resources'] for provider, allocation in held.items()}
    expected = {one['provider']['uuid']: one['resources'] for one in move['to']}
    row.must(held == expected, f'{move["consumer"]} holds {held}, not {expected}')


def is_stuck(client, row, host, server):
    """Nova finds no host either for a server that is left: after the moves, there is no more room than before."""
    client.act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'})
    found = client.until(server, 'ACTIVE',
                         holds=lambda found: found[HOST] != host or checks.NO_HOST in client.last_action(server))
    row.must(found[HOST] == host, f'{server}, which should be left on {host}, was moved to {found[HOST]}')
