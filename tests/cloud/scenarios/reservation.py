"""Instance reservations of Blazar: a nested provider, a resource class and an inventory for each lease."""

import concurrent.futures
import time

import checks
import parts
from blazar import FREEPOOL, Blazar, Lease
from fleet import Boot

# Nodes that are given to Blazar.
NODES = 2
VCPUS = 4
# Instances of a size, and instances of a flavor.
SIZE = {'resource_type': 'virtual:instance', 'vcpus': VCPUS, 'memory_mb': 256, 'disk_gb': 1, 'resource_properties': ''}
FLAVOR = {'resource_type': 'flavor:instance', 'flavor_id': 'with-trait'}
NO_ROOM = 'Not enough hosts available'


def run(cloud, new_row):
    row, client = new_row(), cloud.client
    row.per_boot = False
    blazar = Blazar(cloud)
    try:
        blazar.start()
        freepool = client.request('compute', 'POST', '/os-aggregates', {'aggregate': {'name': FREEPOOL}})
        nodes = {node: blazar.add_host(node) for node in chosen(cloud)}
        with row.measured(cloud):
            reserve(cloud, row, blazar, nodes)
        for host in nodes.values():
            blazar.remove_host(host)
        client.request('compute', 'DELETE', f'/os-aggregates/{freepool.json()["aggregate"]["id"]}')
        left = [provider['name'] for provider in client.providers() if provider['name'].startswith('blazar_')]
        row.must(not left, f'the hosts are removed from Blazar, and their providers are there: {left}')
        checks.nothing_left(cloud, row)
    finally:
        blazar.stop()


def chosen(cloud):
    """Returns nodes that have a nova-compute of their own: aggregates consist of nova-computes, not of nodes."""
    hosts = cloud.nova.singles[:NODES]
    return [hypervisor['hypervisor_hostname']
            for hypervisor in cloud.client.hypervisors() if hypervisor['service']['host'] in hosts]


