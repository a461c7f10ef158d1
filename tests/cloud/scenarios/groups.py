"""Boots that may not go everywhere: server groups, availability zones, isolated aggregates and traits."""

import collections

import checks
from control import SINGLE
from fleet import Fleet
from placements import Claims

COUNT = 20
# Nova counts the servers of a group by nova-compute, whatever number of nodes it has.
PER_HOST = 2
# They fit on the smallest node.
TOGETHER = 7
TRAIT = 'CUSTOM_GOLD'
GOLD, ORDINARY, LARGE = 'gold', 'not-gold', 'gold-large'
LARGE_VCPUS = 8
# Requested servers more than fit.
EXCESS = 4
# Each nth node of the nova-computes with many nodes gets the trait.
EACH = 4


def run(cloud, new_row):
    anti_affinity(cloud, new_row(f'anti-affinity, {PER_HOST} a host'), PER_HOST)
    anti_affinity(cloud, new_row('anti-affinity'), None)
    affinity(cloud, new_row('affinity'))
    marked = mark(cloud)
    isolated = cloud.client.aggregate('isolated', cloud.nova.singles[:2], **{f'trait:{TRAIT}': 'required'})
    try:
        zones(cloud, new_row('zones'))
        traits(cloud, new_row('traits'), marked)
    finally:
        cloud.client.delete_aggregate(isolated)
        for provider in marked:
            cloud.client.mark(provider['uuid'], TRAIT, False)


def group(client, name, policy, rules=None):
    body = {'name': name, 'policy': policy, **({'rules': rules} if rules else {})}
    return client.request('compute', 'POST', '/os-server-groups', {'server_group': body}).json()['server_group']['id']


def anti_affinity(cloud, row, most):
    """At most `most` servers of the group, or one, on each nova-compute. Claims count by node, so with claims the
    servers are on nova-computes with one node; Nova does not check the rule again there."""
    client, fleet = cloud.client, Fleet(cloud.client)
    has_claims = cloud.placement.name == Claims.name
    where, computes = ({'availability_zone': SINGLE}, cloud.nova.singles) if has_claims else ({}, cloud.nova.computes)
    rules = {'max_server_per_host': most} if most else None
    apart = group(client, f'apart-{most}', 'anti-affinity', rules)
    with row.measured(cloud):
        boots = row.add(fleet.boot(COUNT, 'small', f'apart-{most}', hints={'group': apart}, **where))
    active = checks.active(boots)
    full = {host: count for host, count in collections.Counter(boot.host for boot in active).items()
            if count > (most or 1)}
    row.must(not full, f'more than {most or 1} servers of the group are on one host: {full}')
    places = (most or 1) * len(computes)
    row.note(f'{len(active)} of {COUNT} are ACTIVE on {places} places; {rescheduled(client, active)}')
    row.note(f'the others: {refused(row, boots)}')
    row.must(active, 'no server of the group is ACTIVE')
    if has_claims:
        row.must(len(active) == places, f'{len(active)} servers are ACTIVE on {places} places')
        not_again(row, client, active)
    checks.finish(cloud, row)


def affinity(cloud, row):
    """All servers of the group are where its first one is."""
    client, fleet = cloud.client, Fleet(cloud.client)
    hints = {'group': group(client, 'together', 'affinity')}
    with row.measured(cloud):
        boots = row.add(fleet.boot(1, 'small', 'first', hints=hints))
        boots += row.add(fleet.boot(TOGETHER - 1, 'small', 'other', hints=hints))
    checks.all_active(row, boots)
    hosts = {boot.host for boot in boots}
    row.must(len(hosts) == 1, f'the servers of the group are on {sorted(map(str, hosts))}')
    row.note(rescheduled(client, boots))
    if cloud.placement.name == Claims.name:
        not_again(row, client, boots)
    checks.finish(cloud, row)


