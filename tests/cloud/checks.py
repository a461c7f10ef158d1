"""What must hold after a scenario."""

import collections
import json
import time

import devices
from fleet import Fleet

# The commands of docs/placementctl.md; no deleted server can be restored here.
SERVERS = 'openstack --os-compute-api-version 2.69 server list --all-projects --long --no-name-lookup -f json'
MIGRATIONS = 'openstack --os-compute-api-version 2.59 server migration list -f json'
# Nova confirms and deletes in the background.
SETTLED_S = 30
NO_HOST = 'No valid host'


def all_active(row, boots):
    bad = [boot for boot in boots if boot.status != 'ACTIVE']
    return row.must(not bad, f'{len(bad)} of {len(boots)} boots are not ACTIVE, such as {bad[:1]}')


def active(boots):
    return [boot for boot in boots if boot.status == 'ACTIVE']


def without_host(row, boots):
    """Returns the boots for which Nova found no host; all others must be ACTIVE."""
    without = [boot for boot in boots if boot.status == 'ERROR' and NO_HOST in boot.fault]
    others = [boot for boot in boots if boot.status != 'ACTIVE' and boot not in without]
    row.must(not others, f'{len(others)} servers are neither ACTIVE nor without a valid host, such as {others[:1]}')
    return without


def explained(cloud, row, boots):
    """On placementd, `placementctl explain` names the cause by the id of the request for each server."""
    if not hasattr(cloud.placement, 'ctl'):
        return
    causes, unexplained = collections.Counter(), []
    for boot in boots:
        status, output, errors = cloud.tried(*cloud.placement.ctl_command(), 'explain', boot.request)
        first = output.splitlines()[0] if output.strip() else ''
        causes[first.replace(boot.request, 'req-…')] += 1
        if status or not first:
            unexplained.append(f'{boot.request}: {status} {errors.strip()}')
    for cause, count in causes.most_common(4):
        row.note(f'explain, {count} times: {cause}')
    row.must(not unexplained, f'{len(unexplained)} refusals are not explained, such as {unexplained[:2]}')


def resources(flavor):
    """What a server of this flavor holds on its node."""
    return {'VCPU': flavor['vcpus'], 'MEMORY_MB': flavor['ram'], 'DISK_GB': flavor['disk']}


def consistent(cloud, row, settled_s=SETTLED_S, apart=()):
    """Each server holds its flavor on its host and nothing else; nothing else is held. The servers `apart` may
    hold anything."""
    until = time.monotonic() + settled_s
    while (found := differences(cloud.client, apart)) and time.monotonic() < until:
        time.sleep(2)
    row.stray += len(found)
    row.must(not found, f'{len(found)} allocations differ from the servers: {"; ".join(found[:5])}')


def differences(client, apart=()):
    """Compares Placement's allocations with Nova's servers, without those `apart`."""
    held = {consumer: held for consumer, held in by_tree(client).items() if consumer not in apart}
    found = []
    for server in client.servers():
        if server['id'] in apart:
            continue
        host, flavor = server['OS-EXT-SRV-ATTR:hypervisor_hostname'], server['flavor']
        expected = {host: resources(flavor)}
        if on_children := devices.wanted(flavor['extra_specs']):
            expected[f'children of {host}'] = on_children
        # A server in ERROR without a host, or offloaded, holds nothing.
        if server['status'] == 'SHELVED_OFFLOADED' or not host:
            expected = {}
        actual = held.pop(server['id'], {})
        if actual != expected:
            found.append(f'{server["id"]} ({server["status"]}) has {actual}, not {expected}')
    return found + [f'{consumer}, which is no server, has {actual}' for consumer, actual in held.items()]


def by_tree(client):
    """Returns all allocations, those on child providers as sums of each tree."""
    providers = {provider['uuid']: provider for provider in client.providers()}
    roots = {provider['name']: providers[provider['root_provider_uuid']]['name'] for provider in providers.values()}
    found = {}
    for consumer, allocation in client.allocations().items():
        trees = found[consumer] = {}
        for name, resources in allocation.items():
            tree = trees.setdefault(name if roots[name] == name else f'children of {roots[name]}', {})
            for resource_class, amount in resources.items():
                tree[resource_class] = tree.get(resource_class, 0) + amount
    return found


def audits(cloud, row):
    """Nova's own audit, and that of placementctl, find nothing."""
    status, output, errors = cloud.tried(*cloud.nova.manager(), 'placement', 'audit', '--verbose')
    row.must(status == 0, f'nova-manage placement audit ended with {status}: {output[-300:]} {errors[-300:]}')
    if not hasattr(cloud.placement, 'ctl'):
        return
    status, output, errors = audited(cloud)
    row.must(status == 0, f'placementctl consumers audit ended with {status}: {output[-300:]} {errors[-300:]}')


def audited(cloud, *options, servers=SERVERS):
    """Runs `placementctl consumers audit` with Nova's lists."""
    return cloud.tried(*cloud.placement.ctl_command(), 'consumers', 'audit', '--older-than', '0s',
                       '--servers-command', servers, '--migrations-command', MIGRATIONS, *options)


def finish(cloud, row):
    """Checks the servers, deletes all, and checks that nothing is left."""
    consistent(cloud, row)
    audits(cloud, row)
    Fleet(cloud.client).delete_all()
    nothing_left(cloud, row)


def nothing_left(cloud, row):
    """No allocations, and no usage of any provider."""
    consistent(cloud, row)
    used = {}
    for provider in cloud.client.providers():
        usages = cloud.client.get('placement', f'/resource_providers/{provider["uuid"]}/usages')['usages']
        if any(usages.values()):
            used[provider['name']] = usages
    row.must(not used, f'providers are used after all is deleted: {json.dumps(used)[:300]}')
    audits(cloud, row)