def reserve(cloud, row, blazar, nodes):
    client = cloud.client
    user = tenant(client, blazar)
    providers = {provider['name']: provider for provider in client.providers()}
    for node in nodes:
        nested = providers.get(f'blazar_{node}', {})
        row.must(nested.get('parent_provider_uuid') == providers[node]['uuid'],
                 f'no provider of Blazar is below {node}: {nested}')
    slots = {node: client.inventories(providers[node])['VCPU']['total'] // VCPUS for node in nodes}
    without_lease(cloud, row, next(iter(nodes)))
    leases = all_room_twice(row, user, sum(slots.values()))
    for lease in leases:
        lease.until('ACTIVE')
    expected = {(node, lease.resource_class): count for node, count in slots.items() for lease in leases}
    inventories = reservations(client, nodes)
    row.must(inventories == expected, f'the inventories of the leases are {inventories}, not {expected}')
    boot_more_than_fit(cloud, row, user, leases, sum(slots.values()))
    checks.audits(cloud, row)
    for lease in leases:
        lease.end_soon()
    for lease in leases:
        lease.until('TERMINATED')
    ended(row, client, leases, nodes)
    lease_of_flavor(cloud, row, user, nodes, sum(slots.values()))


def tenant(client, blazar):
    """Creates a user who is no admin; returns its client."""
    project = client.create('project', name='tenant', domain_id='default')
    user = client.create('user', name='tenant', password=parts.SERVICE_PASSWORD, domain_id='default')
    client.grant(project, user, 'member')
    return blazar.client('tenant', 'tenant', parts.SERVICE_PASSWORD)


def without_lease(cloud, row, node):
    """A boot without a lease does not get an empty node of Blazar: the filter refuses what Placement offers."""
    boots = boot(cloud.client, cloud.client, 'no-lease', 'small', 1, hypervisor_hostname=node)
    refused(row, cloud.client, boots)
    checks.explained(cloud, row, boots)
    cloud.client.delete(boots[0].id)


def all_room_twice(row, user, amount):
    """Asks for leases of all room twice at the same time; returns those that Blazar grants.

    It grants both if it gets the second before it has counted the first (Blazar 18.0.0)."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        leases = list(pool.map(lambda name: Lease(user, name, amount=amount, **SIZE), ('one', 'two')))
    granted = [lease for lease in leases if not lease.refusal]
    row.note(f'{len(granted)} of two leases of all room, {amount} instances each, are granted')
    row.must(granted, f'no lease is granted: {[lease.refusal for lease in leases]}')
    return granted


def boot_more_than_fit(cloud, row, user, leases, fit):
    """Boots all instances of all leases and one more of each: as many run as fit."""
    client, wanted = cloud.client, fit + 1
    with concurrent.futures.ThreadPoolExecutor(len(leases)) as pool:
        by_lease = list(pool.map(lambda lease: boot(client, user, lease.name, lease.reservation, wanted), leases))
    boots = row.add(sum(by_lease, []))
    active = checks.active(boots)
    without = [boot for boot in boots if boot not in active]
    row.note(f'{len(active)} of {len(boots)} instances are ACTIVE, {fit} fit')
    row.must(len(active) == fit, f'{len(active)} instances are ACTIVE, and {fit} fit')
    refused(row, client, without)
    checks.explained(cloud, row, without)
    for lease, own in zip(leases, by_lease):
        holds(row, client, lease, [boot for boot in own if boot in active])


def boot(client, user, prefix, flavor, count, **more):
    """A user boots servers at the same time; returns them once they are ACTIVE or in ERROR."""
    def one(number):
        started = time.monotonic()
        name = f'{prefix}-{number}'
        id, request = user.boot(name, flavor, **more)
        server = client.until(id, 'ACTIVE', 'ERROR')
        return Boot(name, id, request, time.monotonic() - started, server['status'],
                    server.get('fault', {}).get('message', ''))

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def refused(row, client, boots):
    """These boots have found no host, and hold nothing."""
    held = client.allocations()
    for boot in boots:
        row.must(checks.NO_HOST in boot.fault, f'{boot} failed for another reason')
        row.must(boot.id not in held, f'{boot} holds {held.get(boot.id)}')


def holds(row, client, lease, boots):
    """Each instance holds its flavor on a node, and one of the reservation on the provider below that node."""
    held = client.allocations()
    for boot in boots:
        server = client.server(boot.id)
        node, flavor = server['OS-EXT-SRV-ATTR:hypervisor_hostname'], server['flavor']
        expected = {node: checks.resources(flavor),
                    f'blazar_{node}': {lease.resource_class: 1}}
        row.must(held.get(boot.id) == expected, f'{boot.name} holds {held.get(boot.id)}, not {expected}')


def ended(row, client, leases, nodes):
    """Blazar has deleted the servers, the inventories, the classes, the flavors and the aggregates of all leases."""
    classes = client.get('placement', '/resource_classes')['resource_classes']
    flavors = client.get('compute', '/flavors?is_public=None')['flavors']
    aggregates = client.get('compute', '/os-aggregates')['aggregates']
    names = [lease.reservation for lease in leases]
    left = {
        'servers': [server['name'] for server in client.servers()],
        'inventories': reservations(client, nodes),
        'classes': [one['name'] for one in classes if one['name'].startswith('CUSTOM_RESERVATION_')],
        'flavors': [flavor['id'] for flavor in flavors if flavor['id'] in names],
        'aggregates': [aggregate['name'] for aggregate in aggregates if aggregate['name'] in names],
    }
    for what, found in left.items():
        row.must(not found, f'the leases have ended, and {what} are left: {str(found)[:300]}')


def reservations(client, nodes):
    """Returns the totals of all inventories of the nested providers, by node and class."""
    found = {}
    for provider in client.providers():
        node = provider['name'].removeprefix('blazar_')
        if node in nodes and node != provider['name']:
            found |= {(node, name): inventory['total']
                      for name, inventory in client.inventories(provider).items()}
    return found


def lease_of_flavor(cloud, row, user, nodes, amount):
    """A lease of all room for a flavor with a trait, which the user deletes; in the meantime another lease is refused.
    A part of Placement is killed before the begin and before the end."""
    client = cloud.client
    client.flavor(FLAVOR['flavor_id'], VCPUS, specs={'trait:COMPUTE_NODE': 'required'})
    row.note(f'{cloud.placement.kill()}, before a lease of a flavor')
    lease = Lease(user, 'of-a-flavor', amount=amount, **FLAVOR)
    if not row.must(not lease.refusal, f'the lease of a flavor is refused: {lease.refusal}'):
        return
    lease.until('ACTIVE')
    excess = Lease(user, 'without-room', amount=1, **FLAVOR)
    row.must(NO_ROOM in (excess.refusal or ''), f'a lease without room is answered {excess.refusal or "with a lease"}')
    boots = row.add(boot(client, user, lease.name, lease.reservation, 1))
    if checks.all_active(row, boots):
        holds(row, client, lease, boots)
    row.note(f'{cloud.placement.kill()}, before its deletion')
    lease.delete()
    ended(row, client, [lease], nodes)
    client.request('compute', 'DELETE', f'/flavors/{FLAVOR["flavor_id"]}')