def mark(cloud):
    """Gives the trait to the nodes of two nova-computes with one node and to some others; returns these providers."""
    client = cloud.client
    client.request('placement', 'PUT', f'/traits/{TRAIT}')
    client.flavor(GOLD, 1, specs={f'trait:{TRAIT}': 'required'})
    client.flavor(ORDINARY, 1, specs={f'trait:{TRAIT}': 'forbidden'})
    client.flavor(LARGE, LARGE_VCPUS, specs={f'trait:{TRAIT}': 'required'})
    hosts = {node['hypervisor_hostname']: node['service']['host'] for node in client.hypervisors()}
    singles, isolated = cloud.nova.singles, cloud.nova.singles[:2]
    providers = sorted(client.providers(), key=lambda provider: provider['name'])
    several = [provider for provider in providers if hosts[provider['name']] not in singles]
    marked = several[::EACH] + [provider for provider in providers if hosts[provider['name']] in isolated]
    for provider in marked:
        client.mark(provider['uuid'], TRAIT)
    return marked


def zones(cloud, row):
    """Servers are in their zone; those without the trait of an isolated aggregate are not in it."""
    fleet, singles = Fleet(cloud.client), cloud.nova.singles
    isolated, rest = set(singles[:2]), set(singles[2:])
    with row.measured(cloud):
        in_zone = row.add(fleet.boot(COUNT // 2, 'small', 'in-zone', availability_zone=SINGLE))
        gold = row.add(fleet.boot(COUNT // 2, GOLD, 'gold-in-zone', availability_zone=SINGLE))
        anywhere = row.add(fleet.boot(COUNT, 'small', 'anywhere'))
    checks.all_active(row, in_zone + gold + anywhere)
    for boots, allowed in ((in_zone, rest), (gold, isolated), (anywhere, set(cloud.nova.computes) - isolated)):
        wrong = [boot for boot in boots if boot.host and boot.host not in allowed]
        row.must(not wrong, f'{len(wrong)} servers are not on {sorted(allowed)}, such as {wrong[:1]}')
    checks.finish(cloud, row)


def traits(cloud, row, marked):
    """Servers that forbid the trait have it nowhere, and those that require it use up the nodes with it."""
    client, fleet = cloud.client, Fleet(cloud.client)
    names = {provider['name'] for provider in marked}
    fit = sum(client.inventories(provider)['VCPU']['total'] // LARGE_VCPUS for provider in marked)
    with row.measured(cloud):
        ordinary = row.add(fleet.boot(COUNT, ORDINARY, 'ordinary'))
        large = row.add(fleet.boot(fit + EXCESS, LARGE, 'large'))
    checks.all_active(row, ordinary)
    wrong = [boot for boot in ordinary if boot.node in names]
    row.must(not wrong, f'{len(wrong)} servers are on nodes with the forbidden trait, such as {wrong[:1]}')
    active = checks.active(large)
    wrong = [boot for boot in active if boot.node not in names]
    row.must(not wrong, f'{len(wrong)} servers are on nodes without the required trait, such as {wrong[:1]}')
    row.must(len(active) == fit, f'{len(active)} servers with the required trait are ACTIVE, and {fit} fit')
    refused(row, large)
    row.note(f'{len(active)} of {len(large)} servers are ACTIVE on {len(marked)} nodes with the required trait')
    checks.finish(cloud, row)


def refused(row, boots):
    """Each server that is not ACTIVE found no place. Returns how many had which cause."""
    causes = (checks.NO_HOST, 'Exhausted all hosts', 'affinity instance group policy was violated')
    found = collections.Counter()
    others = []
    for boot in boots:
        cause = next((cause for cause in causes if cause in boot.fault), None)
        if boot.status == 'ERROR' and cause:
            found[cause] += 1
        elif boot.status != 'ACTIVE':
            others.append(boot)
    row.must(not others, f'{len(others)} boots failed, but not for want of a place, such as {others[:1]}')
    return dict(found)


def rescheduled(client, boots):
    """Says how many boots Nova began again on another nova-compute."""
    attempts = collections.Counter(client.attempts(boot.id, boot.request) for boot in boots)
    return f'servers by attempts: {dict(sorted(attempts.items()))}'


def not_again(row, client, boots):
    """No boot was begun again on another nova-compute."""
    again = [boot for boot in boots if client.attempts(boot.id, boot.request) > 1]
    row.must(not again, f'{len(again)} boots were begun again, such as {again[:1]}')
