"""PCI devices and virtual GPUs, which are child providers: boots until they are used up, resizes, deletions."""

import collections
import time

import checks
import devices
from fleet import Fleet

COMPUTES = 4
# Requested servers more than fit.
EXCESS = 4
# At most this long until Nova has freed all devices.
SETTLED_S = 90
# What has the devices: the extra specs for a number of them, and how many there are on a node.
KINDS = {
    'PCI devices': (lambda count: {'pci_passthrough:alias': f'gpu:{count}'}, devices.GPUS),
    'virtual functions': (lambda count: {'pci_passthrough:alias': f'function:{count}'}, devices.FUNCTIONS),
    'virtual GPUs': (lambda count: {'resources:VGPU': str(count)}, devices.VGPUS * len(devices.VGPU_CARDS)),
}


def run(cloud, new_row):
    hosts = [f'devices-{number}' for number in range(1, COMPUTES + 1)]
    before = {provider['uuid'] for provider in cloud.client.providers()}
    row = None
    for number, host in enumerate(hosts, cloud.hosts):
        cloud.nova.start_compute(host, nodes=range(number, number + 1), driver='NodesWithDevices', own=devices.SETTINGS)
    try:
        cloud.nova.until_ready(cloud.client, cloud.hosts + COMPUTES)
        for name, (specs, on_a_node) in KINDS.items():
            row = new_row(name)
            one_kind(cloud, row, name.replace(' ', '-'), specs, on_a_node * COMPUTES)
    finally:
        Fleet(cloud.client).delete_all()
        for host in hosts:
            cloud.nova.remove_compute(cloud.client, host)
    left = [provider['name'] for provider in cloud.client.providers() if provider['uuid'] not in before]
    row.must(not left, f'providers of deleted nova-computes are left: {left}')


def one_kind(cloud, row, name, specs, fit):
    client, fleet = cloud.client, Fleet(cloud.client)
    one, two = f'{name}-1', f'{name}-2'
    for flavor, count in ((one, 1), (two, 2)):
        client.flavor(flavor, 1, specs=specs(count))
    use_up(cloud, row, fleet, one, fit)
    fleet.delete_all()
    checks.consistent(cloud, row)
    with row.measured(cloud):
        boots = row.add(fleet.boot(COMPUTES // 2, one, f'{name}-to-resize'))
        for boot, after in zip(boots, ('confirmResize', 'revertResize')):
            client.act(boot.id, 'resize', {'flavorRef': two})
            client.until(boot.id, 'VERIFY_RESIZE')
            holds_both(client, row, boot, devices.wanted(specs(1)), devices.wanted(specs(2)))
            client.act(boot.id, after)
            client.until(boot.id, 'ACTIVE')
    checks.consistent(cloud, row)
    devices_agree(cloud, row)
    checks.audits(cloud, row)
    fleet.delete_all()
    checks.nothing_left(cloud, row)
    devices_agree(cloud, row)


def use_up(cloud, row, fleet, flavor, fit):
    """Boots more servers than there are devices: all devices are used, and no server holds a part of what it wants."""
    with row.measured(cloud):
        boots = row.add(fleet.boot(fit + EXCESS, flavor, flavor))
    at_once = len(checks.active(boots))
    # Of several devices of one node, Nova's scheduler tries one, and goes on to the next node if it
    # is taken.
    for _ in range(EXCESS):
        if len(checks.active(boots)) < fit:
            boots += row.add(fleet.boot(1, flavor, f'{flavor}-more'))
    row.note(f'{at_once} of {fit} devices used by {fit + EXCESS} boots at once, {len(checks.active(boots))} in the end')
    row.must(len(checks.active(boots)) == fit, f'{len(checks.active(boots))} servers are ACTIVE, and {fit} fit')
    without = checks.without_host(row, boots)
    checks.consistent(cloud, row)
    devices_agree(cloud, row)
    checks.explained(cloud, row, without)


def holds_both(client, row, boot, one, two):
    """While a resize awaits its confirmation, the server holds the new devices, and a migration the old ones."""
    trees = checks.by_tree(client)
    servers = {server['id']: server for server in client.servers()}
    node = servers[boot.id]['OS-EXT-SRV-ATTR:hypervisor_hostname']
    new = trees[boot.id].get(f'children of {node}')
    row.must(node != boot.node and new == two, f'{boot.id}, resized from {boot.node} to {node}, holds {trees[boot.id]}')
    others = [tree.get(f'children of {boot.node}') for consumer, tree in trees.items() if consumer not in servers]
    row.must(others == [one], f'the migration from {boot.node} holds {others}, not {one}')


def devices_agree(cloud, row):
    """The PCI devices that Nova gave to servers are those of the providers that Placement gave them."""
    until = time.monotonic() + SETTLED_S
    while (tracked := tracked_devices(cloud)) != (held := held_devices(cloud)) and time.monotonic() < until:
        time.sleep(2)
    row.must(tracked == held, f'only Nova has {tracked - held}, only Placement has {held - tracked}')


def tracked_devices(cloud):
    """Counts the PCI devices in Nova's database by server and provider."""
    return collections.Counter(
        (server, f'{node}_{(address if parent == "NULL" else parent).upper()}')
        for node, address, parent, server in cloud.nova.query(
            'SELECT hypervisor_hostname, address, parent_addr, instance_uuid FROM pci_devices JOIN compute_nodes '
            'ON compute_node_id = compute_nodes.id WHERE instance_uuid IS NOT NULL AND pci_devices.deleted = 0'))


def held_devices(cloud):
    """Counts the PCI devices in Placement by consumer and provider."""
    held = collections.Counter()
    for consumer, allocation in cloud.client.allocations().items():
        for provider, resources in allocation.items():
            held.update({(consumer, provider): amount for name, amount in resources.items()
                         if name in devices.CLASSES.values()})
    return held
